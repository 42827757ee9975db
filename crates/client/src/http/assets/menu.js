// A button that opens a short list of actions.

import { h, id } from "./dom.js";

const FAR = { ArrowDown: 1, ArrowUp: -1 };

// `items` are texts, each with what it does.
export function menu(name, items, { disabled = false } = {}) {
  const list = h("div", { class: "menu", popover: "auto", id: id() });
  const button = h("button", { type: "button", popovertarget: list.id, disabled }, name);
  const all = items.map(([text, act]) => h("button", { type: "button", class: "plain", onclick: () => { list.hidePopover(); act(); } }, text));
  list.append(...all);
  list.addEventListener("toggle", (event) => {
    if (event.newState !== "open") return;
    // Below the button, and not beyond the right side of the page.
    const box = button.getBoundingClientRect();
    list.style.top = `${box.bottom + 4}px`;
    list.style.left = `${Math.max(8, Math.min(box.left, innerWidth - list.offsetWidth - 8))}px`;
    all[0].focus();
  });
  list.addEventListener("keydown", (event) => {
    const far = FAR[event.key];
    if (!far) return;
    event.preventDefault();
    all[(all.indexOf(document.activeElement) + far + all.length) % all.length].focus();
  });
  return h("div", { class: "menu-of" }, button, list);
}

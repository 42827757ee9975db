// Elements from code. Text is always text: nothing that users wrote is read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && typeof value === "boolean") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

let next = 0;

// An id that no other element has.
export function id() {
  next += 1;
  return `e${next}`;
}

// A labelled field, with a hint below or the unit beside what is written.
export function field(label, input, { hint, unit } = {}) {
  input.id ||= id();
  const text = hint ? h("span", { class: "small muted" }, hint) : null;
  const whole = unit ? h("div", { class: "with-unit" }, input, h("span", {}, unit)) : input;
  return h("div", { class: "field" }, h("label", { for: input.id }, label), whole, text);
}

// A dialog in front of the page, until one of its buttons is used.
export function dialog(title, ...children) {
  const node = h("dialog", { "aria-label": title }, h("form", { method: "dialog" }, h("h2", {}, title), ...children));
  node.addEventListener("close", () => node.remove());
  document.body.append(node);
  node.showModal();
  return node;
}

// Asks before `action`, which is called what `name` says.
export function confirmed(text, action, name = "Yes") {
  const node = h("dialog", { "aria-label": text },
    h("form", { method: "dialog" }, h("p", {}, text),
      h("div", { class: "row" }, h("button", { class: "danger", value: "yes" }, name), h("button", { value: "no" }, "Cancel"))));
  node.addEventListener("close", () => { node.remove(); if (node.returnValue === "yes") action(); });
  document.body.append(node);
  node.showModal();
}

// Says something once, also to those who listen to the page.
export function say(text) {
  const status = document.getElementById("status");
  status.textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { status.textContent = ""; }, 4000);
}

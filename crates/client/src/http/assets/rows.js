// A list of any length of which only the rows that are seen are elements: a grid for assistive technology,
// worked by keyboard as one thing.

import { h, id } from "./dom.js";

// Rows above and below those that are seen, so that scrolling shows no gap.
const SPARE = 8;

// `make` makes the element of a row, and `fill` writes an item to it. `open` and `remove` are called for the
// keys Enter and Delete. Items have an `info_hash`.
export function rows({ label, head, make, fill, open, remove, changed }) {
  let items = [];
  let current = null;
  let anchor = null;
  let frame = 0;
  const selected = new Set();
  // Elements by the item that they show, and those that show none.
  const used = new Map();
  let spare = [];

  const body = h("div", { class: "rows-body", role: "rowgroup" });
  const node = h("div", { class: "rows", role: "grid", tabindex: "0", "aria-label": label, "aria-multiselectable": "true" },
    h("div", { class: "rows-head", role: "rowgroup" }, head), body);
  const rowHeight = () => parseFloat(getComputedStyle(node).getPropertyValue("--row")) || 44;
  const indexOf = (hash) => items.findIndex((item) => item.info_hash === hash);

  const take = () => {
    const row = spare.pop() ?? make();
    row.id ||= id();
    row.setAttribute("role", "row");
    return row;
  };

  const draw = () => {
    frame = 0;
    const height = rowHeight();
    body.style.height = `${items.length * height}px`;
    const room = Math.ceil(node.clientHeight / height);
    // Of a list that has become shorter the place is known before it has scrolled there.
    const top = Math.max(0, Math.min(Math.floor(node.scrollTop / height), items.length - room));
    const [first, last] = [Math.max(0, top - SPARE), Math.min(items.length, top + room + 1 + SPARE)];
    const seen = new Set();
    for (let index = first; index < last; index += 1) seen.add(items[index].info_hash);
    for (const [hash, row] of used) {
      if (!seen.has(hash)) { used.delete(hash); spare.push(row); }
    }
    for (let index = first; index < last; index += 1) {
      const item = items[index];
      let row = used.get(item.info_hash);
      if (!row) { row = take(); used.set(item.info_hash, row); row.dataset.hash = item.info_hash; }
      // Elements are in the order of the list, for those that read the page.
      const place = body.children[index - first];
      if (place !== row) body.insertBefore(row, place ?? null);
      row.style.transform = `translateY(${index * height}px)`;
      row.setAttribute("aria-rowindex", index + 2);
      row.setAttribute("aria-selected", selected.has(item.info_hash));
      row.classList.toggle("current", item.info_hash === current);
      fill(row, item);
    }
    for (const row of spare) row.remove();
    spare = spare.slice(0, 2 * SPARE);
    node.setAttribute("aria-rowcount", items.length + 1);
    const row = used.get(current);
    if (row) node.setAttribute("aria-activedescendant", row.id);
    else node.removeAttribute("aria-activedescendant");
  };
  const schedule = () => { frame ||= requestAnimationFrame(draw); };

  const reveal = (index) => {
    const height = rowHeight();
    const top = index * height;
    const room = node.clientHeight - node.firstElementChild.offsetHeight;
    if (top < node.scrollTop) node.scrollTop = top;
    else if (top + height > node.scrollTop + room) node.scrollTop = top + height - room;
  };

  // Makes a row the current one, and selects it: alone, with those up to the last one chosen, or besides.
  const choose = (index, how) => {
    if (!items.length) return;
    const at = Math.max(0, Math.min(items.length - 1, index));
    current = items[at].info_hash;
    if (how === "range") {
      const from = Math.max(0, indexOf(anchor));
      selected.clear();
      for (let one = Math.min(from, at); one <= Math.max(from, at); one += 1) selected.add(items[one].info_hash);
    } else if (how === "toggle") {
      if (!selected.delete(current)) selected.add(current);
      anchor = current;
    } else {
      selected.clear();
      selected.add(current);
      anchor = current;
    }
    reveal(at);
    draw();
    changed([...selected]);
  };

  node.addEventListener("scroll", schedule, { passive: true });
  node.addEventListener("keydown", (event) => {
    if (event.target !== node) return;
    const page = Math.max(1, Math.floor(node.clientHeight / rowHeight()) - 2);
    const far = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity }[event.key];
    if (far !== undefined && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const at = indexOf(current);
      choose(at < 0 ? (far > 0 && far < Infinity ? 0 : far) : at + far, event.shiftKey ? "range" : "");
    } else if (event.key === "a" && (event.ctrlKey || event.metaKey)) {
      items.forEach((item) => selected.add(item.info_hash));
      draw();
      changed([...selected]);
    } else if (event.key === "Enter" && current && indexOf(current) >= 0) open(current);
    else if (event.key === "Delete" && selected.size) remove([...selected]);
    else return;
    event.preventDefault();
  });
  body.addEventListener("click", (event) => {
    const row = event.target.closest("[role=row]");
    if (!row) return;
    if (event.target.closest("a")) return;
    choose(indexOf(row.dataset.hash), event.shiftKey ? "range" : event.ctrlKey || event.metaKey ? "toggle" : "");
    node.focus({ preventScroll: true });
  });
  body.addEventListener("dblclick", (event) => {
    const row = event.target.closest("[role=row]");
    if (row) open(row.dataset.hash);
  });
  const observer = new ResizeObserver(schedule);
  observer.observe(node);

  return {
    node,
    // Shows these items. What is selected stays so, as far as it is there.
    show(next) {
      items = next;
      const there = new Set(items.map((item) => item.info_hash));
      const before = selected.size;
      for (const hash of selected) if (!there.has(hash)) selected.delete(hash);
      if (current && !there.has(current)) current = null;
      draw();
      if (selected.size !== before) changed([...selected]);
    },
    focus() {
      node.focus({ preventScroll: true });
      if (!current && items.length) choose(0, "");
    },
    select(hash) {
      const at = indexOf(hash);
      if (at >= 0) choose(at, "");
    },
    leave() { observer.disconnect(); cancelAnimationFrame(frame); },
  };
}

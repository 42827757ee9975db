// All links as a table.

import { asLinksCard } from "./as_links.js";
import { h, svg } from "./dom.js";
import { limitText, rate } from "./format.js";
import { listen, rateOf, store } from "./live.js";
import { DIRECTIONS, asName, asNumber, directionName, wanted } from "./names.js";

const PAGE = 100;

export function pill(link) {
  if (link.error) return h("span", { class: "pill bad", title: link.error }, "not in force");
  if (!link.in_force) return h("span", { class: "pill wait" }, "being set");
  return h("span", { class: "pill good" }, "in force");
}

// How much of the limit is used now.
function useCell(link, direction) {
  const now = h("span", { class: "now" });
  const bar = svg("rect", { class: "now", height: 6, rx: 3, width: 0 });
  const back = svg("rect", { class: "back", width: "100%", height: 6, rx: 3 });
  const picture = svg("svg", { class: "bar", "aria-hidden": "true" }, back, bar);
  const limit = wanted(link, direction);
  const update = () => {
    const used = rateOf(link.id, direction);
    const share = limit ? Math.min(1, used / limit) : 0;
    now.textContent = rate(used);
    bar.setAttribute("width", `${(100 * share).toFixed(1)}%`);
    picture.classList.toggle("full", share > 0.97);
  };
  update();
  const of = limit === null ? "no limit" : limit === 0 ? "no traffic" : `of ${limitText(limit)}`;
  const node = h("div", { class: `use-cell ${direction}` },
    h("div", { class: "rates" }, now, h("span", { class: "of" }, of)), picture);
  return { node, update };
}

function row(link) {
  const cells = DIRECTIONS.map((direction) => useCell(link, direction));
  const far = [asNumber(link.user_as), `at ${asName(link.attachment_point)}`].filter(Boolean).join(" · ");
  const node = h("tr", { class: "clickable" },
    h("td", { class: "to" }, h("a", { href: `#/link/${link.id}` }, asName(link.user_as)), h("small", {}, far)),
    h("td", { class: "owner" }, link.owner?.name ?? h("span", { class: "muted" }, "–")),
    DIRECTIONS.map((direction, index) =>
      h("td", { class: "use", "data-label": directionName(direction) }, cells[index].node)),
    h("td", { class: "state" }, pill(link)));
  return { node, update: () => cells.forEach((cell) => cell.update()) };
}

function matches(link, text) {
  const words = [link.user_as.label, link.user_as.isd_as, link.attachment_point.label, link.attachment_point.isd_as, link.owner?.name ?? "", link.user_as.ip ?? "", `#${link.id}`];
  return words.join(" ").toLowerCase().includes(text);
}

export function links() {
  const { me } = store;
  let shown = PAGE;
  let rows = [];
  const body = h("tbody");
  const count = h("p", { class: "muted" });
  const more = h("div", { class: "more", hidden: true },
    h("button", { type: "button", onclick: () => { shown += PAGE; draw(); } }, "Show more"));
  const empty = h("p", { class: "empty", hidden: true });
  const search = h("input", { type: "search", class: "search", placeholder: "Find a link", "aria-label": "Find a link by AS, label, user or address", oninput: () => { shown = PAGE; draw(); } });

  const draw = () => {
    const text = search.value.trim().toLowerCase();
    // One's own links come first.
    const own = (link) => (link.owner?.id === me.id ? 0 : 1);
    const found = store.links.filter((link) => matches(link, text)).sort((a, b) => own(a) - own(b) || a.id - b.id);
    rows = found.slice(0, shown).map(row);
    // Whoever works by keyboard stays where they are.
    const at = body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    body.replaceChildren(...rows.map((one) => one.node));
    if (at) body.querySelector(`a[href="${CSS.escape(at)}"]`)?.focus();
    more.hidden = found.length <= shown;
    empty.hidden = found.length > 0;
    empty.textContent = store.links.length ? "No link is like that." : "There are no links yet. An administrator adds them.";
    const mine = store.links.filter((link) => link.owner?.id === me.id).length;
    const all = store.links.length;
    count.textContent = `${all} ${all === 1 ? "link" : "links"}${me.role === "user" ? `, ${mine} of them yours` : ""}`;
  };
  draw();
  const others = asLinksCard();
  const leave = listen((what) => { if (what === "links") { draw(); others.draw(); } else rows.forEach((one) => one.update()); });
  const head = h("tr", {}, ["Link", "Owner", "To the user AS", "From the user AS", "State"].map((text) => h("th", { scope: "col" }, text)));
  const node = [
    h("div", { class: "head" }, h("div", {}, h("h1", {}, "Links"), count), search),
    h("section", { class: "card", "aria-label": "Links" },
      h("table", { class: "table links" }, h("thead", {}, head), body), empty, more),
    others.node,
  ];
  return { node, leave };
}

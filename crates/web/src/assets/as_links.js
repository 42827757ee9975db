// Peering links, and links between user ASes.

import { h } from "./dom.js";
import { limitText } from "./format.js";
import { store } from "./live.js";
import { DIRECTIONS, asName, propertiesText } from "./names.js";

export const AS_LINKS_TITLE = "Peering links, and links between user ASes";

function labelled(end) {
  return asName([...store.attachmentPoints, ...store.ases].find((one) => one.isd_as === end.isd_as) ?? end);
}

// The names of both ends.
export function endsText(link) {
  return link.ends.map(labelled).join(" – ");
}

// What the ASes are to each other, what each sends, and what the link is like.
export function kindText(link) {
  const [first, second] = link.ends.map(labelled);
  const kind = link.kind === "peer" ? "peers" : `${second} is a child of ${first}`;
  const limits = DIRECTIONS.map((direction, index) => {
    const limit = link.limit[direction];
    return limit === null ? "" : `${[first, second][index]} sends up to ${limitText(limit)}`;
  });
  return [`link ${link.id}`, kind, ...limits, propertiesText(link)].filter(Boolean).join(" · ");
}

// All of them as a table; nothing while there are none.
export function asLinksCard() {
  const body = h("tbody");
  const node = h("section", { class: "card", "aria-label": AS_LINKS_TITLE },
    h("header", {}, h("h2", {}, AS_LINKS_TITLE)), h("table", { class: "table list" }, body));
  const draw = () => {
    node.hidden = store.asLinks.length === 0;
    body.replaceChildren(...store.asLinks.map((link) => h("tr", {}, h("td", {}, h("b", {}, endsText(link)), h("span", { class: "sub" }, kindText(link))))));
  };
  draw();
  return { node, draw };
}

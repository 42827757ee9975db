// The trackers of a torrent, and what they said.

import { api } from "./api.js";
import { h } from "./dom.js";
import { poll } from "./store.js";

const KINDS = { working: "good", announcing: "wait", failing: "bad" };

function item(tracker) {
  const number = (count) => count ?? "?";
  return h("tr", {},
    h("td", { class: "path" }, tracker.url, tracker.error ? h("span", { class: "sub bad" }, tracker.error) : null,
      tracker.warning ? h("span", { class: "sub" }, tracker.warning) : null),
    h("td", {}, h("span", { class: `pill ${KINDS[tracker.state] ?? ""}` }, tracker.state)),
    h("td", { class: "number" }, tracker.tier), h("td", { class: "number" }, number(tracker.seeders)),
    h("td", { class: "number" }, number(tracker.leechers)), h("td", { class: "number" }, tracker.peers));
}

export function trackers(hash) {
  const body = h("tbody", {});
  const empty = h("p", { class: "empty" }, "It has no trackers.");
  let shown = "";
  const load = async () => {
    const { trackers: all } = await api("GET", `torrents/${hash}`);
    const key = JSON.stringify(all);
    if (key === shown) return;
    shown = key;
    empty.hidden = all.length > 0;
    body.replaceChildren(...all.map(item));
  };
  const stop = poll(load, 2000);
  const heads = ["Tracker", "State", "Tier", "Seeders", "Leechers", "Peers"].map((text) => h("th", { scope: "col" }, text));
  return {
    node: h("section", { class: "card", "aria-label": "Trackers" }, h("table", { class: "table" }, h("thead", {}, h("tr", {}, heads)), body), empty),
    leave() { stop(); },
  };
}

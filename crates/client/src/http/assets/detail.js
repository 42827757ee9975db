// One torrent: what it is, its rates and pieces, files, peers and trackers.

import { buttons } from "./actions.js";
import { api } from "./api.js";
import { h } from "./dom.js";
import { bytes, count, dateTime } from "./format.js";
import { files } from "./files.js";
import { torrentLimits } from "./limits.js";
import { peers } from "./peers.js";
import { pieceMap } from "./pieces.js";
import { ratesGraph } from "./rates.js";
import { listen, poll, store } from "./store.js";
import { trackers } from "./trackers.js";
import { duration, percent, size, statusKind, statusText, timeLeft } from "./words.js";

const TABS = [["overview", "Overview"], ["files", "Files"], ["peers", "Peers"], ["trackers", "Trackers"]];

function card(title, ...children) {
  return h("section", { class: "card", "aria-label": title }, h("header", {}, h("h2", {}, title)), h("div", { class: "body" }, ...children));
}

function facts() {
  const node = h("dl", { class: "facts" });
  return {
    node,
    show(torrent) {
      const { content, traffic } = torrent;
      const all = [
        ["Size", size(torrent)], ["Verified", bytes(content.verified_bytes)],
        ["Left", content.left_bytes === null ? "?" : bytes(content.left_bytes)],
        ["Received", bytes(traffic.downloaded_bytes)], ["Sent", bytes(traffic.uploaded_bytes)],
        ["Ratio", traffic.ratio.toFixed(2)], ["Seeded for", duration(traffic.seeded_seconds)],
        ["Queue", `place ${count(torrent.position + 1)} of ${count(store.torrents.size)}`],
        ["Folder", torrent.destination ? `${torrent.folder} until it is complete, then ${torrent.destination}` : torrent.folder], ["Added", dateTime(torrent.added * 1000)],
        ["Complete", torrent.completed === null ? "no" : dateTime(torrent.completed * 1000)],
        ["Labels", torrent.labels.join(", ") || "none"], ["Info-hash", torrent.info_hash],
      ];
      node.replaceChildren(...all.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text))));
    },
  };
}

function overview(hash) {
  const graph = ratesGraph();
  const map = pieceMap();
  const all = facts();
  const limits = torrentLimits([hash]);
  const stops = [
    poll(async () => graph.show(await api("GET", `torrents/${hash}/rates`))),
    poll(async () => map.show(await api("GET", `torrents/${hash}/pieces`)), 2000),
  ];
  return {
    node: h("div", { class: "main-part" }, card("Rates", graph.node), card("Pieces", map.node), card("Limits", limits.node), card("Facts", all.node)),
    show(torrent) { all.show(torrent); limits.show(torrent); },
    leave() { stops.forEach((stop) => stop()); graph.leave(); },
  };
}

const MAKE = { overview, files, peers, trackers };

export function detail(hash, name) {
  const tab = MAKE[name] ? name : "overview";
  const title = h("h1", {});
  const pill = h("span", { class: "pill" });
  const done = h("span", { class: "number" });
  const bar = h("span", { class: "bar", "aria-hidden": "true" }, h("span", {}));
  const error = h("p", { class: "notice bad", role: "alert", hidden: true });
  const actions = h("div", { class: "row actions", role: "toolbar", "aria-label": "This torrent" });
  const part = MAKE[tab](hash);
  let status = null;

  const show = () => {
    const torrent = store.torrents.get(hash);
    if (!torrent) { location.hash = "#/"; return; }
    title.textContent = torrent.name;
    pill.textContent = statusText(torrent);
    pill.className = `pill ${statusKind(torrent)}`;
    const rest = timeLeft(torrent);
    done.textContent = `${percent(torrent.content.done)}${rest ? `, ${rest} left` : ""}`;
    bar.firstElementChild.style.width = `${100 * (torrent.content.checked ?? torrent.content.done ?? 0)}%`;
    const reason = torrent.error ?? torrent.hint;
    error.hidden = reason === null;
    error.textContent = reason ?? "";
    // Buttons that are being pressed are not made anew.
    if (status !== torrent.status) { status = torrent.status; actions.replaceChildren(...buttons([hash])); }
    part.show?.(torrent);
  };
  const keys = (event) => {
    if (event.target.closest?.("input, select, textarea, dialog") || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") location.hash = "#/";
  };
  document.addEventListener("keydown", keys);
  const stop = listen((hashes, other) => { if (other || hashes.has(hash)) show(); });
  const tabs = h("nav", { class: "tabs", "aria-label": "Parts of the torrent" },
    TABS.map(([one, text]) => h("a", { href: `#/torrent/${hash}/${one}`, "aria-current": one === tab ? "page" : null }, text)));
  show();
  return {
    title: store.torrents.get(hash)?.name ?? "",
    node: h("div", { class: "main-part detail" },
      h("p", {}, h("a", { href: "#/" }, "All torrents")),
      h("div", { class: "head" }, h("div", {}, title, h("div", { class: "row" }, pill, done, bar))),
      error, actions, tabs, part.node),
    leave() {
      stop();
      part.leave?.();
      document.removeEventListener("keydown", keys);
    },
  };
}

// The peers of a torrent, each with the paths to it as hops.

import { api } from "./api.js";
import { h } from "./dom.js";
import { bytes, count, rate } from "./format.js";
import { poll } from "./store.js";
import { trends } from "./trend.js";
import { percent } from "./words.js";

// Most peers and paths of one that are shown: those with the highest rates.
const MAX_PEERS = 200;
const MAX_PATHS = 40;

const FLAGS = [
  ["incoming", "it connected to here"], ["serves", "it answers requests"], ["interesting", "it has what is wanted here"],
  ["served", "its requests are answered"], ["interested", "it wants blocks"], ["upload_only", "it downloads nothing"],
];

const sum = (one) => one.download_rate + one.upload_rate;

function rates(one) {
  const parts = [];
  if (one.download_rate) parts.push(`↓ ${rate(one.download_rate)}`);
  if (one.upload_rate) parts.push(`↑ ${rate(one.upload_rate)}`);
  return parts.join("  ") || "no traffic";
}

// The ASes of a path as a line from one to the next, with the interfaces between them.
function hops(path) {
  if (!path.hops.length) return h("p", { class: "muted small" }, "Its hops are not known here.");
  return h("ol", { class: "hops" }, path.hops.map((hop) => h("li", {},
    hop.ingress === null ? null : h("span", { class: "interface" }, hop.ingress),
    h("span", { class: "as" }, hop.isd_as),
    hop.egress === null ? null : h("span", { class: "interface" }, hop.egress))));
}

// The name of the rates of a peer or of one of its paths.
const nameOf = (peer, path) => (path ? `${peer.address} ${path.fingerprint}` : peer.address);

function pathItem(path, trend) {
  const facts = [path.state, rates(path), `received ${bytes(path.downloaded_bytes)}`, `sent ${bytes(path.uploaded_bytes)}`];
  if (path.rtt_ms !== null) facts.push(`${path.rtt_ms.toFixed(1)} ms`);
  return h("li", { class: `path ${path.state}` },
    hops(path),
    h("p", { class: "small number" }, facts.join(" · ")),
    trend,
    path.reason ? h("p", { class: "muted small" }, path.reason) : null,
    path.error ? h("p", { class: "bad small" }, path.error) : null);
}

function ipItem(path) {
  return h("p", { class: "small number" }, [path.state, rates(path), path.rtt_ms === null ? "" : `${path.rtt_ms.toFixed(1)} ms`].filter(Boolean).join(" · "), path.error ? ` · ${path.error}` : "");
}

function peerItem(peer, draw) {
  const isScion = peer.address.includes(",");
  const flags = FLAGS.filter(([name]) => peer.flags?.[name]).map(([, text]) => text).join(", ");
  const paths = [...peer.paths].sort((one, other) => sum(other) - sum(one) || (other.rtt_ms !== null) - (one.rtt_ms !== null));
  return h("li", { class: "peer" },
    h("div", { class: "peer-head" },
      h("b", { class: "mono" }, peer.address),
      h("span", { class: "muted" }, peer.client ?? "program not known"),
      h("span", { class: "number" }, peer.done === null ? "not connected" : `has ${percent(peer.done)}`),
      h("span", { class: "number" }, rates(peer))),
    flags ? h("p", { class: "muted small" }, flags) : null,
    draw(peer),
    peer.trouble ? h("p", { class: "bad small" }, peer.trouble) : null,
    isScion ? h("ul", { class: "paths" }, paths.slice(0, MAX_PATHS).map((path) => pathItem(path, draw(peer, path)))) : paths.map(ipItem),
    paths.length > MAX_PATHS ? h("p", { class: "muted small" }, `and ${paths.length - MAX_PATHS} more paths`) : null);
}

export function peers(hash) {
  const list = h("ul", { class: "peers" });
  const summary = h("p", { class: "muted small", role: "status" });
  const legend = h("p", { class: "legend" }, h("span", { class: "k-down" }, "received"), h("span", { class: "k-up" }, "sent"), "in the last two minutes, as far as they were seen here");
  const rates = trends();
  let shown = "";
  const load = async () => {
    const all = (await api("GET", `torrents/${hash}/peers`)).peers;
    const now = performance.now();
    const first = all.sort((one, other) => sum(other) - sum(one) || (other.flags !== null) - (one.flags !== null)).slice(0, MAX_PEERS);
    rates.add(first.flatMap((peer) => [peer, ...peer.paths].map((one) => ({ ...one, name: nameOf(peer, one === peer ? null : one) }))), now);
    legend.hidden = !first.some((peer) => rates.top(nameOf(peer)));
    const key = JSON.stringify(all);
    if (key === shown && legend.hidden) return;
    shown = key;
    const connected = all.filter((peer) => peer.flags !== null).length;
    const text = all.length ? `${count(all.length)} peers, ${count(connected)} of them connected` : "No peers are known; they are while it runs.";
    if (summary.textContent !== text) summary.textContent = text;
    // The lines of a peer and of its paths have one scale: the paths add up to the peer.
    const draw = (peer, path) => rates.draw(nameOf(peer, path), rates.top(nameOf(peer)), now);
    list.replaceChildren(...first.map((peer) => peerItem(peer, draw)));
  };
  const stop = poll(load);
  return {
    node: h("section", { class: "card", "aria-label": "Peers" }, h("header", {}, summary, legend), list),
    leave() { stop(); },
  };
}

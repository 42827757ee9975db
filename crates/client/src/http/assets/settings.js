// Settings of all torrents: what is changed here holds at once, and is kept.

import { api } from "./api.js";
import { numberLimit, ratePair, saver, select, toggle, valueField } from "./controls.js";
import { h } from "./dom.js";
import { groups } from "./groups.js";
import { alternativeSwitch } from "./limits.js";
import { poll, store } from "./store.js";

const INTERVAL = 5000;

const QUEUE = [
  { name: "downloads", label: "Downloads at once", unit: "torrents", min: 1, step: 1, usual: 5 },
  { name: "seeds", label: "Seeds at once", unit: "torrents", min: 1, step: 1, usual: 50 },
  { name: "ratio", label: "Seed up to a ratio", unit: "× its size", usual: 2 },
  { name: "seconds", label: "Seed for a time", unit: "hours", factor: 3600, usual: 24 },
  { name: "idle_seconds", label: "Seed until nothing was sent for", unit: "minutes", factor: 60, usual: 30 },
];
const ENCRYPTION = [["disable", "Never"], ["allow", "If the peer wants it"], ["prefer", "Where the peer can"], ["require", "Always: peers that cannot are refused"]];
const NOT_CHOSEN = ["", "If the peer wants it (nothing chosen)"];
const TRANSPORT = [["tcp,utp", "TCP and uTP"], ["tcp", "TCP alone"], ["utp", "uTP alone"]];
const WAYS = [
  ["dht", "Search the DHT", "The DHT is searched", "The DHT is not searched"],
  ["local", "Look for peers on the own network", "Peers are looked for on the own network", "Peers are not looked for on the own network"],
  ["pex", "Let peers name others (PEX)", "Peers name others", "Peers do not name others"],
];
const DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

function card(title, about, ...children) {
  return h("section", { class: "card", "aria-label": title },
    h("header", {}, h("h2", {}, title), about ? h("p", { class: "small muted" }, about) : null), h("div", { class: "body main-part" }, ...children));
}

function rates(set) {
  const both = ratePair(set);
  return { node: card("Rates of all torrents", "Each torrent and group may have limits of its own.", both.node), show: both.show };
}

const two = (number) => String(number).padStart(2, "0");
const clock = (minutes) => `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;

function minutesOf(text) {
  const [hours, minutes] = text.split(":").map(Number);
  return 60 * hours + minutes;
}

function daysField(set) {
  const saves = saver(set);
  const boxes = DAYS.map((day) => h("input", { type: "checkbox", value: day }));
  boxes.forEach((box) => box.addEventListener("change", async () => {
    const days = boxes.filter((one) => one.checked).map((one) => one.value);
    if (!await saves.save({ days }, days.length ? `Switched on: ${days.join(", ")}` : "Switched on no day")) box.checked = !box.checked;
  }));
  return {
    node: h("fieldset", { class: "days" }, h("legend", { class: "label" }, "Days on which they are switched on"),
      h("div", { class: "row" }, boxes.map((box) => h("label", { class: "check" }, box, box.value[0].toUpperCase() + box.value.slice(1)))), saves.error),
    show(days) { if (!saves.isBusy()) boxes.forEach((box) => { box.checked = days.includes(box.value); }); },
  };
}

function alternative(set) {
  const alter = (change) => set({ alternative: change });
  const schedule = (change) => alter({ schedule: change });
  const active = alternativeSwitch(set);
  const both = ratePair(alter, { endless: false, about: "Alternative" });
  const planned = toggle({
    label: "Switch them at these times", on: "The alternative limits are switched by the clock", off: "The alternative limits are switched by hand alone",
    of: (is) => ({ enabled: is }),
  }, schedule);
  const at = (label, name) => valueField({
    label, input: h("input", { type: "time", required: true }), of: (text) => ({ [name]: minutesOf(text) }), said: (text) => `${label}: ${text}`,
  }, schedule);
  const [begin, end, days] = [at("On from", "begin"), at("Until", "end"), daysField(schedule)];
  return {
    node: card("Alternative limits", "They hold in place of those above while they are switched on.",
      active.node, both.node, planned.node, h("div", { class: "pair" }, begin.node, end.node), days.node),
    show({ alternative: now }) {
      active.show(now);
      both.show(now);
      planned.show(now.schedule.enabled);
      begin.show(clock(now.schedule.begin));
      end.show(clock(now.schedule.end));
      days.show(now.schedule.days);
    },
  };
}

function queue(set) {
  const all = QUEUE.map((limit) => [limit.name, numberLimit(limit, (change) => set({ queue: change }))]);
  return {
    node: card("Queue and seeding", "Torrents that find no place wait. Limits of seeding are of those that have none of their own.", h("div", { class: "pair" }, all.map(([, one]) => one.node))),
    show(about) { all.forEach(([name, one]) => one.show(about.queue[name])); },
  };
}

function peers(set) {
  const number = (name, label) => [name, valueField({
    label, input: h("input", { type: "number", min: 0, max: 4294967295, step: 1, required: true }), of: (text) => ({ [name]: Number(text) }), said: (text) => `${label}: ${text}`,
  }, set)];
  const numbers = [number("max_peers", "Peers of all torrents at most"), number("max_torrent_peers", "Peers of each torrent at most")];
  const network = (change) => set({ network: change });
  const encryptions = select([NOT_CHOSEN, ...ENCRYPTION]);
  encryptions.options[0].disabled = true;
  const encryption = valueField({ label: "Encrypt connections with IP peers", input: encryptions, of: (text) => ({ encryption: text }), said: (text) => `Encryption: ${text}` }, network);
  const transport = valueField({ label: "Reach IP peers over", input: select(TRANSPORT), of: (text) => ({ transport: text }), said: (text) => `IP peers: ${text}` }, network);
  const ways = WAYS.map(([name, label, on, off]) => [name, toggle({ label, on, off, of: (is) => ({ [name]: is }) }, network)]);
  return {
    node: card("Peers", "For connections that begin from now on. What the daemon was started without cannot be switched on.",
      h("div", { class: "pair" }, numbers.map(([, one]) => one.node), encryption.node, transport.node), ways.map(([, one]) => one.node)),
    show(about) {
      numbers.forEach(([name, one]) => one.show(about[name]));
      encryption.show(about.network.encryption ?? "");
      transport.show(about.network.transport);
      ways.forEach(([name, one]) => one.show(about.network[name]));
    },
  };
}

function folder(set) {
  const one = valueField({
    label: "Folder for downloads", input: h("input", { required: true, spellcheck: "false" }), hint: "A whole path on the host of the daemon, for torrents that are added from now on.",
    of: (text) => ({ download_dir: text.trim() }), said: (text) => `Folder for downloads: ${text}`,
  }, set);
  const unfinished = valueField({
    label: "Folder for unfinished content", input: h("input", { spellcheck: "false", placeholder: "where it stays" }),
    hint: "Content is moved from there once it is complete. None when empty.",
    of: (text) => ({ incomplete_dir: text.trim() }), said: (text) => `Folder for unfinished content: ${text || "none"}`,
  }, set);
  return {
    node: card("Folders", "", h("div", { class: "pair" }, one.node, unfinished.node)),
    show(about) { one.show(about.download_dir); unfinished.show(about.incomplete_dir ?? ""); },
  };
}

function mapping(port) {
  if (!port) return "not asked for";
  const at = [port.address, port.tcp ? `TCP ${port.tcp}` : null, port.udp ? `UDP ${port.udp}` : null].filter(Boolean).join(", ");
  return port.reason ?? (at ? `${port.state}: ${at}` : port.state);
}

function fixed() {
  const list = h("dl", { class: "facts" });
  return {
    node: card("Set when the daemon is started", "Start it again to change these: the flag of each is in brackets.", list),
    show(about) {
      const all = [
        ["SCION peers connect at (--scion)", about.scion ?? "nowhere"], ["IP peers connect at (--tcp)", about.tcp ?? "nowhere"],
        ["Port at the gateway (--map-port)", mapping(about.port_mapping)], ["Version", about.version],
      ];
      list.replaceChildren(...all.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text))));
    },
  };
}

export function settings() {
  const show = () => parts.forEach((part) => part.show(store.about));
  const set = async (change) => {
    store.about = await api("PATCH", "daemon", change);
    show();
  };
  const parts = [rates, alternative, groups, queue, peers, folder, fixed].map((make) => make(set));
  let stop = () => {};
  return {
    title: "Settings",
    node: h("div", { class: "main-part settings" },
      h("div", { class: "head" }, h("div", {}, h("h1", {}, "Settings"), h("p", { class: "muted small" }, "Of all torrents. Each change holds at once, and is kept."))),
      parts.map((part) => part.node)),
    entered() {
      show();
      stop = poll(async () => { store.about = await api("GET", "daemon"); show(); }, INTERVAL);
    },
    leave() { stop(); },
  };
}

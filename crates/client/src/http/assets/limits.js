// Limits of one torrent, and the rates of all together.

import { api } from "./api.js";
import { numberLimit, ratePair, saver, select, toggle, valueField } from "./controls.js";
import { submitDialog } from "./dialogs.js";
import { dialog, field, h, say } from "./dom.js";
import { each } from "./each.js";
import { exactRate } from "./format.js";
import { listen, put, refresh, store } from "./store.js";

const AS_ALL = "As for all torrents";
const OTHER = [
  { name: "ratio", label: "Seed up to a ratio", unit: "× its size", usual: 2, all: AS_ALL },
  { name: "seconds", label: "Seed for a time", unit: "hours", factor: 3600, usual: 24, all: AS_ALL },
  { name: "idle_seconds", label: "Seed until nothing was sent for", unit: "minutes", factor: 60, usual: 30, all: AS_ALL },
  { name: "max_peers", label: "Peers at most", unit: "peers", step: 1, usual: 50, all: AS_ALL },
];

const PRIORITIES = [["low", "Less than others"], ["normal", "As others"], ["high", "More than others"]];

// The bandwidth group of a torrent, which may be made here.
function groupField(set) {
  const input = select([]);
  const saves = saver(set);
  let names = null;
  let shown = "";
  const create = () => {
    const name = h("input", { required: true, spellcheck: "false" });
    submitDialog("New group", [field("Name", name, { hint: "Its limits are set in Settings." })], {
      name: "Put into it",
      async submit() {
        await set({ group: name.value.trim() });
        store.about = await api("GET", "daemon");
        return `Bandwidth group: ${name.value.trim()}`;
      },
    });
  };
  input.addEventListener("change", async () => {
    const name = input.value;
    const isNew = input.selectedIndex === input.options.length - 1;
    if (isNew) input.value = shown;
    if (isNew) create();
    else if (!await saves.save({ group: name }, `Bandwidth group: ${name || "none"}`)) input.value = shown;
  });
  return {
    node: h("div", { class: "main-part limit-choice" }, field("Bandwidth group", input, { hint: "The limits of a group hold for its torrents together." }), saves.error),
    show(group) {
      shown = group ?? "";
      if (saves.isBusy() || document.activeElement === input) return;
      const known = new Set([...(store.about?.groups ?? []).map((one) => one.name), shown].filter(Boolean));
      const key = JSON.stringify([...known]);
      if (key !== names) {
        names = key;
        input.replaceChildren(...[["", "None"], ...[...known].map((name) => [name, name]), ["", "New group …"]].map(([value, text]) => h("option", { value }, text)));
      }
      input.value = shown;
    },
  };
}

// Limits that each of these torrents gets.
export function torrentLimits(hashes) {
  const set = async (change) => {
    const failed = await each(hashes, async (hash) => {
      const torrent = await api("PATCH", `torrents/${hash}`, change);
      // Of many all are shown at once.
      if (hashes.length === 1) put(torrent);
    });
    if (hashes.length > 1) refresh();
    if (failed) throw new Error(failed);
  };
  const both = ratePair(set);
  const other = OTHER.map((limit) => [limit.name, numberLimit(limit, set)]);
  const group = groupField(set);
  const priority = valueField({
    label: "Share of rates that are limited", input: select(PRIORITIES), hint: "Each step is four times as much.",
    of: (text) => ({ priority: text }), said: (text) => `Share of rates: ${text.toLowerCase()}`,
  }, set);
  const exempt = toggle({
    label: "Neither the limits of its group nor those of all torrents hold for it",
    on: "Only its own limits hold", off: "The limits of its group and of all torrents hold, too", of: (is) => ({ exempt: is }),
  }, set);
  // Groups may have been made since.
  api("GET", "daemon").then((about) => { store.about = about; }, () => {});
  return {
    node: h("div", { class: "main-part" }, both.node, h("div", { class: "pair" }, other.map(([, one]) => one.node), group.node, priority.node), exempt.node),
    show({ limits }) {
      both.show(limits);
      other.forEach(([name, one]) => one.show(limits[name]));
      group.show(limits.group);
      priority.show(limits.priority);
      exempt.show(limits.exempt);
    },
  };
}

export function limitsDialog(hashes) {
  const [first] = hashes.map((hash) => store.torrents.get(hash)).filter(Boolean);
  if (!first) return;
  const limits = torrentLimits(hashes);
  const title = hashes.length === 1 ? `Limits of ${first.name}` : `Limits of ${hashes.length} torrents`;
  const several = hashes.length > 1 ? h("p", { class: "small muted" }, `Each of them gets what is changed here. Those of ${first.name} are shown.`) : null;
  const node = dialog(title, several ?? "", limits.node, h("div", { class: "row" }, h("button", { value: "close", formnovalidate: true }, "Close")));
  const show = () => {
    const torrent = store.torrents.get(first.info_hash);
    if (torrent) limits.show(torrent);
  };
  node.addEventListener("close", listen(show));
  show();
}

// A switch for the limits that hold in place of the others at times.
export function alternativeSwitch(set) {
  const control = toggle({
    label: "Alternative limits", on: "The alternative limits hold", off: "The alternative limits do not hold",
    of: (is) => ({ alternative: { active: is } }),
  }, set);
  return {
    node: control.node,
    show(limits) {
      control.show(limits.active, `Alternative limits: ${exactRate(limits.download_rate)} received, ${exactRate(limits.upload_rate)} sent`);
    },
  };
}

export async function allLimits() {
  const set = async (change) => { store.about = await api("PATCH", "daemon", change); };
  const both = ratePair(set);
  const other = alternativeSwitch(set);
  const more = h("a", { href: "#/settings" }, "All settings");
  const node = dialog("Limits of all torrents",
    h("p", { class: "small muted" }, "How fast all torrents together send and receive. Each may have limits of its own."),
    both.node, other.node, h("p", {}, more), h("div", { class: "row" }, h("button", { value: "close", formnovalidate: true }, "Close")));
  more.addEventListener("click", () => node.close());
  try {
    store.about = await api("GET", "daemon");
    both.show(store.about);
    other.show(store.about.alternative);
  } catch (problem) {
    say(problem.message);
  }
}

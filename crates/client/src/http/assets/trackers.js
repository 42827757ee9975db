// The trackers of a torrent: what they said, and when they are asked next; they are added, changed, removed.

import { api } from "./api.js";
import { submitDialog } from "./dialogs.js";
import { confirmed, field, h, say } from "./dom.js";
import { count } from "./format.js";
import { poll } from "./store.js";
import { duration, isActive } from "./words.js";

const KINDS = { working: "good", announcing: "wait", failing: "bad" };
const HEADS = ["Tracker", "State", "Tier", "Last answer", "Asked next", "Seeders", "Leechers", "Peers", "Remove"];

const urls = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

// The tiers of what is written with an empty line between them.
export function tiersOf(text) {
  return text.split(/\n\s*\n/).map(urls).filter((tier) => tier.length);
}

export function textOf(trackers) {
  const tiers = new Map();
  for (const { tier, url } of trackers) tiers.set(tier, [...(tiers.get(tier) ?? []), url]);
  return [...tiers.values()].map((tier) => tier.join("\n")).join("\n\n");
}

// When a tracker answered, or what it failed to.
function last(tracker) {
  if (tracker.answer_age === null) return "none yet";
  return `${tracker.error ? "failed " : ""}${duration(tracker.answer_age)} ago`;
}

function next(tracker) {
  if (tracker.state === "announcing") return "now";
  if (tracker.next_in === null) return "not its turn";
  return tracker.next_in ? `in ${duration(tracker.next_in)}` : "now";
}

// A row that stays the same element while its tracker is shown.
function row(url, remove) {
  const error = h("span", { class: "sub bad", hidden: true });
  const warning = h("span", { class: "sub", hidden: true });
  const pill = h("span", { class: "pill" });
  // On phones the heads of the columns are not seen.
  const numbers = HEADS.slice(2, -1).map((head) => h("td", { class: "number named", "data-name": head }));
  const put = (node, text) => {
    node.textContent = text ?? "";
    node.hidden = !text;
  };
  return {
    node: h("tr", {}, h("td", { class: "path" }, url, error, warning), h("td", {}, pill), numbers,
      h("td", {}, h("button", { type: "button", class: "danger", "aria-label": `Remove ${url}`, onclick: remove }, "Remove"))),
    fill(tracker) {
      put(error, tracker.error);
      put(warning, tracker.warning);
      pill.textContent = tracker.state;
      pill.className = `pill ${KINDS[tracker.state] ?? ""}`;
      const texts = [tracker.tier, last(tracker), next(tracker), tracker.seeders ?? "?", tracker.leechers ?? "?", tracker.peers];
      numbers.forEach((cell, at) => { cell.textContent = texts[at]; });
    },
  };
}

export function trackers(hash) {
  let all = [];
  const made = new Map();
  const body = h("tbody", {});
  const summary = h("p", { class: "muted small", role: "status" });
  const heads = HEADS.map((text) => h("th", { scope: "col" }, text));
  const table = h("div", { class: "wide" }, h("table", { class: "table" }, h("thead", {}, h("tr", {}, heads)), body));
  const empty = h("p", { class: "empty", hidden: true }, "It has no trackers: add one, or let the daemon find peers in other ways.");
  const ask = h("button", { type: "button" }, "Ask again");

  const change = async (what) => {
    await api("PATCH", `torrents/${hash}`, { trackers: what });
    await load();
  };
  const remove = (url) => confirmed(`Remove the tracker ${url}?`, async () => {
    try {
      await change({ remove: [url] });
      say(`Removed ${url}`);
    } catch (problem) {
      say(problem.message);
    }
  }, "Remove the tracker");
  const add = () => {
    const text = h("textarea", { rows: 4, spellcheck: "false", required: true, placeholder: "https://… or udp://…" });
    submitDialog("Add trackers", [field("URLs", text, { hint: "One a line; each is a tier of its own, asked after those before it." })], {
      name: "Add",
      async submit() {
        await change({ add: urls(text.value) });
        return `Added ${urls(text.value).join(", ")}`;
      },
    });
  };
  const edit = () => {
    const text = h("textarea", { rows: 8, spellcheck: "false" });
    text.value = textOf(all);
    submitDialog("Change tiers", [field("URLs", text, { hint: "One a line, with an empty line between tiers. Of each tier one is asked; the others take its place when it fails." })], {
      name: "Set",
      async submit() {
        await change(tiersOf(text.value));
        return "The trackers are changed";
      },
    });
  };
  ask.addEventListener("click", async () => {
    try {
      await api("POST", `torrents/${hash}/announce`);
      say("The trackers are asked again as soon as they allow it");
    } catch (problem) {
      say(problem.message);
    }
    load().catch(() => {});
  });

  async function load() {
    ({ trackers: all } = await api("GET", `torrents/${hash}`));
    const there = new Set(all.map((tracker) => tracker.url));
    for (const [url, { node }] of made) if (!there.has(url)) { made.delete(url); node.remove(); }
    all.forEach((tracker, at) => {
      if (!made.has(tracker.url)) made.set(tracker.url, row(tracker.url, () => remove(tracker.url)));
      const one = made.get(tracker.url);
      if (body.children[at] !== one.node) body.insertBefore(one.node, body.children[at] ?? null);
      one.fill(tracker);
    });
    empty.hidden = all.length > 0;
    table.hidden = !empty.hidden;
    const working = all.filter((tracker) => tracker.state === "working").length;
    const text = `${count(all.length)} tracker${all.length === 1 ? "" : "s"}, ${count(working)} working`;
    if (summary.textContent !== text) summary.textContent = text;
  }
  const stop = poll(load, 2000);
  return {
    node: h("section", { class: "card", "aria-label": "Trackers" },
      h("header", {}, summary, h("div", { class: "row" }, ask,
        h("button", { type: "button", onclick: add }, "Add trackers …"), h("button", { type: "button", onclick: edit }, "Change tiers …"))),
      table, empty),
    // One that does not run is announced when it does.
    show(torrent) { ask.disabled = !isActive(torrent); },
    leave() { stop(); },
  };
}

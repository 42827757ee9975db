// Limits of rates, by sliders: of one torrent, and of all together.

import { api } from "./api.js";
import { field, h, id, say } from "./dom.js";
import { exactRate } from "./format.js";
import { put, store } from "./store.js";

// The slider goes from the least to the greatest by factors, and has no limit at its right end.
const LEAST = 80_000;
const STEPS = 80;
const PER_DECADE = 16;

const WORDS = { download_rate: "Received", upload_rate: "Sent" };

// The limit at a step of the slider, in bit/s, with two digits; `null` at the end.
export function rateAt(step) {
  if (step >= STEPS) return null;
  const bits = LEAST * 10 ** (step / PER_DECADE);
  const unit = 10 ** (Math.floor(Math.log10(bits)) - 1);
  return Math.round(bits / unit) * unit;
}

// The step that is nearest to a limit.
export function stepOf(bits) {
  if (bits === null) return STEPS;
  return Math.max(0, Math.min(STEPS - 1, Math.round(PER_DECADE * Math.log10(Math.max(bits, 1) / LEAST))));
}

const text = (bits) => (bits === null ? "no limit" : exactRate(bits));
const ofApi = (limit) => (limit === "unlimited" ? null : limit);

// A slider that calls `set` with a limit once it is let go.
function slider(name, set) {
  const label = id();
  const output = h("output", {});
  const range = h("input", { type: "range", min: 0, max: STEPS, step: 1, "aria-labelledby": label });
  let busy = false;
  let moved = false;
  const show = (bits) => {
    output.textContent = text(bits);
    range.setAttribute("aria-valuetext", text(bits));
    range.style.setProperty("--at", `calc(11px + (100% - 22px) * ${range.value / STEPS})`);
  };
  range.addEventListener("input", () => { moved = true; show(rateAt(Number(range.value))); });
  range.addEventListener("change", async () => {
    busy = true;
    try {
      await set(rateAt(Number(range.value)));
    } catch (problem) {
      say(problem.message);
    } finally {
      busy = false;
      moved = false;
    }
  });
  return {
    node: h("div", { class: "limit-slider" }, h("div", { class: "limit-now" }, h("span", { class: "label", id: label }, name), output), range),
    show(limit) {
      // What a hand is on stays as it is.
      if (busy || moved) return;
      const bits = ofApi(limit);
      range.value = stepOf(bits);
      show(bits);
    },
  };
}

function pair(set) {
  const sliders = Object.entries(WORDS).map(([name, word]) => [name, slider(word, async (bits) => {
    await set({ [name]: bits ?? "unlimited" });
    say(`${word}: ${text(bits)}`);
  })]);
  return {
    node: h("div", { class: "pair" }, sliders.map(([, one]) => one.node)),
    show(limits) { sliders.forEach(([name, one]) => one.show(limits[name])); },
  };
}

// Where seeding ends: the field of the API, and the number that is written for it.
const SEEDING = [
  { name: "ratio", label: "Seed up to a ratio", word: "ratio", unit: "× its size", factor: 1, usual: 2 },
  { name: "seconds", label: "Seed for a time", word: "time", unit: "hours", factor: 3600, usual: 24 },
];

// A choice between the daemon's limit, none, and a number of one's own.
function seedLimit({ name, label, word, unit, factor, usual }, set) {
  const options = [["default", "As for all torrents"], ["unlimited", "No limit"], ["own", "This much"]];
  const choice = h("select", {}, options.map(([value, text]) => h("option", { value }, text)));
  const number = h("input", { type: "number", min: 0, step: "any", required: true, "aria-label": `${label}: ${unit}` });
  const own = h("div", { class: "with-unit" }, number, h("span", {}, unit));
  let busy = false;
  const save = async () => {
    own.hidden = choice.value !== "own";
    if (choice.value === "own" && !number.value) number.value = usual;
    if (choice.value === "own" && !number.reportValidity()) return;
    busy = true;
    try {
      await set({ [name]: choice.value === "own" ? Number(number.value) * factor : choice.value });
      say(`Seeding ends by ${word}: ${choice.value === "own" ? `${number.value} ${unit}` : choice.selectedOptions[0].textContent.toLowerCase()}`);
    } catch (problem) {
      say(problem.message);
    } finally {
      busy = false;
    }
  };
  choice.addEventListener("change", save);
  number.addEventListener("change", save);
  return {
    node: h("div", { class: "main-part" }, field(label, choice), own),
    show(limit) {
      // What is being changed stays as it is.
      if (busy || [choice, number].includes(document.activeElement)) return;
      const isOwn = typeof limit === "number";
      choice.value = isOwn ? "own" : limit;
      number.value = isOwn ? limit / factor : "";
      own.hidden = !isOwn;
    },
  };
}

export function torrentLimits(hash) {
  const set = async (change) => put(await api("PATCH", `torrents/${hash}`, change));
  const both = pair(set);
  const seeding = SEEDING.map((limit) => [limit.name, seedLimit(limit, set)]);
  return {
    node: h("div", { class: "main-part" }, both.node, h("div", { class: "pair" }, seeding.map(([, one]) => one.node))),
    show(torrent) {
      both.show(torrent.limits);
      seeding.forEach(([name, one]) => one.show(torrent.limits[name]));
    },
  };
}

// A switch for the limits that hold in place of the others at times.
function alternative(set) {
  const active = h("input", { type: "checkbox" });
  const rates = h("span", {});
  active.addEventListener("change", async () => {
    try {
      await set({ alternative: { active: active.checked } });
      say(active.checked ? "The alternative limits hold" : "The alternative limits do not hold");
    } catch (problem) {
      active.checked = !active.checked;
      say(problem.message);
    }
  });
  return {
    node: h("label", { class: "check" }, active, rates),
    show(limits) {
      active.checked = limits.active;
      rates.textContent = `Alternative limits: ${exactRate(limits.download_rate)} received, ${exactRate(limits.upload_rate)} sent`;
    },
  };
}

export async function allLimits() {
  const set = async (change) => { store.about = await api("PATCH", "daemon", change); };
  const both = pair(set);
  const other = alternative(set);
  const node = h("dialog", { "aria-label": "Limits of all torrents" }, h("form", { method: "dialog" },
    h("h2", {}, "Limits of all torrents"),
    h("p", { class: "small muted" }, "How fast all torrents together send and receive. Each may have limits of its own."),
    both.node, other.node, h("div", { class: "row" }, h("button", { value: "close" }, "Close"))));
  node.addEventListener("close", () => node.remove());
  document.body.append(node);
  node.showModal();
  try {
    store.about = await api("GET", "daemon");
    both.show(store.about);
    other.show(store.about.alternative);
  } catch (problem) {
    say(problem.message);
  }
}

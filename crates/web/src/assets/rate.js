// Setting a limit: a slider from nothing to the maximum, a number, and what became of it.

import { api } from "./api.js";
import { field, h, id, svg } from "./dom.js";
import { exactRate, limitText, time, unitOf } from "./format.js";
import { mayLimit, rateOf } from "./live.js";
import { MAX_LIMIT, MIN_LIMIT, directionPhrase, wanted } from "./names.js";

const STEPS = 1000;
// The right end where there is no maximum.
const OPEN_END = 1e9;

// A limit that the slider stops at: two digits are enough between the ends.
function rounded(bits, end) {
  if (bits <= 0) return 0;
  if (bits >= end) return end;
  const step = 10 ** Math.floor(Math.log10(end) - 2);
  return Math.max(MIN_LIMIT, Math.round(bits / step) * step);
}

export function limitControl(link, direction) {
  let current = link;
  let pending;
  let busy = false;
  const may = () => mayLimit(current);
  const maximum = () => current.maximum[direction];
  const end = () => maximum() ?? Math.max(OPEN_END, 2 * (current.limit[direction] ?? 0));
  const [unitSize, unit] = unitOf(end());

  const label = id();
  const shown = h("output", {});
  const range = h("input", { type: "range", min: 0, max: STEPS, step: 10, "aria-labelledby": label });
  const input = h("input", { type: "number", min: 0, step: "any", inputmode: "decimal" });
  const apply = h("button", { class: "primary", type: "submit" }, "Apply");
  const revert = h("button", { class: "plain", type: "button" }, "Revert");
  const result = h("p", { class: "result", role: "status" });
  const picture = svg("svg", { "aria-hidden": "true" });
  const note = h("span", { class: "muted small" });

  const say = (text, kind) => { result.textContent = text; result.className = `result ${kind ?? ""}`; };
  const value = () => (pending === undefined ? wanted(current, direction) : pending);

  const scale = () => {
    const at = (share) => `${(100 * share).toFixed(2)}%`;
    const used = Math.min(1, rateOf(current.id, direction) / end());
    const ticks = [0, 0.25, 0.5, 0.75].map((share) => svg("line", { class: "tick", x1: at(share), x2: at(share), y1: 8, y2: 14 }));
    const inner = svg("g", {},
      svg("rect", { class: "use-back", width: "100%", height: 5, rx: 2.5 }),
      svg("rect", { class: "use", width: at(used), height: 5, rx: 2.5 }),
      ticks,
      svg("line", { class: "maximum", x1: "100%", x2: "100%", y1: -3, y2: 16 }),
      svg("text", { x: 0, y: 30 }, "0"),
      svg("text", { class: "maximum-text", x: "100%", y: 30, "text-anchor": "end" },
        maximum() === null ? "no maximum" : `maximum ${exactRate(maximum())}`));
    picture.replaceChildren(inner);
  };

  const draw = () => {
    const bits = value();
    const share = bits === null ? 1 : Math.min(1, bits / end());
    shown.textContent = limitText(bits);
    range.value = Math.round(share * STEPS);
    range.style.setProperty("--at", `calc(11px + (100% - 22px) * ${share})`);
    range.setAttribute("aria-valuetext", limitText(bits));
    if (document.activeElement !== input) input.value = bits === null ? "" : bits / unitSize;
    input.placeholder = maximum() === null ? "no limit" : "";
    const changed = pending !== undefined && pending !== wanted(current, direction);
    apply.disabled = busy || !changed;
    revert.hidden = !changed;
    for (const one of [range, input]) one.disabled = !may();
    form.classList.toggle("reads", !may());
    set.hidden = !may();
    note.textContent = changed ? `now ${limitText(wanted(current, direction))}, not applied yet` : "";
    scale();
  };

  const check = (bits) => {
    if (Number.isNaN(bits) || bits < 0) return "Give a number from 0 on";
    if (maximum() !== null && bits > maximum()) return `The maximum is ${exactRate(maximum())}`;
    if (bits > MAX_LIMIT) return `The highest limit is ${exactRate(MAX_LIMIT)}`;
    if (bits > 0 && bits < MIN_LIMIT) return `The lowest limit is ${exactRate(MIN_LIMIT)}, or 0 for no traffic`;
    return "";
  };

  range.addEventListener("input", () => {
    const position = Number(range.value);
    const open = position === STEPS && maximum() === null;
    pending = open ? null : rounded((position / STEPS) * end(), end());
    input.setAttribute("aria-invalid", "false");
    say("");
    draw();
  });
  range.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); form.requestSubmit(); }
    if (event.key === "Escape") undo();
  });
  input.addEventListener("input", () => {
    const text = input.value.trim();
    const bits = text === "" && maximum() === null && input.validity.valid ? null : Math.round(Number.parseFloat(text) * unitSize);
    const problem = bits === null ? "" : check(bits);
    input.setAttribute("aria-invalid", String(problem !== ""));
    say(problem, "bad");
    pending = problem ? undefined : bits;
    draw();
  });
  const undo = () => {
    pending = undefined;
    input.setAttribute("aria-invalid", "false");
    say("");
    if (document.activeElement === input) input.blur();
    draw();
  };
  revert.addEventListener("click", () => { undo(); range.focus(); });

  const submit = async (event) => {
    event.preventDefault();
    if (busy || apply.disabled) return;
    busy = true;
    const to = pending;
    const begun = performance.now();
    say("Setting …");
    draw();
    try {
      current = await api("PATCH", `links/${current.id}?wait=5`, { limit: { [direction]: to } });
      pending = undefined;
      const took = ((performance.now() - begun) / 1000).toFixed(1);
      if (current.error) say(`Stored, but not in force: ${current.error}`, "bad");
      else if (current.in_force) say(`${limitText(to)} in force at ${time(Date.now())}, ${took} s after Apply`, "good");
      else say("Stored. The attachment point has not taken it over yet", "");
    } catch (problem) {
      say(`Not changed: ${problem.message}`, "bad");
    }
    busy = false;
    draw();
  };

  const set = h("div", { class: "limit-set" },
    field("Limit", input, { unit }), apply, revert);
  const form = h("form", { class: "limit", novalidate: true, onsubmit: submit },
    h("div", { class: "limit-now" },
      h("span", { class: "label", id: label }, `Limit ${directionPhrase(direction)}`), note, shown),
    h("div", { class: "slider" }, range, picture),
    set, result);
  draw();
  return {
    node: form,
    // What the server says, while nothing is being set.
    update(link) { if (!busy) { current = link; draw(); } },
    tick: scale,
  };
}

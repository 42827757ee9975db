// Fields whose values are saved as soon as they are changed: what is refused is said below them, and not shown as
// if it held. `set` sends a change, and `show` shows what holds, unless it is being changed.

import { submitDialog } from "./dialogs.js";
import { field, h, id, say } from "./dom.js";
import { exactRate } from "./format.js";

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

const rateText = (bits) => (bits === null ? "no limit" : exactRate(bits));

// Sends changes of a field, says what came of each, and shows why one was refused.
export function saver(set) {
  const error = h("p", { class: "error small", role: "alert" });
  let under = 0;
  return {
    error,
    isBusy: () => under > 0,
    async save(change, text) {
      under += 1;
      error.textContent = "";
      try {
        await set(change);
        say(text);
        return true;
      } catch (problem) {
        error.textContent = problem.message;
        return false;
      } finally {
        under -= 1;
      }
    },
  };
}

// A slider of one rate; without `endless` there is always a limit.
function rateSlider(name, { endless, word }, set) {
  const label = id();
  const output = h("output", {});
  const range = h("input", { type: "range", min: 0, max: endless ? STEPS : STEPS - 1, step: 1, "aria-labelledby": label });
  const saves = saver(set);
  let moved = false;
  let shown = null;
  const draw = (bits) => {
    output.textContent = rateText(bits);
    range.setAttribute("aria-valuetext", rateText(bits));
    range.style.setProperty("--at", `calc(11px + (100% - 22px) * ${range.value / range.max})`);
  };
  const show = (limit) => {
    shown = limit;
    // What a hand is on stays as it is.
    if (saves.isBusy() || moved) return;
    const bits = limit === "unlimited" ? null : limit;
    range.value = stepOf(bits);
    draw(bits);
  };
  const exact = () => {
    const number = h("input", { type: "number", min: 0, step: "any", placeholder: "no limit", required: !endless });
    number.value = typeof shown === "number" ? shown / 1e6 : "";
    submitDialog(word, [field("At most", number, { unit: "Mbit/s", hint: endless ? "No limit when empty." : null })], {
      name: "Set",
      async submit() {
        const bits = number.value === "" ? null : Math.round(Number(number.value) * 1e6);
        await set({ [name]: bits ?? "unlimited" });
        show(bits ?? "unlimited");
        return `${word}: ${rateText(bits)}`;
      },
    });
  };
  range.addEventListener("input", () => { moved = true; draw(rateAt(Number(range.value))); });
  range.addEventListener("change", async () => {
    const bits = rateAt(Number(range.value));
    const is = await saves.save({ [name]: bits ?? "unlimited" }, `${word}: ${rateText(bits)}`);
    moved = false;
    if (!is) show(shown);
  });
  return {
    node: h("div", { class: "limit-slider" }, h("div", { class: "limit-now" }, h("span", { class: "label", id: label }, word),
      h("span", { class: "row" }, output, h("button", { type: "button", class: "plain", "aria-label": `Exact … (${word})`, onclick: exact }, "Exact …"))), range, saves.error),
    show,
  };
}

// Sliders of both rates. `about` is whose they are, for what is said.
export function ratePair(set, { endless = true, about = "" } = {}) {
  const sliders = Object.entries(WORDS).map(([name, word]) => [name, rateSlider(name, { endless, word: about ? `${about}, ${word.toLowerCase()}` : word }, set)]);
  return {
    node: h("div", { class: "pair" }, sliders.map(([, one]) => one.node)),
    show(limits) { sliders.forEach(([name, one]) => one.show(limits[name])); },
  };
}

// A choice between no limit, a number, and for a torrent what holds for all. `factor` is that of the number that
// is written to that of the API.
export function numberLimit({ name, label, unit, factor = 1, usual, min = 0, step = "any", all }, set) {
  const options = [...(all ? [["default", all]] : []), ["unlimited", "No limit"], ["own", "This much"]];
  const choice = h("select", {}, options.map(([value, text]) => h("option", { value }, text)));
  const number = h("input", { type: "number", min, step, required: true, "aria-label": `${label}: ${unit}` });
  const own = h("div", { class: "with-unit" }, number, h("span", {}, unit));
  const saves = saver(set);
  let shown = "unlimited";
  const draw = (limit) => {
    const isOwn = typeof limit === "number";
    choice.value = isOwn ? "own" : limit;
    number.value = isOwn ? limit / factor : "";
    own.hidden = !isOwn;
  };
  const save = async () => {
    const isOwn = choice.value === "own";
    own.hidden = !isOwn;
    if (isOwn && !number.value) number.value = usual;
    if (isOwn && !number.reportValidity()) return;
    const text = isOwn ? `${number.value} ${unit}` : choice.selectedOptions[0].textContent.toLowerCase();
    if (!await saves.save({ [name]: isOwn ? Number(number.value) * factor : choice.value }, `${label}: ${text}`)) draw(shown);
  };
  choice.addEventListener("change", save);
  number.addEventListener("change", save);
  return {
    node: h("div", { class: "main-part limit-choice" }, field(label, choice), own, saves.error),
    show(limit) {
      shown = limit;
      if (!saves.isBusy() && ![choice, number].includes(document.activeElement)) draw(limit);
    },
  };
}

// A switch. `on` and `off` are said; `of` makes the change of whether it is on.
export function toggle({ label, on, off, hint, of }, set) {
  const input = h("input", { type: "checkbox" });
  const text = h("span", {}, label);
  const saves = saver(set);
  let shown = false;
  input.addEventListener("change", async () => {
    const is = input.checked;
    if (!await saves.save(of(is), is ? on : off)) input.checked = shown;
  });
  return {
    node: h("div", { class: "field" }, h("label", { class: "check" }, input, text), hint ? h("span", { class: "small muted" }, hint) : null, saves.error),
    show(is, next = label) {
      shown = is;
      if (text.textContent !== next) text.textContent = next;
      if (!saves.isBusy()) input.checked = is;
    },
  };
}

// A field or choice with a value that is text. `of` makes the change of what is written, and `said` what is said.
export function valueField({ label, input, hint, of, said }, set) {
  const saves = saver(set);
  let shown = "";
  input.addEventListener("change", async () => {
    if (!input.reportValidity()) return;
    const text = said(input.selectedOptions?.[0]?.textContent ?? input.value);
    if (!await saves.save(of(input.value), text)) input.value = shown;
  });
  return {
    node: h("div", { class: "main-part limit-choice" }, field(label, input, { hint }), saves.error),
    show(value) {
      shown = value;
      if (!saves.isBusy() && document.activeElement !== input) input.value = value;
    },
  };
}

export function select(options) {
  return h("select", {}, options.map(([value, text]) => h("option", { value }, text)));
}

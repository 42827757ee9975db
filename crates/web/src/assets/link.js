// One link: use against limit in both directions, setting the limit, its changes.

import { api } from "./api.js";
import { changeList } from "./changes.js";
import { field, h } from "./dom.js";
import { bytes, count, exactRate, unitOf } from "./format.js";
import { graph } from "./graph.js";
import { pill } from "./links.js";
import { listen, load, mayLimit, rateOf, store } from "./live.js";
import { machineButtons } from "./machine.js";
import { DIRECTIONS, MIN_LIMIT, asName, asNumber, propertiesText, directionName, directionPhrase, wanted } from "./names.js";
import { limitControl } from "./rate.js";

const SPANS = [[60, "1 min"], [600, "10 min"], [3600, "1 h"], [86400, "24 h"]];

function endText(end) {
  const ip = end.ip?.includes(":") ? `[${end.ip}]` : end.ip;
  const at = [ip, end.port].filter(Boolean).join(":");
  const number = [asNumber(end), end.interface ? `#${end.interface}` : ""].join("");
  return [number, at].filter(Boolean).join(", ");
}

// The maximum, which administrators set.
function maximumForm(link) {
  const inputs = Object.fromEntries(DIRECTIONS.map((direction) => {
    const [size, unit] = unitOf(link.maximum[direction] ?? 1e6);
    const value = link.maximum[direction];
    const input = h("input", { type: "number", min: 0, step: "any", inputmode: "decimal", placeholder: "none", value: value === null ? "" : value / size });
    return [direction, { input, size, unit }];
  }));
  const result = h("p", { class: "result", role: "status" });
  const submit = async (event) => {
    event.preventDefault();
    const maximum = {};
    for (const [direction, { input, size }] of Object.entries(inputs)) {
      if (!input.validity.valid) {
        result.textContent = "Give a number from 0 on, or nothing for no maximum";
        result.className = "result bad";
        return input.focus();
      }
      maximum[direction] = input.value === "" ? null : Math.round(Number(input.value) * size);
    }
    try {
      await api("PATCH", `links/${link.id}?wait=5`, { maximum });
      result.textContent = "Maximum set";
      result.className = "result good";
    } catch (problem) {
      result.textContent = `Not changed: ${problem.message}`;
      result.className = "result bad";
    }
  };
  const fields = DIRECTIONS.map((direction) => field(directionName(direction), inputs[direction].input, { unit: inputs[direction].unit }));
  return h("section", { class: "card" },
    h("header", {}, h("h2", {}, "Maximum"), h("span", { class: "small muted" }, `${exactRate(MIN_LIMIT)} or more; 0 for no traffic, nothing for no maximum`)),
    h("form", { class: "body", novalidate: true, onsubmit: submit },
      h("div", { class: "fields" }, fields, h("div", {}, h("button", { type: "submit" }, "Set maximum"))), result));
}

function directionCard(link, direction) {
  const plot = graph(`Use of the link ${directionPhrase(direction)}`);
  const control = limitControl(link, direction);
  const facts = h("div", { class: "facts" });
  const node = h("section", { class: `card direction ${direction}` },
    h("header", {}, h("h2", {}, directionName(direction)), h("span", { class: "small muted" }, direction)),
    h("div", { class: "body" }, plot.node, facts, control.node));
  return { node, plot, control, facts };
}

export function link(argument) {
  const id = Number(argument);
  const find = () => store.links.find((one) => one.id === id);
  let current = find();
  if (!current) {
    return { node: h("p", { class: "empty" }, "There is no such link. ", h("a", { href: "#/links" }, "All links")) };
  }
  let span = 600;
  let timer = null;
  let gone = false;
  const cards = Object.fromEntries(DIRECTIONS.map((direction) => [direction, directionCard(current, direction)]));
  const state = h("div", { class: "row" });
  const machine = h("div", { class: "row" });
  const trouble = h("p", { class: "notice bad", role: "alert", hidden: true });
  const changes = changeList(id);

  const history = async () => {
    const wanted = span;
    try {
      const past = await api("GET", `links/${id}/history?span=${span}`);
      if (gone || wanted !== span) return;
      for (const direction of DIRECTIONS) {
        cards[direction].plot.show(past[direction], span, past.at, current.maximum[direction]);
      }
    } catch { /* The line that says that there is no connection says it. */ }
  };
  const facts = async () => {
    try {
      const { links } = await api("GET", "usage");
      for (const direction of DIRECTIONS) {
        const one = links.find((use) => use.link === id && use.direction === direction);
        const parts = one
          ? [["carried", bytes(one.bytes)], ["packets", count(one.packets)], ["dropped", count(one.drops)], ["waiting", bytes(one.backlog)]]
          : [["counters", "none"]];
        cards[direction].facts.replaceChildren(...parts.map(([name, text]) => h("span", {}, `${name} `, h("b", {}, text))));
      }
    } catch { /* As above. */ }
  };
  const again = () => {
    clearInterval(timer);
    timer = setInterval(() => { if (!document.hidden) { facts(); if (span > 600) history(); } }, span > 600 ? 20_000 : 5000);
    history();
    facts();
  };
  const buttons = SPANS.map(([seconds, text]) => h("button", {
    type: "button", "aria-pressed": String(seconds === span),
    onclick: (event) => {
      span = seconds;
      for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget));
      again();
    },
  }, text));

  const draw = () => {
    state.replaceChildren(pill(current));
    // Administrators have these for all ASes at once.
    const own = current.owner?.id === store.me.id && store.me.role === "user";
    const as = own && store.ases.find((one) => one.isd_as === current.user_as.isd_as);
    const known = as ? String(as.host.has_secret) : "";
    // Whoever works by keyboard stays where they are.
    if (machine.dataset.known !== known) machine.replaceChildren(...(as ? machineButtons(as, load).filter(Boolean) : []));
    machine.dataset.known = known;
    trouble.hidden = !current.error;
    trouble.textContent = current.error ? `The attachment point could not set its limits: ${current.error}` : "";
    for (const direction of DIRECTIONS) cards[direction].control.update(current);
  };
  draw();
  again();
  const leave = listen((what) => {
    if (what === "links") {
      current = find() ?? current;
      draw();
      changes.reload();
      return;
    }
    for (const direction of DIRECTIONS) {
      const { plot, control } = cards[direction];
      if (span <= 600) plot.push(store.at, rateOf(id, direction), wanted(current, direction), current.maximum[direction]);
      control.tick();
    }
  });
  const owner = current.owner ? `user ${current.owner.name}` : "no owner";
  const reads = mayLimit(current) ? null : h("p", { class: "notice" }, "You see this link; its limit is set by its owner and by administrators.");
  const node = [
    h("div", { class: "head" },
      h("div", {},
        h("a", { href: "#/links", class: "small" }, "All links"),
        h("h1", {}, `${asName(current.attachment_point)} – ${asName(current.user_as)}`),
        h("p", { class: "muted small" }, [`link ${id}`, endText(current.attachment_point), endText(current.user_as), current.device, propertiesText(current), owner].filter(Boolean).join(" · "))),
      h("div", { class: "row" }, machine, state, h("div", { class: "segments", role: "group", "aria-label": "Time that the graphs show" }, buttons))),
    trouble, reads,
    h("div", { class: "pair" }, DIRECTIONS.map((direction) => cards[direction].node)),
    store.me.role === "admin" ? maximumForm(current) : null,
    h("section", { class: "card" }, h("header", {}, h("h2", {}, "Changes of this link")), h("div", { class: "body" }, changes.node)),
  ].filter(Boolean);
  return {
    node,
    leave() {
      gone = true;
      leave();
      clearInterval(timer);
      for (const direction of DIRECTIONS) cards[direction].plot.leave();
    },
  };
}

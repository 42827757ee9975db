// The queue of transfers: what this host sends to others, how far each is, and what is done with it.

import { api } from "./api.js";
import { submitDialog } from "./dialogs.js";
import { confirmed, field, h, say } from "./dom.js";
import { bytes, count, dateTime, rate } from "./format.js";
import { poll } from "./store.js";
import { percent } from "./words.js";

// Transfers that are shown at first, and more with each press of the button.
const PART = 200;
// A rate is that of this time, in milliseconds.
const SPAN = 5000;
const KINDS = { running: "good", done: "good", waiting: "wait", queued: "wait", failed: "bad" };
const FINAL = ["done", "failed", "cancelled"];
const TURN = { running: 0, waiting: 1, queued: 1 };

const isFinal = (transfer) => FINAL.includes(transfer.state);

// What runs, then what waits in the order of its priority, then what has ended, the newest first.
export function arranged(transfers) {
  const turn = (transfer) => TURN[transfer.state] ?? 2;
  return [...transfers].sort((one, other) => turn(one) - turn(other)
    || (isFinal(one) ? other.ended - one.ended : other.priority - one.priority)
    || (isFinal(one) ? other.id - one.id : one.id - other.id));
}

// The rates of transfers, in bit/s, from what is verified of them at the answers of the last seconds.
function measure() {
  const samples = new Map();
  return {
    add(transfers, now) {
      const running = transfers.filter((transfer) => transfer.state === "running");
      for (const id of samples.keys()) if (!running.some((transfer) => transfer.id === id)) samples.delete(id);
      for (const { id, progress } of running) {
        const all = (samples.get(id) ?? []).filter((sample) => now - sample.at <= SPAN);
        samples.set(id, [...all, { at: now, bytes: progress.verified_bytes }]);
      }
    },
    of(id) {
      const all = samples.get(id) ?? [];
      const [first, last] = [all[0], all.at(-1)];
      return all.length > 1 ? Math.max(0, (8000 * (last.bytes - first.bytes)) / (last.at - first.at)) : 0;
    },
  };
}

// What is said of a transfer below its name.
function notes(transfer, several) {
  const { error, state } = transfer;
  const again = state === "waiting" ? `tried again at ${dateTime(transfer.until * 1000)}` : null;
  const dates = isFinal(transfer) ? `${state} ${dateTime(transfer.ended * 1000)}` : `submitted ${dateTime(transfer.submitted * 1000)}`;
  const to = `to ${transfer.server}${transfer.destination ? ` as ${transfer.destination}` : ""}`;
  return [[to, ""], [several ? `${transfer.user}, ${dates}` : dates, "muted"], [again, "muted"], [error?.text, state === "failed" ? "bad" : "muted"]];
}

function sendDialog(refresh) {
  const source = h("input", { required: true, spellcheck: "false" });
  const server = h("input", { required: true, spellcheck: "false", placeholder: "1-ff00:0:111,10.0.2.1:31000" });
  const destination = h("input", { spellcheck: "false" });
  const priority = h("input", { type: "number", min: -128, max: 127, step: 1, value: 0, required: true });
  const submit = async () => {
    const body = { source: source.value.trim(), server: server.value.trim(), destination: destination.value.trim(), priority: Number(priority.value) };
    const transfer = await api("POST", "transfers", body);
    refresh();
    return `Transfer ${transfer.id} is queued`;
  };
  submitDialog("Send a file or folder", [
    field("File or folder", source, { hint: "A path on the host of the daemon." }),
    field("To", server, { hint: "The address that the other host's daemon or hawser receive prints." }),
    field("Name there", destination, { hint: "The name that it has here when empty." }),
    field("Priority", priority, { hint: "Transfers of higher priority run first." }),
  ], { name: "Send", submit });
}

// A row that stays the same element while its transfer is shown.
function row(id, change) {
  const name = h("td", { class: "path" }, h("b", {}));
  const lines = Array.from({ length: 4 }, () => h("span", { class: "sub", hidden: true }));
  name.append(...lines);
  const pill = h("span", { class: "pill" });
  const done = h("span", { class: "number" });
  const bar = h("span", { class: "bar", "aria-hidden": "true" }, h("span", {}));
  const speed = h("span", { class: "sub number" });
  const priority = h("input", { type: "number", min: -128, max: 127, step: 1 });
  priority.addEventListener("change", () => change(id, "PATCH", { priority: Number(priority.value) }, `priority ${priority.value}`));
  const cancel = h("button", { type: "button", class: "danger", onclick: () => confirmed(`Cancel transfer ${id}? What has arrived stays there.`,
    () => change(id, "DELETE", undefined, "cancelled"), "Cancel the transfer") }, "Cancel");
  const node = h("tr", {}, h("td", { class: "number" }, id), name, h("td", {}, pill), h("td", { class: "done" }, done, bar, speed), h("td", {}, priority), h("td", {}, cancel));
  return {
    node,
    fill(transfer, several, bits) {
      name.firstElementChild.textContent = transfer.source;
      notes(transfer, several).forEach(([text, kind], at) => {
        lines[at].textContent = text ?? "";
        lines[at].className = `sub ${kind}`;
        lines[at].hidden = !text;
      });
      pill.textContent = transfer.state;
      pill.className = `pill ${KINDS[transfer.state] ?? ""}`;
      const { verified_bytes, bytes: all } = transfer.progress;
      const share = transfer.state === "done" ? 1 : all ? verified_bytes / all : null;
      done.textContent = share === null ? "" : `${percent(share)} of ${bytes(all)}`;
      bar.hidden = share === null;
      bar.firstElementChild.style.width = `${100 * (share ?? 0)}%`;
      speed.textContent = bits ? rate(bits) : "";
      if (document.activeElement !== priority) priority.value = transfer.priority;
      priority.setAttribute("aria-label", `Priority of transfer ${transfer.id}`);
      priority.hidden = isFinal(transfer);
      cancel.setAttribute("aria-label", `Cancel transfer ${transfer.id}`);
      cancel.hidden = isFinal(transfer);
    },
  };
}

export function transfers() {
  let all = null;
  let shown = PART;
  const made = new Map();
  const rates = measure();
  const body = h("tbody", {});
  const summary = h("p", { class: "muted small", role: "status" });
  const problem = h("p", { class: "notice bad", role: "alert", hidden: true });
  const empty = h("p", { class: "empty" });
  const more = h("button", { type: "button", onclick: () => { shown += PART; draw(); } }, "Show more");

  const change = async (id, method, what, text) => {
    try {
      await api(method, `transfers/${id}`, what);
      say(`Transfer ${id}: ${text}`);
    } catch (refusal) {
      say(refusal.message);
    }
    await load();
  };

  function draw() {
    const part = arranged(all).slice(0, shown);
    const several = new Set(all.map((transfer) => transfer.user)).size > 1;
    const there = new Set(part.map((transfer) => transfer.id));
    for (const [id, { node }] of made) if (!there.has(id)) { made.delete(id); node.remove(); }
    part.forEach((transfer, at) => {
      if (!made.has(transfer.id)) made.set(transfer.id, row(transfer.id, change));
      const one = made.get(transfer.id);
      if (body.children[at] !== one.node) body.insertBefore(one.node, body.children[at] ?? null);
      one.fill(transfer, several, rates.of(transfer.id));
    });
    more.hidden = all.length <= shown;
    empty.hidden = all.length > 0;
    empty.textContent = "There are no transfers: press Send to send a file or folder to another host.";
    const running = all.filter((transfer) => transfer.state === "running").length;
    const text = `${count(all.length)} transfer${all.length === 1 ? "" : "s"}, ${count(running)} running`;
    if (summary.textContent !== text) summary.textContent = text;
  }

  async function load() {
    try {
      all = (await api("GET", "transfers")).transfers;
      problem.hidden = true;
    } catch (refusal) {
      // That the daemon does not answer is shown by the line about the connection.
      problem.hidden = refusal.status === 0;
      problem.textContent = refusal.message;
      return;
    }
    rates.add(all, performance.now());
    draw();
  }

  const heads = ["Number", "What and where", "State", "Done", "Priority", "Cancel"].map((text) => h("th", { scope: "col" }, text));
  let stop = () => {};
  return {
    title: "Transfers",
    node: h("div", { class: "main-part" },
      h("div", { class: "head" }, h("div", {}, h("h1", {}, "Transfers"), summary),
        h("button", { class: "primary", type: "button", onclick: () => sendDialog(load) }, "Send")),
      problem,
      h("section", { class: "card", "aria-label": "Queue" }, h("table", { class: "table transfers" }, h("thead", {}, h("tr", {}, heads)), body), empty, h("p", { class: "more" }, more))),
    entered() { stop = poll(load); },
    leave() { stop(); },
  };
}

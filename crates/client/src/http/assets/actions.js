// What is done with torrents: start, stop, verify, queue, move, remove.

import { api } from "./api.js";
import { field, h, say } from "./dom.js";
import { each } from "./each.js";
import { limitsDialog } from "./limits.js";
import { menu } from "./menu.js";
import { moveInQueue } from "./queue.js";
import { refresh, store } from "./store.js";
import { isActive } from "./words.js";

function named(hashes) {
  const name = store.torrents.get(hashes[0])?.name ?? "It";
  return hashes.length === 1 ? name : `${hashes.length} torrents`;
}

// Does the same with each torrent, and says what came of it.
async function all(hashes, ask, done) {
  say(await each(hashes, ask) || `${named(hashes)}: ${done}`);
  refresh();
}

const act = (hashes, action, done) => all(hashes, (hash) => api("POST", `torrents/${hash}/${action}`), done);

export function removeDialog(hashes) {
  const content = h("input", { type: "checkbox" });
  const node = h("dialog", { "aria-label": "Remove" },
    h("form", { method: "dialog" },
      h("h2", {}, "Remove"), h("p", {}, `${named(hashes)}: remove from the list?`),
      h("label", { class: "check" }, content, "Delete the content as well"),
      h("div", { class: "row" }, h("button", { class: "danger", value: "yes" }, "Remove"), h("button", { value: "no" }, "Cancel"))));
  const opener = document.activeElement;
  node.addEventListener("close", () => {
    node.remove();
    opener?.focus?.();
    if (node.returnValue !== "yes") return;
    all(hashes, (hash) => api("DELETE", `torrents/${hash}?content=${content.checked}`), "removed");
  });
  document.body.append(node);
  node.showModal();
}

export function moveDialog(hashes) {
  const folder = h("input", { required: true, spellcheck: "false", value: store.torrents.get(hashes[0])?.folder ?? "" });
  const node = h("dialog", { "aria-label": "Move" },
    h("form", { method: "dialog" },
      h("h2", {}, "Move"),
      field("Folder", folder, { hint: "A whole path on the host of the daemon." }),
      h("div", { class: "row" }, h("button", { class: "primary", value: "yes" }, "Move"), h("button", { value: "no", formnovalidate: true }, "Cancel"))));
  node.addEventListener("close", () => {
    node.remove();
    if (node.returnValue !== "yes") return;
    all(hashes, (hash) => api("PATCH", `torrents/${hash}`, { folder: folder.value }), "is being moved");
  });
  document.body.append(node);
  node.showModal();
}

export function labelsDialog(hashes) {
  const labels = h("input", { spellcheck: "false", value: store.torrents.get(hashes[0])?.labels.join(", ") ?? "" });
  const hint = hashes.length === 1 ? "With commas between them." : `With commas between them. They take the place of the labels of all ${hashes.length}.`;
  const node = h("dialog", { "aria-label": "Labels" },
    h("form", { method: "dialog" },
      h("h2", {}, "Labels"), field("Labels", labels, { hint }),
      h("div", { class: "row" }, h("button", { class: "primary", value: "yes" }, "Set"), h("button", { value: "no" }, "Cancel"))));
  node.addEventListener("close", () => {
    node.remove();
    if (node.returnValue !== "yes") return;
    const names = labels.value.split(",").map((one) => one.trim()).filter(Boolean);
    all(hashes, (hash) => api("PATCH", `torrents/${hash}`, { labels: names }), names.length ? `labels ${names.join(", ")}` : "no labels");
  });
  document.body.append(node);
  node.showModal();
}

// The buttons for these torrents; they are there, and off, also for none.
export function buttons(hashes) {
  const none = hashes.length === 0;
  const active = hashes.some((hash) => { const one = store.torrents.get(hash); return one && isActive(one); });
  const button = (text, onclick, kind) => h("button", { type: "button", class: kind, disabled: none, onclick }, text);
  return [
    button("Start", () => act(hashes, "start", "started"), active ? null : "primary"),
    button("Stop", () => act(hashes, "stop", "stopped")),
    button("Verify", () => act(hashes, "verify", "is being verified")),
    menu("Queue", [
      ["Start now, beside the queue", () => act(hashes, "start-now", "started")],
      ["To the top", () => moveInQueue(hashes, "top")],
      ["Up", () => moveInQueue(hashes, "up")],
      ["Down", () => moveInQueue(hashes, "down")],
      ["To the end", () => moveInQueue(hashes, "bottom")],
    ], { disabled: none }),
    button("Limits …", () => limitsDialog(hashes)),
    button("Labels …", () => labelsDialog(hashes)),
    button("Move …", () => moveDialog(hashes)),
    button("Remove …", () => removeDialog(hashes), "danger"),
  ];
}

// Adding torrents: files that are dropped or chosen, links that are pasted.

import { api } from "./api.js";
import { submitDialog } from "./dialogs.js";
import { field, h } from "./dom.js";
import { put, store } from "./store.js";

// Longest .torrent file that the daemon takes, in bytes: in base64 it is a third longer.
const MAX_FILE = 17_000_000;

async function base64(file) {
  if (file.size > MAX_FILE) throw new Error(`${file.name} is longer than ${MAX_FILE / 1e6} MB: it is no .torrent file`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  // Arguments of a call are bounded.
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

function isMagnet(text) {
  return /^magnet:\?/i.test(text.trim());
}

// Of all URLs that are dropped or pasted, only these are likely to be torrents.
function isLink(text) {
  return isMagnet(text) || /^https?:\/\/\S+\.torrent(\?\S*)?$/i.test(text.trim());
}

// Asks how these are added. `given` is files and links that are there already.
export function addDialog({ files = [], links = [] } = {}) {
  if (!store.signedIn || document.querySelector("dialog[open]")) return;
  const chosen = h("input", { type: "file", accept: ".torrent,application/x-bittorrent", multiple: true });
  const names = files.map((file) => file.name);
  const link = h("textarea", { rows: 3, spellcheck: "false", placeholder: "magnet:?xt=urn:btih:… or https://…" });
  link.value = links.join("\n");
  const folder = h("input", { spellcheck: "false", placeholder: store.about?.download_dir ?? "" });
  const started = h("input", { type: "checkbox", checked: true });
  const sequential = h("input", { type: "checkbox" });
  const submit = async () => {
    const shared = { stopped: !started.checked, sequential: sequential.checked };
    if (folder.value.trim()) shared.folder = folder.value.trim();
    const bodies = link.value.split("\n").map((line) => line.trim()).filter(Boolean).map((text) => isMagnet(text) ? { magnet: text } : { url: text });
    for (const file of [...files, ...chosen.files]) bodies.push({ metainfo: await base64(file) });
    if (!bodies.length) throw new Error("Choose a file, or paste a magnet link or URL");
    let last = null;
    for (const body of bodies) {
      last = await api("POST", "torrents", { ...body, ...shared });
      put(last);
    }
    return bodies.length === 1 ? `Added ${last.name}` : `Added ${bodies.length} torrents`;
  };
  const node = submitDialog("Add torrents", [
    names.length ? h("p", { class: "names" }, names.join(", ")) : field("Files", chosen),
    field("Magnet links or URLs", link, { hint: "One a line." }),
    field("Folder", folder, { hint: "On the host of the daemon; its own when empty." }),
    h("label", { class: "check" }, started, "Start when it is its turn"),
    h("label", { class: "check" }, sequential, "Fetch in the order of the content"),
  ], { name: "Add", submit });
  (names.length ? node.querySelector("[type=submit]") : link).focus();
}

// Takes files and links that are dropped on the page or pasted to it.
export function takeDrops() {
  const over = (is) => document.body.classList.toggle("dropping", is && store.signedIn);
  addEventListener("dragover", (event) => { event.preventDefault(); over(true); });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) over(false); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    const files = [...event.dataTransfer.files];
    const text = event.dataTransfer.getData("text/plain");
    if (files.length) addDialog({ files });
    else if (isLink(text)) addDialog({ links: [text.trim()] });
  });
  addEventListener("paste", (event) => {
    if (event.target.closest?.("input, textarea, dialog")) return;
    const files = [...event.clipboardData.files];
    const lines = event.clipboardData.getData("text/plain").split("\n").filter(isLink);
    if (!files.length && !lines.length) return;
    event.preventDefault();
    addDialog(files.length ? { files } : { links: lines.map((line) => line.trim()) });
  });
}

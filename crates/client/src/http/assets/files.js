// The files of a torrent: which are downloaded, which first, and what they are called.

import { api } from "./api.js";
import { toggle } from "./controls.js";
import { submitDialog } from "./dialogs.js";
import { field, h, say } from "./dom.js";
import { bytes, count } from "./format.js";
import { poll, put } from "./store.js";
import { percent } from "./words.js";

// Files that are shown at first, and more with each press of the button.
const PART = 200;
const PRIORITIES = ["high", "normal", "low"];

function share(file) {
  if (file.verified_bytes === null) return "?";
  return percent(file.bytes ? file.verified_bytes / file.bytes : 1);
}

// The file and the folders that it is in, each as its whole path, the outermost first.
export function partsOf(path) {
  const names = path.split("/");
  return names.map((_, at) => names.slice(0, at + 1).join("/"));
}

function renameDialog(hash, path, renamed) {
  const parts = partsOf(path);
  const part = h("select", {}, parts.map((one) => h("option", { value: one }, one)));
  const name = h("input", { required: true, spellcheck: "false" });
  const suggest = () => { name.value = part.value.split("/").at(-1); };
  part.value = path;
  part.addEventListener("change", suggest);
  suggest();
  submitDialog("Rename", [
    parts.length > 1 ? field("File or folder", part) : h("p", { class: "names" }, path),
    field("Name", name, { hint: "Peers know it by its old name, and still get it." }),
  ], {
    name: "Rename",
    async submit() {
      put(await api("PATCH", `torrents/${hash}`, { rename: { path: part.value, name: name.value } }));
      await renamed();
      return `${part.value}: renamed to ${name.value}`;
    },
  });
  name.select();
}

// A row that stays the same element while its file is shown.
function row(hash, index, change, load) {
  let path = "";
  const wanted = h("input", { type: "checkbox" });
  wanted.addEventListener("change", () => change([index], { wanted: wanted.checked }, wanted.checked ? `${path} is downloaded` : `${path} is skipped`));
  const priority = h("select", {}, PRIORITIES.map((one) => h("option", { value: one }, one)));
  priority.addEventListener("change", () => change([index], { priority: priority.value }, `${path}: ${priority.value}`));
  const link = h("a", { href: `/api/v1/torrents/${hash}/files/${index}`, target: "_blank", rel: "noreferrer" });
  const [size, done] = [h("td", { class: "number" }), h("td", { class: "number" })];
  const rename = h("button", { type: "button", onclick: () => renameDialog(hash, path, load) }, "Rename …");
  return {
    node: h("tr", {}, h("td", {}, wanted), h("td", { class: "path" }, link), size, done, h("td", {}, priority), h("td", {}, rename)),
    fill(file) {
      if (path !== file.path) {
        path = file.path;
        link.textContent = path;
        wanted.setAttribute("aria-label", `Download ${path}`);
        priority.setAttribute("aria-label", `Priority of ${path}`);
        rename.setAttribute("aria-label", `Rename ${path}`);
        size.textContent = bytes(file.bytes);
      }
      wanted.checked = file.wanted;
      if (document.activeElement !== priority) priority.value = file.priority;
      priority.disabled = !file.wanted;
      done.textContent = share(file);
    },
  };
}

export function files(hash) {
  let all = [];
  let found = [];
  let shown = PART;
  const made = new Map();
  const body = h("tbody", {});
  const summary = h("p", { class: "muted small", role: "status" });
  const empty = h("p", { class: "empty", hidden: true }, "No file is as searched.");
  const search = h("input", { type: "search", placeholder: "Name or folder", autocomplete: "off", spellcheck: "false" });
  const priority = h("select", {}, ["", ...PRIORITIES].map((one) => h("option", { value: one }, one || "Choose …")));
  const more = h("button", { type: "button", onclick: () => { shown += PART; draw(); } }, "Show more");

  const change = async (indices, what, text) => {
    try {
      await api("PATCH", `torrents/${hash}`, { files: [{ ...(indices ? { indices } : {}), ...what }] });
      say(text);
    } catch (problem) {
      say(problem.message);
    }
    await load().catch(() => {});
  };
  // What is done with all files that are found by the search.
  const changeFound = (what, text) => {
    const isAll = found.length === all.length;
    if (found.length) change(isAll ? null : found.map((file) => file.index), what, `${isAll ? "All" : `The ${count(found.length)}`} files ${text}`);
  };
  priority.addEventListener("change", () => {
    if (priority.value) changeFound({ priority: priority.value }, `have the priority ${priority.value}`);
    priority.value = "";
  });
  search.addEventListener("input", () => { shown = PART; draw(); });

  function draw() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = all.filter((file) => words.every((word) => file.path.toLowerCase().includes(word)));
    const part = found.slice(0, shown);
    const there = new Set(part.map((file) => file.index));
    for (const [index, { node }] of made) if (!there.has(index)) { made.delete(index); node.remove(); }
    part.forEach((file, at) => {
      if (!made.has(file.index)) made.set(file.index, row(hash, file.index, change, load));
      const one = made.get(file.index);
      if (body.children[at] !== one.node) body.insertBefore(one.node, body.children[at] ?? null);
      one.fill(file);
    });
    more.hidden = found.length <= shown;
    empty.hidden = !all.length || found.length > 0;
    const wanted = all.filter((file) => file.wanted);
    const text = all.length
      ? `${count(wanted.length)} of ${count(all.length)} files are downloaded: ${bytes(wanted.reduce((sum, file) => sum + file.bytes, 0))}`
      : "The files are not known before the metadata is.";
    if (summary.textContent !== text) summary.textContent = text;
  }

  async function load() {
    all = (await api("GET", `torrents/${hash}`)).files;
    draw();
  }

  const sequential = toggle({
    label: "Fetch in the order of the content", on: "The content is fetched from its beginning to its end", off: "The content is fetched in any order", of: (is) => ({ sequential: is }),
  }, async (what) => put(await api("PATCH", `torrents/${hash}`, what)));
  const heads = ["Download", "Name", "Size", "Verified", "Priority", "Rename"].map((text) => h("th", { scope: "col" }, text));
  const stop = poll(load, 2000);
  return {
    node: h("section", { class: "card", "aria-label": "Files" },
      h("header", {}, summary, sequential.node),
      h("div", { class: "body files-found" }, field("Search", search),
        h("div", { class: "row", role: "group", "aria-label": "All files that are found" },
          h("button", { type: "button", onclick: () => changeFound({ wanted: true }, "are downloaded") }, "Download all"),
          h("button", { type: "button", onclick: () => changeFound({ wanted: false }, "are skipped") }, "Skip all")),
        field("Priority of all", priority)),
      h("table", { class: "table files" }, h("thead", {}, h("tr", {}, heads)), body), empty,
      h("p", { class: "more" }, more)),
    show(torrent) { sequential.show(torrent.sequential); },
    leave() { stop(); },
  };
}

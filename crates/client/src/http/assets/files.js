// The files of a torrent: which are downloaded, and which first.

import { api } from "./api.js";
import { h, say } from "./dom.js";
import { bytes, count } from "./format.js";
import { poll } from "./store.js";
import { percent } from "./words.js";

// Files that are shown at first, and more with each press of the button.
const PART = 200;
const PRIORITIES = ["high", "normal", "low"];

function share(file) {
  if (file.verified_bytes === null) return "?";
  return percent(file.bytes ? file.verified_bytes / file.bytes : 1);
}

export function files(hash) {
  let all = [];
  let shown = PART;
  const made = [];
  const body = h("tbody", {});
  const summary = h("p", { class: "muted small", role: "status" });
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

  const make = (file) => {
    const wanted = h("input", { type: "checkbox", "aria-label": `Download ${file.path}` });
    wanted.addEventListener("change", () => change([file.index], { wanted: wanted.checked }, wanted.checked ? `${file.path} is downloaded` : `${file.path} is skipped`));
    const priority = h("select", { "aria-label": `Priority of ${file.path}` }, PRIORITIES.map((one) => h("option", { value: one }, one)));
    priority.addEventListener("change", () => change([file.index], { priority: priority.value }, `${file.path}: ${priority.value}`));
    const done = h("td", { class: "number" });
    const name = h("td", { class: "path" }, h("a", { href: `/api/v1/torrents/${hash}/files/${file.index}`, target: "_blank", rel: "noreferrer" }, file.path));
    const node = h("tr", {}, h("td", {}, wanted), name, h("td", { class: "number" }, bytes(file.bytes)), done, h("td", {}, priority));
    return {
      node,
      fill(now) {
        wanted.checked = now.wanted;
        if (document.activeElement !== priority) priority.value = now.priority;
        priority.disabled = !now.wanted;
        done.textContent = share(now);
      },
    };
  };

  function draw() {
    const part = all.slice(0, shown);
    part.forEach((file, at) => {
      if (!made[at]) { made[at] = make(file); body.append(made[at].node); }
      made[at].fill(file);
    });
    more.hidden = all.length <= shown;
    const wanted = all.filter((file) => file.wanted);
    summary.textContent = all.length
      ? `${count(wanted.length)} of ${count(all.length)} files are downloaded: ${bytes(wanted.reduce((sum, file) => sum + file.bytes, 0))}`
      : "The files are not known before the metadata is.";
  }

  async function load() {
    all = (await api("GET", `torrents/${hash}`)).files;
    draw();
  }

  const heads = ["Download", "Name", "Size", "Verified", "Priority"].map((text) => h("th", { scope: "col" }, text));
  const stop = poll(load, 2000);
  return {
    node: h("section", { class: "card", "aria-label": "Files" },
      h("header", {}, summary, h("div", { class: "row" },
        h("button", { type: "button", onclick: () => change(null, { wanted: true }, "All files are downloaded") }, "All"),
        h("button", { type: "button", onclick: () => change(null, { wanted: false }, "No file is downloaded") }, "None"))),
      h("table", { class: "table files" }, h("thead", {}, h("tr", {}, heads)), body),
      h("p", { class: "more" }, more)),
    leave() { stop(); },
  };
}

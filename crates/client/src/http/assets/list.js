// The list of torrents: search, filter, order, and what is done with those that are selected.

import { buttons, removeDialog } from "./actions.js";
import { field, h } from "./dom.js";
import { count, rate } from "./format.js";
import { FILTERS, SORTS, arranged, labelsOf } from "./order.js";
import { moveInQueue } from "./queue.js";
import { rows } from "./rows.js";
import { listen, store } from "./store.js";
import { percent, size, statusKind, statusText, timeLeft } from "./words.js";

// What stays when the list is left and shown again.
const kept = { filter: "all", label: "", text: "", by: "position", falling: false, top: 0, current: null };

const COLUMNS = [["name", "Name"], ["status", "Status"], ["size", "Size"], ["done", "Done"], ["left", "Time left"], ["down", "Received"], ["up", "Sent"]];

function make() {
  const cell = (name, ...children) => h("div", { class: `c-${name}`, role: "gridcell" }, ...children);
  const bar = h("span", { class: "bar", "aria-hidden": "true" }, h("span", {}));
  return h("div", { class: "torrent" },
    cell("name", h("a", { tabindex: "-1" })), cell("status", h("span", { class: "pill" })), cell("size"),
    cell("done", h("span", {}), bar), cell("left"), cell("down"), cell("up"));
}

// Writes only what has changed: a page that is laid out anew each second is slow.
function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function fill(row, torrent) {
  const [name, status, bytes, done, left, down, up] = row.children;
  const link = name.firstElementChild;
  put(link, torrent.name);
  link.href = `#/torrent/${torrent.info_hash}`;
  name.title = torrent.error ?? torrent.name;
  const pill = status.firstElementChild;
  put(pill, statusText(torrent));
  pill.className = `pill ${statusKind(torrent)}`;
  put(bytes, size(torrent));
  put(done.firstElementChild, percent(torrent.content.done));
  done.lastElementChild.firstElementChild.style.width = `${100 * (torrent.content.checked ?? torrent.content.done ?? 0)}%`;
  put(left, timeLeft(torrent));
  const { download_rate, upload_rate } = torrent.traffic;
  put(down, download_rate ? `↓ ${rate(download_rate)}` : "");
  put(up, upload_rate ? `↑ ${rate(upload_rate)}` : "");
}

const go = (hash) => { location.hash = `#/torrent/${hash}`; };

export function list() {
  const heads = COLUMNS.map(([by, text]) => h("div", { class: `c-${by}`, role: "columnheader" },
    h("button", { class: "plain", type: "button", onclick: () => sortBy(by, kept.by === by && !kept.falling) }, text)));
  const empty = h("div", { class: "empty" });
  const summary = h("p", { class: "muted small", role: "status" });
  const actions = h("div", { class: "row actions", role: "toolbar", "aria-label": "Selected torrents" });
  let selected = [];
  const chosen = (hashes) => {
    selected = hashes;
    actions.replaceChildren(...buttons(hashes));
    kept.current = hashes.length === 1 ? hashes[0] : kept.current;
  };
  const grid = rows({
    label: "Torrents", head: h("div", { class: "torrent", role: "row", "aria-rowindex": "1" }, heads),
    make, fill, open: go, remove: removeDialog, changed: chosen,
  });

  grid.node.addEventListener("keydown", (event) => {
    const to = event.altKey && { ArrowUp: "up", ArrowDown: "down" }[event.key];
    if (!to || !selected.length) return;
    event.preventDefault();
    moveInQueue(selected, to);
  });

  const show = () => {
    showLabels();
    const items = arranged(store.torrents.values(), kept);
    grid.show(items);
    const all = store.torrents.size;
    const plural = all === 1 ? "" : "s";
    put(summary, `${items.length === all ? "" : `${count(items.length)} of `}${count(all)} torrent${plural}`);
    put(empty, all ? "No torrent is as searched." : "There are no torrents yet: drop a .torrent file here, paste a magnet link, or press Add.");
    empty.hidden = items.length > 0;
    heads.forEach((head, index) => {
      const is = COLUMNS[index][0] === kept.by;
      head.setAttribute("aria-sort", is ? (kept.falling ? "descending" : "ascending") : "none");
    });
  };
  function sortBy(by, falling) {
    Object.assign(kept, { by, falling });
    sort.value = by;
    show();
  }

  const search = h("input", { type: "search", value: kept.text, placeholder: "Search", autocomplete: "off", spellcheck: "false" });
  search.addEventListener("input", () => { kept.text = search.value; show(); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && search.value) { search.value = ""; kept.text = ""; show(); event.preventDefault(); }
    if (event.key === "Enter" || event.key === "ArrowDown") { grid.focus(); event.preventDefault(); }
  });
  const options = (all) => all.map(([value, text]) => h("option", { value }, text));
  const filter = h("select", {}, options(FILTERS));
  filter.value = kept.filter;
  filter.addEventListener("change", () => { kept.filter = filter.value; show(); });
  const label = h("select", {});
  const labelField = field("Label", label);
  label.addEventListener("change", () => { kept.label = label.value; show(); });
  let labels = null;
  // The labels that there are; their field is there if there are any.
  const showLabels = () => {
    const all = labelsOf(store.torrents.values());
    if (JSON.stringify(all) === labels || document.activeElement === label) return;
    labels = JSON.stringify(all);
    if (!all.includes(kept.label)) kept.label = "";
    label.replaceChildren(...options([["", "Any"], ...all.map((one) => [one, one])]));
    label.value = kept.label;
    labelField.hidden = all.length === 0;
  };
  const sort = h("select", {}, options(SORTS));
  sort.value = kept.by;
  sort.addEventListener("change", () => sortBy(sort.value, false));

  const keys = (event) => {
    const inField = event.target.closest?.("input, select, textarea, dialog");
    if (event.key === "/" && !inField && !event.ctrlKey && !event.metaKey) { search.focus(); event.preventDefault(); }
  };
  document.addEventListener("keydown", keys);
  const stop = listen(show);
  chosen([]);

  return {
    title: "Torrents",
    node: h("div", { class: "main-part list" },
      h("div", { class: "head" },
        h("div", {}, h("h1", {}, "Torrents"), summary),
        h("div", { class: "find" }, field("Search", search), field("Show", filter), labelField, field("Order", sort))),
      actions,
      h("section", { class: "card", "aria-label": "List" }, grid.node, empty)),
    entered() {
      show();
      grid.node.scrollTop = kept.top;
      if (kept.current) grid.select(kept.current);
    },
    leave() {
      kept.top = grid.node.scrollTop;
      stop();
      grid.leave();
      document.removeEventListener("keydown", keys);
    },
  };
}

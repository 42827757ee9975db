// The page: which view is shown, and the session.

import { addDialog, takeDrops } from "./add.js";
import { api } from "./api.js";
import { logOutButton, themeButton } from "./buttons.js";
import { detail } from "./detail.js";
import { h } from "./dom.js";
import { rate } from "./format.js";
import { allLimits } from "./limits.js";
import { list } from "./list.js";
import { login } from "./login.js";
import { settings } from "./settings.js";
import { forget, listen, start, store } from "./store.js";
import { transfers } from "./transfers.js";

const root = document.getElementById("app");
const TITLE = "hawser";
const VIEWS = [["#/", "Torrents"], ["#/transfers", "Transfers"], ["#/settings", "Settings"]];
// Views that are not of the list of torrents, by the first part of their addresses.
const WHOLE = new Map([["transfers", transfers], ["settings", settings]]);
let leave = () => {};
let stopTotals = () => {};

function totals() {
  const node = h("p", { class: "totals number", "aria-label": "Rates of all torrents" });
  const show = () => {
    let [down, up] = [0, 0];
    for (const torrent of store.torrents.values()) {
      down += torrent.traffic.download_rate;
      up += torrent.traffic.upload_rate;
    }
    node.textContent = `↓ ${rate(down)}  ↑ ${rate(up)}`;
  };
  stopTotals();
  stopTotals = listen(show);
  show();
  return node;
}

function frame(view, address) {
  return [
    h("header", { class: "top" },
      h("div", { class: "top-inner" },
        h("a", { class: "brand", href: "#/" }, h("img", { src: "/assets/icon.svg", alt: "" }), TITLE),
        h("nav", { class: "tabs", "aria-label": "Views" },
          VIEWS.map(([one, text]) => h("a", { href: one, "aria-current": one === address ? "page" : null }, text))),
        totals(),
        h("div", { class: "who" },
          h("button", { class: "primary", type: "button", onclick: () => addDialog() }, "Add"),
          h("button", { type: "button", onclick: allLimits }, "Limits"),
          themeButton(), logOutButton(logOut)))),
    h("div", { class: "offline", role: "status" }),
    h("main", { class: "main", id: "main", tabindex: "-1" }, view),
  ];
}

// A view is `{ node, title, entered, leave }`: what is shown, its name, what is done once it is in the page,
// and what ends it.
function show(focus) {
  leave();
  const [, name, hash, tab] = location.hash.split("/");
  const isTorrent = name === "torrent" && store.torrents.has(hash);
  const view = WHOLE.get(name)?.() ?? (isTorrent ? detail(hash, tab) : list());
  leave = view.leave ?? (() => {});
  root.replaceChildren(...frame(view.node, WHOLE.has(name) ? `#/${name}` : "#/"));
  document.title = view.title ? `${view.title} – ${TITLE}` : TITLE;
  if (focus) {
    document.getElementById("main").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  view.entered?.();
}

async function begin() {
  root.replaceChildren(h("p", { class: "empty" }, "Loading …"));
  try {
    [store.about] = await Promise.all([api("GET", "daemon"), start()]);
  } catch (problem) {
    return ended(problem.message);
  }
  store.signedIn = true;
  show(false);
}

function ended(reason) {
  leave();
  stopTotals();
  leave = () => {};
  forget();
  document.title = TITLE;
  root.replaceChildren(login(begin, reason, { title: TITLE, hint: "It is in the file token, in the folder of the daemon's state." }));
}

async function logOut() {
  try {
    await api("DELETE", "session");
  } catch { /* Then it had ended before. */ }
  ended();
}

addEventListener("hashchange", () => {
  // The link that skips to the content is no view.
  if (store.signedIn && location.hash !== "#main") show(true);
});
addEventListener("hawser:ended", () => { if (store.signedIn) ended("The session has ended: log in again"); });
takeDrops();

root.replaceChildren(h("p", { class: "empty" }, "Loading …"));
api("GET", "session").then(begin, (problem) => ended(problem.status === 401 ? "" : problem.message));

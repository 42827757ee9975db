// The page: which view is shown, and the session.

import { admin } from "./admin.js";
import { api } from "./api.js";
import { changes } from "./changes.js";
import { h } from "./dom.js";
import { layout } from "./layout.js";
import { link } from "./link.js";
import { links } from "./links.js";
import { forget, load, start, store } from "./live.js";
import { login } from "./login.js";
import { map } from "./map.js";

const root = document.getElementById("app");
let leave = () => {};

const VIEWS = {
  links: { tab: "links", title: "Links", make: links },
  link: { tab: "links", title: "Link", make: link },
  map: { tab: "map", title: "Map", make: map },
  changes: { tab: "changes", title: "Changes", make: changes },
  admin: { tab: "admin", title: "Administration", make: admin },
};

// A view is `{ node, leave }`: what is shown, and what ends it.
function show(focus) {
  leave();
  const [, name, argument] = location.hash.split("/");
  const isAdmin = store.me.role === "admin";
  const view = VIEWS[name === "admin" && !isAdmin ? "links" : name] ?? VIEWS.links;
  const made = view.make(argument);
  leave = made.leave ?? (() => {});
  root.replaceChildren(...layout(made.node, view.tab, logOut));
  document.title = `${view.title} – ${store.me.title || "Link limits"}`;
  if (focus) {
    document.getElementById("main").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

async function begin(me) {
  store.me = me;
  try {
    await load();
  } catch (problem) {
    return ended(problem.message);
  }
  start();
  show(false);
}

function ended(reason) {
  leave();
  leave = () => {};
  forget();
  document.title = "Link limits";
  root.replaceChildren(login(begin, reason, { title: "Link limits", hint: "You got it from an administrator." }));
}

async function logOut() {
  try {
    await api("DELETE", "session");
  } catch { /* Then it had ended before. */ }
  ended();
}

addEventListener("hashchange", () => {
  // The link that skips to the content is no view.
  if (store.me && location.hash !== "#main") show(true);
});
addEventListener("hawser:ended", () => { if (store.me) ended("The session has ended: log in again"); });

root.replaceChildren(h("p", { class: "empty" }, "Loading …"));
api("GET", "session").then(begin, (problem) => ended(problem.status === 401 ? "" : problem.message));

// The record of changes.

import { api } from "./api.js";
import { h } from "./dom.js";
import { dateTime, exactRate } from "./format.js";
import { listen, store } from "./live.js";
import { asName, directionPhrase, lossText, timeText } from "./names.js";

function linkName(change) {
  const link = store.links.find((one) => one.id === change.link);
  const text = link ? asName(link.user_as) : `link ${change.link}`;
  return link ? h("a", { href: `#/link/${link.id}` }, text) : text;
}

function rateText(what, bits) {
  if (bits !== null && bits !== undefined) return exactRate(bits);
  return what === "limit" ? "the whole maximum" : "none";
}

const property = (change, text) => [`set the ${change.what} of `, linkName(change), `: ${text(change.from)} → `, h("b", {}, text(change.to))];

const ENDS = {
  link_added: (c) => ["added link ", String(c.link), ` between ${c.from} and ${c.to}`],
  queue: (c) => property(c, timeText),
  delay: (c) => property(c, timeText),
  jitter: (c) => property(c, timeText),
  loss: (c) => property(c, lossText),
  link_removed: (c) => ["removed link ", String(c.link), ` between ${c.from} and ${c.to}`],
  attachment_point_added: (c) => ["added the attachment point ", c.isd_as],
  attachment_point_changed: (c) => ["changed the attachment point ", c.isd_as],
  attachment_point_removed: (c) => ["removed the attachment point ", c.isd_as],
  user_as_added: (c) => ["added the user AS ", c.isd_as],
  user_as_changed: (c) => ["changed the user AS ", c.isd_as],
  user_as_removed: (c) => ["removed the user AS ", c.isd_as],
  secret_replaced: (c) => ["replaced the secret of the machine of ", c.isd_as],
  user_added: (c) => ["added the user ", c.user, ` as ${c.role}`],
  role_changed: (c) => ["made the user ", c.user, ` ${c.to} instead of ${c.from}`],
  user_removed: (c) => ["removed the user ", c.user],
  token_replaced: (c) => ["replaced the token of ", c.user],
  token_revoked: (c) => ["revoked the token of ", c.user],
};

function sentence(change, ofLink) {
  const who = h("b", {}, change.who);
  if (change.what === "limit" || change.what === "maximum") {
    const side = directionPhrase(change.direction);
    return [who, ` set the ${change.what} `, ofLink ? "" : ["of ", linkName(change), " "], h("span", { class: "muted" }, `(${side})`),
      `: ${rateText(change.what, change.from)} → `, h("b", {}, rateText(change.what, change.to))];
  }
  return [who, " ", ENDS[change.what]?.(change) ?? change.what];
}

// The changes of one link, or of all.
export function changeList(link) {
  const list = h("ol", { class: "changes" });
  const problem = h("p", { class: "error", role: "alert" });
  const older = h("button", { type: "button", hidden: true }, "Older changes");
  let next = null;
  const item = (change) => h("li", {},
    h("time", { datetime: new Date(change.at).toISOString() }, dateTime(change.at)),
    h("span", {}, sentence(change, link !== undefined).flat(3)));
  const read = async (before) => {
    const parameters = new URLSearchParams({ count: link === undefined ? 50 : 10 });
    if (link !== undefined) parameters.set("link", link);
    if (before) parameters.set("before", before);
    try {
      const page = await api("GET", `changes?${parameters}`);
      const items = page.changes.map(item);
      if (before) list.append(...items);
      else list.replaceChildren(...items);
      next = page.next;
      older.hidden = next === null;
      problem.textContent = "";
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  older.addEventListener("click", () => read(next));
  read();
  return { node: [list, problem, h("div", { class: "row" }, older)], reload: () => read() };
}

export function changes() {
  const list = changeList();
  const leave = listen((what) => { if (what === "links") list.reload(); });
  const node = [
    h("div", { class: "head" }, h("div", {}, h("h1", {}, "Changes"), h("p", { class: "muted" }, "Who changed what, the newest first"))),
    h("section", { class: "card" }, h("div", { class: "body" }, list.node)),
  ];
  return { node, leave };
}

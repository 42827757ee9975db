// Live data: one stream of events while the page is seen.

import { api } from "./api.js";

const empty = { me: null, links: [], coreLinks: [], asLinks: [], attachmentPoints: [], ases: [], rates: new Map(), at: 0, revision: -1, counters: new Map() };
export const store = { ...empty };

const listeners = new Set();
let source = null;
let loading = null;

// Calls `listener` with "links" when links have changed, and "rates" with each sample. Returns what
// ends that.
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(what) {
  for (const listener of [...listeners]) listener(what);
}

export async function load() {
  const [links, points, ases] = await Promise.all([api("GET", "links"), api("GET", "attachment-points"), api("GET", "ases")]);
  store.links = links.links;
  store.coreLinks = links.core_links;
  store.asLinks = links.as_links;
  store.revision = links.revision;
  store.attachmentPoints = points.attachment_points;
  store.ases = ases.ases;
  tell("links");
}

function reload() {
  // While one is under way, a further one would not be newer than what comes after it.
  loading ??= load().catch(() => {}).finally(() => { loading = null; });
}

let lost = null;

// A stream that ends is begun anew at once, as a rule: that is not worth a word.
function online(is) {
  if (!is) {
    lost ??= setTimeout(() => showOnline(false), 5000);
    return;
  }
  clearTimeout(lost);
  lost = null;
  showOnline(true);
}

function showOnline(is) {
  for (const line of document.querySelectorAll(".offline")) {
    line.textContent = is ? "" : "No connection to the server: what is shown may be old. Trying again …";
  }
}

function receive(event) {
  const { at, revision, rates } = JSON.parse(event.data);
  store.at = at;
  store.rates = new Map(rates.map(([link, egress, ingress]) => [link, { egress, ingress }]));
  online(true);
  tell("rates");
  if (revision !== store.revision && !loading) reload();
}

export function start() {
  if (source || document.hidden) return;
  source = new EventSource("/api/v1/live");
  source.onmessage = receive;
  source.onerror = () => {
    online(false);
    // A stream that was refused is not tried again by the browser: see whether the session goes on.
    if (source?.readyState === EventSource.CLOSED) {
      stop();
      setTimeout(() => { api("GET", "links").catch(() => {}).finally(() => { if (store.me) start(); }); }, 2000);
    }
  };
}

export function stop() {
  source?.close();
  source = null;
}

export function forget() {
  stop();
  Object.assign(store, empty, { rates: new Map(), counters: new Map() });
}

// Browsers have few connections to one server: pages that nobody sees leave theirs to others.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stop();
  else if (store.me) { reload(); start(); }
});

export function rateOf(link, direction) {
  return store.rates.get(link)?.[direction] ?? 0;
}

export function mayLimit(link) {
  const { me } = store;
  return me.role === "admin" || (me.role === "user" && link.owner?.id === me.id);
}

// The torrents as they are known here: the daemon is asked each second what has changed.

import { api } from "./api.js";

const INTERVAL = 1000;
const RETRY = 3000;

export const store = { torrents: new Map(), about: null, signedIn: false };

const listeners = new Set();
let cursor = null;
let timer = null;
let running = 0;

// Calls `listener` with the info-hashes of the torrents that have changed, and whether any was added or
// removed. Returns what ends that.
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function take(changes) {
  const hashes = new Set();
  let other = changes.whole;
  if (changes.whole) store.torrents.clear();
  for (const hash of changes.removed) {
    other = store.torrents.delete(hash) || other;
    hashes.add(hash);
  }
  for (const torrent of changes.torrents) {
    other = other || !store.torrents.has(torrent.info_hash);
    store.torrents.set(torrent.info_hash, torrent);
    hashes.add(torrent.info_hash);
  }
  cursor = changes.cursor;
  if (hashes.size || other) {
    for (const listener of [...listeners]) listener(hashes, other);
  }
}

function online(is) {
  for (const line of document.querySelectorAll(".offline")) {
    line.textContent = is ? "" : "The daemon does not answer: what is shown may be old. Trying again …";
  }
}

async function ask() {
  take(await api("GET", cursor ? `changes?since=${cursor}` : "changes"));
}

// Asks until `forget`; each run has a number, so that an answer to a run that has ended starts nothing.
async function follow(run) {
  let pause = INTERVAL;
  try {
    await ask();
    online(true);
  } catch (problem) {
    online(problem.status === 401);
    pause = RETRY;
  }
  if (run === running && !document.hidden) timer = setTimeout(follow, pause, run);
}

// Asks now, and shows the answer: what a button did is seen at once.
export function refresh() {
  if (!store.signedIn) return;
  clearTimeout(timer);
  running += 1;
  follow(running);
}

// Resolves once the torrents are known.
export async function start() {
  await ask();
  clearTimeout(timer);
  running += 1;
  timer = setTimeout(follow, INTERVAL, running);
}

export function forget() {
  clearTimeout(timer);
  running += 1;
  cursor = null;
  Object.assign(store, { torrents: new Map(), about: null, signedIn: false });
}

// A torrent as an answer has it, before the next changes are asked for.
export function put(torrent) {
  take({ cursor, whole: false, torrents: [torrent], removed: [] });
}

// Calls `load` now and each second or so while the page is seen. Returns what ends that.
export function poll(load, interval = INTERVAL) {
  let again = null;
  let over = false;
  const step = async () => {
    if (!document.hidden) {
      // What is wrong is shown by the line about the connection.
      try { await load(); } catch { /* asked again */ }
    }
    if (!over) again = setTimeout(step, interval);
  };
  step();
  return () => { over = true; clearTimeout(again); };
}

// Pages that nobody sees ask for nothing.
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });

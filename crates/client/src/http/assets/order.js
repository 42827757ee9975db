// Which torrents are listed, and in which order.

import { secondsLeft } from "./words.js";

const BY = {
  position: (torrent) => torrent.position,
  name: (torrent) => torrent.name.toLowerCase(),
  size: (torrent) => torrent.content.bytes ?? -1,
  done: (torrent) => torrent.content.done ?? -1,
  left: (torrent) => secondsLeft(torrent) ?? Infinity,
  down: (torrent) => torrent.traffic.download_rate,
  up: (torrent) => torrent.traffic.upload_rate,
  status: (torrent) => torrent.status,
};

export const SORTS = [["position", "Queue"], ["name", "Name"], ["size", "Size"], ["done", "Done"], ["left", "Time left"], ["down", "Received"], ["up", "Sent"], ["status", "Status"]];
export const FILTERS = [["all", "All"], ["downloading", "Downloading"], ["seeding", "Seeding"], ["stopped", "Stopped"], ["failed", "Failed"]];

const SHOWN = {
  all: () => true,
  downloading: (torrent) => ["downloading", "resolving", "checking"].includes(torrent.status),
  seeding: (torrent) => torrent.status === "seeding",
  stopped: (torrent) => ["stopped", "finished", "queued"].includes(torrent.status),
  failed: (torrent) => torrent.status === "failed",
};

// All labels, in alphabetical order.
export function labelsOf(torrents) {
  return [...new Set([...torrents].flatMap((torrent) => torrent.labels))].sort();
}

// The torrents that are listed: those with `label` if it is not empty, with all words of `text` in their names or labels, or at the beginning of
// their info-hashes.
export function arranged(torrents, { filter, label, text, by, falling }) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (torrent) => {
    const all = [torrent.name, ...torrent.labels].join("\n").toLowerCase();
    return words.every((word) => all.includes(word) || torrent.info_hash.startsWith(word));
  };
  const shown = [...torrents].filter((torrent) => SHOWN[filter](torrent) && (!label || torrent.labels.includes(label)) && (!words.length || has(torrent)));
  const keyed = shown.map((torrent) => [BY[by](torrent), torrent]);
  const sign = falling ? -1 : 1;
  keyed.sort(([a, one], [b, other]) => (a < b ? -sign : a > b ? sign : one.position - other.position));
  return keyed.map(([, torrent]) => torrent);
}

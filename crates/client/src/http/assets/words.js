// What torrents do and have, as text.

import { bytes } from "./format.js";

// How a status is coloured.
const KINDS = { downloading: "good", seeding: "good", failed: "bad", queued: "wait", "check-queued": "wait", resolving: "wait", checking: "wait", moving: "wait", removing: "wait", stopping: "wait" };

export function statusKind(torrent) {
  return KINDS[torrent.status] ?? "";
}

export function statusText(torrent) {
  const { checked } = torrent.content;
  return checked === null ? torrent.status : `checking ${percent(checked)}`;
}

export function percent(share) {
  if (share === null) return "?";
  // Not 100 % before it is.
  return `${(Math.floor(share * 1000) / 10).toFixed(share >= 1 ? 0 : 1)} %`;
}

export function size(torrent) {
  return torrent.content.bytes === null ? "?" : bytes(torrent.content.bytes);
}

export function isActive(torrent) {
  return ["queued", "check-queued", "resolving", "checking", "downloading", "seeding"].includes(torrent.status);
}

// How long the rest takes at the present rate, in seconds; `null` when that is not known.
export function secondsLeft({ status, content, traffic }) {
  if (status !== "downloading" || !content.left_bytes || !traffic.download_rate) return null;
  return Math.ceil((8 * content.left_bytes) / traffic.download_rate);
}

export function timeLeft(torrent) {
  const seconds = secondsLeft(torrent);
  return seconds === null ? "" : duration(seconds);
}

export function duration(seconds) {
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= 2 * length) return `${Math.floor(seconds / length)} ${unit}`;
  }
  return `${seconds} s`;
}

// The order of the queue: torrents that are before others in it begin before them.

import { api } from "./api.js";
import { say } from "./dom.js";
import { count } from "./format.js";
import { refresh, store } from "./store.js";

// Where each of these torrents goes, one after another, so that they stay in their order and together at an end.
export function moves(positions, total, to) {
  const [first, last] = [(at) => at, (at) => total - positions.length + at];
  const all = positions.map((position, at) => ({
    top: first(at), up: Math.max(first(at), position - 1), down: Math.min(last(at), position + 1), bottom: last(at),
  })[to]);
  const steps = positions.map((from, at) => ({ at, from, to: all[at] })).filter((step) => step.from !== step.to);
  // Those behind move first where all move back, so that none passes another one.
  return to === "down" || to === "bottom" ? steps.reverse() : steps;
}

export async function moveInQueue(hashes, to) {
  const chosen = hashes.map((hash) => store.torrents.get(hash)).filter(Boolean).sort((one, other) => one.position - other.position);
  const total = store.torrents.size;
  try {
    for (const step of moves(chosen.map((torrent) => torrent.position), total, to)) {
      chosen[step.at] = await api("PATCH", `torrents/${chosen[step.at].info_hash}`, { position: step.to });
    }
    const place = `place ${count(chosen[0].position + 1)} of ${count(total)} in the queue`;
    say(chosen.length === 1 ? `${chosen[0].name}: ${place}` : `${count(chosen.length)} torrents are moved in the queue`);
  } catch (problem) {
    say(problem.message);
  }
  refresh();
}

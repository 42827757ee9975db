// Rates over time as small lines, of things that are asked for again and again: peers, and the paths to them.

import { svg } from "./dom.js";
import { rate } from "./format.js";

// How long a rate is shown, in milliseconds.
const SPAN = 120_000;
// Longer gaps between samples are no line.
const GAP = 5000;
const [WIDTH, HEIGHT] = [160, 28];
const SERIES = [["download_rate", "down"], ["upload_rate", "up"]];

const highest = (samples, name) => Math.max(0, ...samples.map((sample) => sample[name]));

export function trends() {
  const all = new Map();
  return {
    // Takes the rates of these things, each with its `name`, at a time. What is not among them is forgotten.
    add(things, now) {
      const there = new Set(things.map((thing) => thing.name));
      for (const name of all.keys()) if (!there.has(name)) all.delete(name);
      for (const { name, download_rate, upload_rate } of things) {
        const samples = (all.get(name) ?? []).filter((sample) => now - sample.at <= SPAN);
        all.set(name, [...samples, { at: now, download_rate, upload_rate }]);
      }
    },
    // The highest rate of this thing.
    top(name) {
      const samples = all.get(name) ?? [];
      return Math.max(...SERIES.map(([series]) => highest(samples, series)));
    },
    // The lines of a thing, of which `top` is as high as the picture; `null` if it had no traffic.
    draw(name, top, now) {
      const samples = all.get(name) ?? [];
      const tops = SERIES.map(([series]) => highest(samples, series));
      if (samples.length < 2 || !Math.max(...tops)) return null;
      const x = (at) => (WIDTH * (1 - (now - at) / SPAN)).toFixed(1);
      const y = (bits) => (HEIGHT - 2 - (bits / top) * (HEIGHT - 4)).toFixed(1);
      const lines = SERIES.map(([series, kind]) => svg("path", {
        class: `rate ${kind}`,
        d: samples.map((sample, at) => `${at && sample.at - samples[at - 1].at <= GAP ? "L" : "M"}${x(sample.at)} ${y(sample[series])}`).join(""),
      }));
      const text = `Rates of the last two minutes: received up to ${rate(tops[0])}, sent up to ${rate(tops[1])}`;
      return svg("svg", { class: "trend", role: "img", "aria-label": text, viewBox: `0 0 ${WIDTH} ${HEIGHT}` }, svg("title", {}, text), ...lines);
    },
  };
}

// The rates of a torrent over time.

import { h, svg } from "./dom.js";
import { rate, unitOf } from "./format.js";

const SPAN = 300_000;
const [LEFT, RIGHT, TOP, BOTTOM] = [70, 10, 10, 22];
// Longer gaps between samples are no line.
const GAP = 3000;

const SERIES = [["download_rate", "down", "received"], ["upload_rate", "up", "sent"]];

// A round number of which a few fit below `top`.
function step(top) {
  const raw = top / 4;
  const size = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 2.5, 5, 10].map((one) => one * size).find((one) => one >= raw);
}

export function ratesGraph() {
  let data = { age_ms: [], download_rate: [], upload_rate: [] };
  const plot = svg("svg", { role: "img", "aria-label": "Rates of the last five minutes" });
  const legend = h("p", { class: "legend" });
  const node = h("div", { class: "graph" }, plot, legend);

  const draw = () => {
    const [width, height] = [plot.clientWidth || 480, plot.clientHeight || 180];
    plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const highest = Math.max(8000, ...data.download_rate, ...data.upload_rate);
    const gap = step(highest);
    const top = Math.ceil((highest / gap) * 0.999) * gap;
    const x = (age) => LEFT + (1 - age / SPAN) * (width - LEFT - RIGHT);
    const y = (bits) => height - BOTTOM - (bits / top) * (height - TOP - BOTTOM);
    const parts = [];
    const [size, unit] = unitOf(top);
    for (let bits = 0; bits <= top * 1.001; bits += gap) {
      parts.push(svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(bits), y2: y(bits) }));
      const last = bits + gap > top * 1.001;
      const number = Number((bits / size).toPrecision(3));
      parts.push(svg("text", { x: LEFT - 8, y: y(bits) + 4, "text-anchor": "end" }, last ? `${number} ${unit}` : number));
    }
    for (const [at, text, anchor] of [[SPAN, "5 min ago", "start"], [0, "now", "end"]]) {
      parts.push(svg("text", { x: x(at), y: height - 4, "text-anchor": anchor }, text));
    }
    for (const [name, kind] of SERIES) {
      let [line, before] = ["", null];
      data.age_ms.forEach((age, index) => {
        if (age > SPAN) return;
        line += `${before === null || before - age > GAP ? "M" : "L"}${x(age).toFixed(1)} ${y(data[name][index]).toFixed(1)}`;
        before = age;
      });
      parts.push(svg("path", { class: `rate ${kind}`, d: line || "M0 0" }));
    }
    plot.replaceChildren(...parts);
    const now = SERIES.map(([name, kind, word]) => [kind, `${word} ${rate(data[name].at(-1) ?? 0)}`]);
    legend.replaceChildren(...now.map(([kind, text]) => h("span", { class: `k-${kind}` }, text)));
    plot.setAttribute("aria-label", `Rates of the last five minutes; now ${now.map(([, text]) => text).join(", ")}`);
  };
  const observer = new ResizeObserver(draw);
  observer.observe(plot);
  return { node, show(next) { data = next; draw(); }, leave() { observer.disconnect(); } };
}

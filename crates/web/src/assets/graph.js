// Use against limit over time.

import { h, svg } from "./dom.js";
import { exactRate, rate, time, unitOf } from "./format.js";

const LEFT = 62;
const RIGHT = 10;
const TOP = 10;
const BOTTOM = 22;

// A round number of which a few fit below `top`.
function step(top) {
  const raw = top / 4;
  const size = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 2.5, 5, 10].map((one) => one * size).find((one) => one >= raw);
}

function clock(ms, span) {
  const text = time(ms);
  return span > 900 ? text.slice(0, 5) : text;
}

export function graph(name) {
  let series = null;
  let [from, to, maximum] = [0, 1, null];
  let cursor = null;
  const plot = svg("svg", { tabindex: "0", role: "img" });
  const legend = h("div", { class: "legend" });
  const node = h("div", { class: "graph" }, plot, legend);

  const points = () => series.rates
    .map((bits, index) => ({ at: series.from + index * series.step * 1000, bits }))
    .filter((one) => one.at >= from);

  // The limit at a time.
  const limitAt = (at) => {
    let found = null;
    for (const [since, bits] of series.limits) {
      if (since > at) break;
      found = bits;
    }
    return found;
  };

  const draw = () => {
    const width = plot.clientWidth || 480;
    const height = plot.clientHeight || 200;
    plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
    if (!series) return;
    const all = points();
    const limits = series.limits.map(([, bits]) => bits).filter((bits) => bits !== null);
    const now = limitAt(to);
    const highest = Math.max(8000, ...all.map((one) => one.bits ?? 0), now ?? 0, maximum !== null && maximum < 20 * Math.max(now ?? 0, 1) ? maximum : 0, ...limits.slice(-3));
    const gap = step(highest);
    const top = Math.ceil((highest / gap) * 0.999) * gap;
    const x = (at) => LEFT + ((at - from) / (to - from)) * (width - LEFT - RIGHT);
    const y = (bits) => height - BOTTOM - (Math.min(bits, top) / top) * (height - TOP - BOTTOM);
    const parts = [];

    const [size, unit] = unitOf(top);
    for (let bits = 0; bits <= top * 1.001; bits += gap) {
      parts.push(svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(bits), y2: y(bits) }));
      const number = Number((bits / size).toPrecision(3));
      const last = bits + gap > top * 1.001;
      parts.push(svg("text", { x: LEFT - 8, y: y(bits) + 4, "text-anchor": "end" }, last ? `${number} ${unit.replace("bit/s", "b/s")}` : number));
    }
    const span = (to - from) / 1000;
    const wide = width > 420 ? 4 : 2;
    for (let index = 0; index <= wide; index += 1) {
      const at = from + ((to - from) * index) / wide;
      const anchor = index === 0 ? "start" : index === wide ? "end" : "middle";
      parts.push(svg("text", { x: x(at), y: height - 4, "text-anchor": anchor }, clock(at, span)));
    }

    // Runs of values: where nothing was counted there is a gap.
    let run = [];
    const flush = () => {
      if (run.length) {
        const line = run.map((one, index) => `${index ? "L" : "M"}${x(one.at).toFixed(1)} ${y(one.bits).toFixed(1)}`).join("");
        const [first, last] = [run[0], run[run.length - 1]];
        parts.push(svg("path", { class: "area", d: `${line}L${x(last.at).toFixed(1)} ${y(0)}L${x(first.at).toFixed(1)} ${y(0)}Z` }));
        parts.push(svg("path", { class: "rate", d: line }));
      }
      run = [];
    };
    for (const one of all) {
      if (one.bits === null) flush();
      else run.push(one);
    }
    flush();

    if (maximum !== null && maximum <= top) {
      parts.push(svg("line", { class: "top-line", x1: LEFT, x2: width - RIGHT, y1: y(maximum), y2: y(maximum) }));
    }
    let cap = "";
    const steps = [...series.limits, [to, now]];
    steps.slice(0, -1).forEach(([since, bits], index) => {
      const until = Math.min(to, steps[index + 1][0]);
      if (bits === null || until <= from) return;
      const start = Math.max(from, since);
      const joined = index > 0 && steps[index - 1][1] !== null && since > from;
      cap += `${joined ? "L" : "M"}${x(start).toFixed(1)} ${y(bits).toFixed(1)}L${x(until).toFixed(1)} ${y(bits).toFixed(1)}`;
    });
    parts.push(svg("path", { class: "cap", d: cap }));

    const latest = all.findLast((one) => one.bits !== null);
    const seen = cursor === null ? latest : all.reduce((best, one) => (best && Math.abs(best.at - cursor) <= Math.abs(one.at - cursor) ? best : one), null);
    if (cursor !== null && seen) {
      parts.push(svg("line", { class: "cross", x1: x(seen.at), x2: x(seen.at), y1: TOP, y2: height - BOTTOM }));
      if (seen.bits !== null) parts.push(svg("circle", { class: "dot", cx: x(seen.at), cy: y(seen.bits), r: 4.5 }));
    }
    plot.replaceChildren(...parts);
    const limit = seen ? limitAt(seen.at + series.step * 999) : now;
    const when = cursor !== null && seen ? `${clock(seen.at, 0)}: ` : "";
    const use = seen?.bits === null || !seen ? "not counted" : rate(seen.bits);
    legend.replaceChildren(
      h("span", { class: "k-use" }, `${when}use ${use}`),
      h("span", { class: "k-limit" }, limit === null ? "no limit" : `limit ${exactRate(limit)}`),
      maximum === null ? "" : h("span", { class: "k-max" }, `maximum ${exactRate(maximum)}`));
    plot.setAttribute("aria-label", `${name}, the last ${Math.round(span / 60)} minutes. ${legend.textContent}. Left and right arrow keys read earlier values.`);
  };

  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    cursor = from + ((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT)) * (to - from);
    draw();
  });
  plot.addEventListener("pointerleave", () => { cursor = null; draw(); });
  plot.addEventListener("blur", () => { cursor = null; draw(); });
  plot.addEventListener("keydown", (event) => {
    const far = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
    if (!far || !series) return;
    event.preventDefault();
    cursor = Math.min(to, Math.max(from, (cursor ?? to) + far * Math.max(series.step * 1000, (to - from) / 60)));
    draw();
  });
  const observer = new ResizeObserver(draw);
  observer.observe(plot);

  return {
    node,
    show(history, span, at, max) {
      [series, from, to, maximum] = [history, at - span * 1000, at, max];
      draw();
    },
    // One more second.
    push(at, bits, limit, max) {
      if (!series || series.step !== 1) return;
      const index = Math.round((at - series.from) / 1000);
      if (!series.rates.length) series.from = Math.floor(at / 1000) * 1000;
      while (series.rates.length < index) series.rates.push(null);
      if (index >= series.rates.length) series.rates.push(bits);
      if (series.rates.length > 1300) { series.rates.splice(0, 650); series.from += 650_000; }
      const last = series.limits[series.limits.length - 1];
      if (!last || last[1] !== limit) series.limits.push([at, limit]);
      [from, to, maximum] = [from + (at - to), at, max];
      draw();
    },
    leave() { observer.disconnect(); },
  };
}

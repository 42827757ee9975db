// The network as a map: attachment points and user ASes at their places, without a map behind.

import { h, svg } from "./dom.js";
import { rate } from "./format.js";
import { placeLabels } from "./labels.js";
import { listen, rateOf, store } from "./live.js";
import { DIRECTIONS, asName, asNumber, wanted } from "./names.js";

// The size of the picture, in its own units: upright on a phone.
const narrow = matchMedia("(max-width: 600px)");
let [WIDTH, HEIGHT, EDGE] = [1000, 560, 90];

function setSize() {
  [WIDTH, HEIGHT, EDGE] = narrow.matches ? [440, 560, 70] : [1000, 560, 90];
}

// A round distance of grid lines, in degrees.
function gridStep(span) {
  return [30, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01].find((step) => span / step >= 3) ?? 0.01;
}

// Where the places are drawn: degrees of longitude are as long as on the ground in the middle.
function projection(places) {
  if (places.length < 2) return null;
  const [lats, lons] = [places.map((one) => one.latitude), places.map((one) => one.longitude)];
  const [south, north, west, east] = [Math.min(...lats), Math.max(...lats), Math.min(...lons), Math.max(...lons)];
  const shrink = Math.max(0.1, Math.cos((((south + north) / 2) * Math.PI) / 180));
  const span = Math.max(0.02, north - south, (east - west) * shrink);
  const scale = Math.min((WIDTH - 2 * EDGE) / Math.max((east - west) * shrink, span / 3), (HEIGHT - 2 * EDGE) / Math.max(north - south, span / 3));
  const x = (lon) => WIDTH / 2 + (lon - (west + east) / 2) * shrink * scale;
  const y = (lat) => HEIGHT / 2 - (lat - (south + north) / 2) * scale;
  return { x, y, scale, shrink, middle: [(south + north) / 2, (west + east) / 2] };
}

function gridLines(projected) {
  if (!projected) return [];
  const { x, y, scale, shrink, middle: [lat, lon] } = projected;
  const parts = [];
  const stepLat = gridStep(HEIGHT / scale);
  for (let at = Math.ceil((lat - HEIGHT / 2 / scale) / stepLat) * stepLat; y(at) > 0; at += stepLat) {
    parts.push(svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: y(at), y2: y(at) }));
    parts.push(svg("text", { class: "grid-text", x: 8, y: y(at) - 5 }, `${Number(Math.abs(at).toFixed(2))}° ${at < 0 ? "S" : "N"}`));
  }
  const stepLon = gridStep(WIDTH / scale / shrink);
  for (let at = Math.ceil((lon - WIDTH / 2 / scale / shrink) / stepLon) * stepLon; x(at) < WIDTH; at += stepLon) {
    parts.push(svg("line", { class: "grid", x1: x(at), x2: x(at), y1: 0, y2: HEIGHT }));
    parts.push(svg("text", { class: "grid-text", x: x(at) + 5, y: HEIGHT - 8 }, `${Number(Math.abs(at).toFixed(2))}° ${at < 0 ? "W" : "E"}`));
  }
  return parts;
}

// Places for all ASes: given ones, or on circles around their attachment point.
function positions(points, ases, projected) {
  const at = new Map();
  const put = (one, x, y) => at.set(one.isd_as, { x, y });
  const spread = (index, count) => (count === 1 ? [WIDTH / 2, HEIGHT / 2] : [
    WIDTH / 2 + WIDTH * 0.22 * Math.cos((2 * Math.PI * index) / count - Math.PI / 2),
    HEIGHT / 2 + HEIGHT * 0.22 * Math.sin((2 * Math.PI * index) / count - Math.PI / 2),
  ]);
  points.forEach((one, index) => {
    if (one.place && projected) put(one, projected.x(one.place.longitude), projected.y(one.place.latitude));
    else put(one, ...spread(index, points.length));
  });
  const around = new Map();
  for (const one of ases) {
    const link = store.links.find((link) => link.user_as.isd_as === one.isd_as);
    const centre = link?.attachment_point.isd_as;
    if (one.place && projected) put(one, projected.x(one.place.longitude), projected.y(one.place.latitude));
    else around.set(centre, [...(around.get(centre) ?? []), one]);
  }
  for (const [centre, group] of around) {
    const middle = at.get(centre) ?? { x: WIDTH / 2, y: HEIGHT / 2 };
    const out = Math.atan2(middle.y - HEIGHT / 2, middle.x - WIDTH / 2);
    const alone = points.length <= 1;
    group.forEach((one, index) => {
      const share = group.length === 1 ? 0.5 : index / (alone ? group.length : group.length - 1);
      const angle = alone ? 2 * Math.PI * share - Math.PI / 2 : out + (share - 0.5) * Math.PI * 1.1;
      const far = (alone ? 190 : 150) * (narrow.matches ? 0.75 : 1) + (index % 2) * (group.length > 8 ? 50 : 0);
      put(one, middle.x + far * Math.cos(angle) * (alone && !narrow.matches ? 1.6 : 1), middle.y + far * Math.sin(angle));
    });
  }
  // What is drawn over one another is pushed apart.
  const all = [...at.values()];
  for (let round = 0; round < (all.length > 300 ? 5 : 60); round += 1) {
    for (let i = 0; i < all.length; i += 1) {
      for (let j = i + 1; j < all.length; j += 1) {
        const [dx, dy] = [all[j].x - all[i].x || 0.5, (all[j].y - all[i].y) * 1.4 || 0.5];
        const far = Math.hypot(dx, dy);
        if (far >= 84) continue;
        const push = (84 - far) / far / 4;
        all[i].x -= dx * push;
        all[i].y -= dy * push;
        all[j].x += dx * push;
        all[j].y += dy * push;
      }
    }
  }
  for (const one of all) {
    one.x = Math.min(WIDTH - EDGE / 1.4, Math.max(EDGE / 1.4, one.x));
    one.y = Math.min(HEIGHT - EDGE / 1.6, Math.max(EDGE / 2, one.y));
  }
  return at;
}

function linkLine(link, from, to) {
  const ends = { x1: from.x, y1: from.y, x2: to.x, y2: to.y };
  const line = svg("line", ends);
  const node = svg("a", { class: "link egress", href: `#/link/${link.id}` }, svg("line", { ...ends, class: "hit" }), line);
  const update = () => {
    const shares = DIRECTIONS.map((direction) => {
      const limit = wanted(link, direction);
      const used = rateOf(link.id, direction);
      return limit ? used / limit : used > 0 ? 0.3 : 0;
    });
    const share = Math.min(1, Math.max(...shares));
    line.setAttribute("stroke-width", (2 + 5 * share).toFixed(1));
    node.classList.toggle("quiet", share < 0.001);
    node.classList.toggle("full", share > 0.97);
    node.classList.toggle("broken", Boolean(link.error));
    const [egress, ingress] = DIRECTIONS.map((direction) => rate(rateOf(link.id, direction)));
    const text = `Link ${link.id}, ${asName(link.attachment_point)} – ${asName(link.user_as)}: ${egress} to the user AS, ${ingress} from it`;
    node.setAttribute("aria-label", text);
  };
  update();
  return { node, update };
}

// Longest name that is shown whole; the rest is in the title.
const MAX_NAME = 24;

function shortName(one) {
  const name = [...(one.label || one.isd_as)];
  return name.length > MAX_NAME ? `${name.slice(0, MAX_NAME - 1).join("")}…` : name.join("");
}

// The sizes of the two lines of a label, as views.css has them.
function labelOf(one) {
  const [name, number] = [shortName(one), narrow.matches ? "" : asNumber(one)];
  const size = narrow.matches ? 15 : 13;
  const widths = [textWidth(name, `600 ${size}px`), number && textWidth(number, "400 11.5px")];
  return { name, number, size, width: Math.max(...widths) + 4, height: size + 3 + (number ? 15 : 0) };
}

let measure = null;

function textWidth(text, font) {
  measure ??= document.createElement("canvas").getContext("2d");
  measure.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
  return measure.measureText(text).width;
}

// The nodes with their labels. A label is on the side to which fewer links go, if there is room.
function nodesOf(points, ases, at) {
  const ends = store.links.flatMap(({ attachment_point: { isd_as: a }, user_as: { isd_as: b } }) => [[a, b], [b, a]]);
  const lines = [...ends.filter((_, index) => index % 2 === 0), ...[...store.coreLinks, ...store.asLinks].map((link) => link.ends.map((end) => end.isd_as))]
    .flatMap(([a, b]) => (at.has(a) && at.has(b) ? [{ x1: at.get(a).x, y1: at.get(a).y, x2: at.get(b).x, y2: at.get(b).y }] : []));
  const all = [...points, ...ases].map((one, index) => {
    const { x, y } = at.get(one.isd_as);
    const pull = ends.filter(([from]) => from === one.isd_as).reduce((sum, [, to]) => {
      const far = at.get(to);
      return far ? sum + (far.y - y) / (Math.hypot(far.x - x, far.y - y) || 1) : sum;
    }, 0);
    const isPoint = index < points.length;
    return { one, x, y, isPoint, radius: isPoint ? 13 : 10, above: pull > 0.35, ...labelOf(one) };
  });
  const places = placeLabels(all, lines, { width: WIDTH, height: HEIGHT });
  const drawn = all.map(({ one, x, y, isPoint, radius, name, number, size, width, height }, index) => {
    const { left, top } = places[index];
    const shape = isPoint ? svg("rect", { x: x - 12, y: y - 12, width: 24, height: 24, rx: 6 }) : svg("circle", { cx: x, cy: y, r: 9 });
    const middle = left + width / 2;
    // A label that is far away is connected to its node.
    const [nearX, nearY] = [Math.min(Math.max(x, left), left + width), Math.min(Math.max(y, top), top + height)];
    const far = Math.hypot(nearX - x, nearY - y);
    const start = radius / (far || 1);
    const lead = far > radius + 14 ? svg("line", { class: "lead", x1: x + (nearX - x) * start, y1: y + (nearY - y) * start, x2: nearX, y2: nearY }) : null;
    return svg("g", { class: "node" }, lead, shape,
      svg("title", {}, `${one.label || one.isd_as} ${asNumber(one)}`.trim()),
      svg("text", { x: middle, y: top + size - 1 }, name),
      number ? svg("text", { class: "isd-as", x: middle, y: top + size + 14 }, number) : null);
  });
  // Squares over circles, where there is no room for both.
  return [...drawn.slice(points.length), ...drawn.slice(0, points.length)];
}

export function map() {
  let lines = [];
  const picture = svg("svg", { role: "group", "aria-label": "Map of the links; each link leads to its graph" });
  const card = h("section", { class: "card map" }, picture,
    h("div", { class: "legend egress" },
      h("span", { class: "k-use" }, "link in use, thicker the more of its limit"),
      h("span", { class: "k-limit" }, "at its limit"),
      h("span", { class: "k-quiet" }, "quiet")));
  const draw = () => {
    setSize();
    picture.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    const { attachmentPoints: points, ases, links, coreLinks, asLinks } = store;
    const places = [...points, ...ases].map((one) => one.place).filter(Boolean);
    const projected = projection(places);
    const at = positions(points, ases, projected);
    const focused = picture.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    lines = links.flatMap((link) => {
      const [from, to] = [at.get(link.attachment_point.isd_as), at.get(link.user_as.isd_as)];
      return from && to ? [linkLine(link, from, to)] : [];
    });
    const core = [...coreLinks, ...asLinks].flatMap(({ ends }) => {
      const [from, to] = ends.map((end) => at.get(end.isd_as));
      return from && to ? [svg("line", { class: "core", x1: from.x, y1: from.y, x2: to.x, y2: to.y })] : [];
    });
    picture.replaceChildren(...gridLines(projected), ...core, ...lines.map((line) => line.node),
      ...nodesOf(points, ases, at));
    if (focused) picture.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  };
  draw();
  const leave = listen((what) => { if (what === "links") draw(); else lines.forEach((line) => line.update()); });
  const node = [h("div", { class: "head" }, h("div", {}, h("h1", {}, "Map"),
    h("p", { class: "muted" }, "Attachment points are squares, user ASes circles; a link leads to its graphs"))), card];
  narrow.addEventListener("change", draw);
  return { node, leave() { leave(); narrow.removeEventListener("change", draw); } };
}

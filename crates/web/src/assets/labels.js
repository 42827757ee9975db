// Where the labels of the map are: plain geometry, without the page.

// A rectangle has left, top, right, bottom; a link has x1, y1, x2, y2.
const overlap = (a, b) => Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left))
  * Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));

// The length of a line inside a rectangle (Liang and Barsky).
function inside(line, box) {
  const [dx, dy] = [line.x2 - line.x1, line.y2 - line.y1];
  let [from, to] = [0, 1];
  for (const [step, room] of [[-dx, line.x1 - box.left], [dx, box.right - line.x1], [-dy, line.y1 - box.top], [dy, box.bottom - line.y1]]) {
    if (step === 0 && room < 0) return 0;
    if (step < 0) from = Math.max(from, room / step);
    if (step > 0) to = Math.min(to, room / step);
  }
  return from < to ? (to - from) * Math.hypot(dx, dy) : 0;
}

// Where a label of this size may be around a node, the best place first, and how far from the best.
function* places({ x, y, radius, width, height, above }, gaps) {
  for (const [round, gap] of gaps.entries()) {
    const [up, down] = [y - radius - gap - height, y + radius + gap];
    const [before, after] = [x - radius - gap - width, x + radius + gap];
    const side = width / 2 + radius + gap / 2;
    const all = [
      [x - width / 2, above ? up : down], [x - width / 2, above ? down : up],
      [after, y - height / 2], [before, y - height / 2],
      [x - width / 2 + side * 0.8, down], [x - width / 2 - side * 0.8, down],
      [x - width / 2 + side * 0.8, up], [x - width / 2 - side * 0.8, up],
    ];
    for (const [index, [left, top]] of all.entries()) yield { left, top, far: round * 8 + index };
  }
}

// Distances from a node, and how often all labels are placed: with many nodes there is no room anyway.
const MANY = 150;
const GAPS = [4, 12, 20, 30, 42, 56, 72, 90, 110, 135, 165, 200, 240, 290, 350, 420];
const ROUNDS = 6;

// Distance from the edges of the picture: glyphs are a little higher than their size says.
const EDGE = 4;

// The corner of the label of each node: `nodes` have x, y, radius, and the width and height of their
// label, and whether it is above the node rather than below. No label is over another one or a node
// as long as there is room in the picture, which is `width` by `height`; then as few links as possible
// go through labels.
export function placeLabels(nodes, links, { width, height }) {
  const [gaps, rounds] = nodes.length > MANY ? [GAPS.slice(0, 2), 1] : [GAPS, ROUNDS];
  const shapes = nodes.map(({ x, y, radius }) => ({ left: x - radius, top: y - radius, right: x + radius, bottom: y + radius }));
  const boxes = nodes.map(() => null);
  const cost = (box, own) => {
    let sum = 0;
    boxes.forEach((other, index) => { if (other && index !== own) sum += 100 * overlap(box, other); });
    shapes.forEach((shape) => { sum += 100 * overlap(box, shape); });
    return sum + links.reduce((all, line) => all + 0.12 * inside(line, box), 0);
  };
  const put = (own) => {
    const node = nodes[own];
    let [best, least] = [null, Infinity];
    for (const place of places(node, gaps)) {
      const { far } = place;
      if (far >= least) break;
      const left = Math.max(EDGE, Math.min(place.left, width - EDGE - node.width));
      const top = Math.max(EDGE, Math.min(place.top, height - EDGE - node.height));
      const box = { left, top, right: left + node.width, bottom: top + node.height };
      const sum = far + cost(box, own);
      if (sum < least) [best, least] = [box, sum];
    }
    const old = boxes[own];
    boxes[own] = best;
    return !old || old.left !== best.left || old.top !== best.top;
  };
  // Later labels may leave a better place to earlier ones.
  for (let round = 0; round < rounds; round += 1) {
    const moved = nodes.map((_, own) => put(own)).some(Boolean);
    if (!moved) break;
  }
  return boxes.map(({ left, top }) => ({ left, top }));
}

// The rectangles that lie over one another, as pairs of indices: for tests.
export function overlaps(boxes) {
  const found = [];
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => { if (overlap(a, b) > 0.01) found.push([i, i + 1 + j]); }));
  return found;
}

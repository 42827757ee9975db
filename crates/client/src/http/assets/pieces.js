// Which pieces of a torrent are verified, as a map of cells.

import { h, svg } from "./dom.js";
import { bytes, count } from "./format.js";

// Most cells: of more pieces, several are one cell.
const MAX_CELLS = 480;
const COLUMNS = 48;
const CELL = 12;

// The share of each cell's pieces that is verified, for `count` pieces of the bitfield `text`, in base64.
export function cells(text, count) {
  const bits = atob(text);
  const has = (piece) => (bits.charCodeAt(piece >> 3) >> (7 - (piece & 7))) & 1;
  const length = Math.min(MAX_CELLS, count);
  return Array.from({ length }, (_, cell) => {
    const [from, to] = [Math.floor((cell * count) / length), Math.floor(((cell + 1) * count) / length)];
    let verified = 0;
    for (let piece = from; piece < to; piece += 1) verified += has(piece);
    return verified / (to - from);
  });
}

export function pieceMap() {
  const plot = svg("svg", { role: "img", class: "pieces", "aria-label": "Pieces" });
  const text = h("p", { class: "muted small" });
  let shown = null;
  return {
    node: h("div", {}, plot, text),
    show(pieces) {
      const key = JSON.stringify(pieces);
      if (key === shown) return;
      shown = key;
      const known = pieces.verified !== null && pieces.count > 0;
      plot.toggleAttribute("hidden", !known);
      if (!known) {
        plot.replaceChildren();
        text.textContent = pieces.count ? `${count(pieces.count)} pieces of ${bytes(pieces.length)}; which are verified is known while it runs.` : "The pieces are not known before the metadata is.";
        return;
      }
      const shares = cells(pieces.verified, pieces.count);
      const lines = Math.ceil(shares.length / COLUMNS);
      plot.setAttribute("viewBox", `0 0 ${COLUMNS * CELL} ${lines * CELL}`);
      plot.replaceChildren(...shares.map((share, cell) => svg("rect", {
        x: (cell % COLUMNS) * CELL + 1, y: Math.floor(cell / COLUMNS) * CELL + 1, width: CELL - 2, height: CELL - 2, rx: 2,
        class: share === 1 ? "whole" : share > 0 ? "part" : "none",
      })));
      const whole = [...atob(pieces.verified)].reduce((sum, byte) => sum + byte.charCodeAt(0).toString(2).replaceAll("0", "").length, 0);
      text.textContent = `${count(whole)} of ${count(pieces.count)} pieces of ${bytes(pieces.length)} are verified.`;
      plot.setAttribute("aria-label", text.textContent);
    },
  };
}

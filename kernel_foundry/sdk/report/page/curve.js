// The curve of a run: speed-up of each evaluation with its interval, the best so far, the lineage.

import { el, refill, svg } from "./dom.js";
import { counted, speedup, words } from "./format.js";

const MARGIN = { left: 46, right: 14, top: 12, bottom: 44 };
const HEIGHT = 280;
const FLOOR = 20; // pixels for what failed, below the scale

export class Curve {
  /** `onChosen` is told the sequence of an evaluation. */
  constructor(history, onChosen) {
    Object.assign(this, { history, onChosen, line: [] });
    this.picture = svg("svg", { role: "img", tabindex: "0", on: {
      pointermove: (event) => this.#hover(event),
      pointerleave: () => this.#hint(null),
      click: (event) => this.#pick(event),
      keydown: (event) => this.#step(event),
    } });
    this.tip = el("div", { class: "tip soft", "aria-hidden": "true" });
    const key = [["dot", "passed, with its 95 % interval"], ["cross", "failed"], ["step", "best so far"],
      ["thread", "ancestors of the one looked at"], ["dash", "fastest baseline"]];
    this.element = el("div", { class: "curve" }, el("h2", {}, "Speed-up over evaluations"), this.picture, this.tip,
      el("p", { class: "key soft" }, key.map(([mark, text]) => el("span", { class: `mark ${mark}` }, text))));
  }

  /** Mark an evaluation and its ancestors, newest first. */
  mark(line) {
    if (line.join() === this.line.join()) return;
    this.line = line;
    this.draw();
  }

  draw() {
    const { rows } = this.history;
    const width = Math.max(this.element.clientWidth, 300);
    this.scale = new Scale(rows, width);
    const { scale } = this;
    this.picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.picture.setAttribute("height", HEIGHT);
    this.picture.setAttribute("aria-label", this.#words());
    refill(this.picture, axes(scale, width),
      svg("path", { class: "interval", d: intervals(rows, scale) }),
      svg("path", { class: "failed", d: rows.filter((row) => row.speedup === null).map((row) => cross(scale.x(row), scale.floor)).join("") }),
      svg("path", { class: "passed", d: rows.filter((row) => row.speedup !== null).map((row) => dot(scale.x(row), scale.y(row.speedup))).join("") }),
      svg("path", { class: "best", d: bestPath(this.history, scale) }),
      this.#thread(scale));
  }

  #thread(scale) {
    const rows = this.line.map((sequence) => this.history.at(sequence)).filter(Boolean);
    if (!rows.length) return null;
    const points = rows.map((row) => [scale.x(row), row.speedup === null ? scale.floor : scale.y(row.speedup)]);
    return svg("g", { class: "thread" },
      svg("path", { d: points.map(([x, y], at) => `${at ? "L" : "M"}${x},${y}`).join("") }),
      points.map(([x, y], at) => svg("circle", { cx: x, cy: y, r: at ? 3.5 : 6 })));
  }

  #words() {
    const { rows, best } = this.history;
    const passed = rows.filter((row) => row.speedup !== null).length;
    const leader = best ? `, the best is number ${best.sequence} with ${speedup(best.speedup, best.speedup_interval)}` : "";
    return `Speed-up of ${counted(rows.length, "evaluation")}: ${passed} passed${leader}. Arrow keys go from one to the next.`;
  }

  #nearest(event) {
    const box = this.picture.getBoundingClientRect();
    return this.history.at(this.scale?.sequenceAt(event.clientX - box.left));
  }

  #hover(event) {
    this.#hint(this.#nearest(event), event);
  }

  #hint(row, event) {
    this.tip.classList.toggle("shown", Boolean(row));
    if (!row) return;
    const gain = row.speedup === null ? "" : ` ${speedup(row.speedup, row.speedup_interval)}`;
    refill(this.tip, `#${row.sequence} ${words(row.operator)}: ${words(row.outcome)}${gain}`);
    const box = this.element.getBoundingClientRect();
    this.tip.style.left = `${Math.min(event.clientX - box.left, box.width - this.tip.offsetWidth)}px`;
    this.tip.style.top = `${event.clientY - box.top + 16}px`;
  }

  #pick(event) {
    const row = this.#nearest(event);
    if (row) this.onChosen(row.sequence);
  }

  #step(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const next = (this.line[0] ?? 0) + (step ?? 0);
    if (!step || !this.history.at(next)) return;
    this.onChosen(next);
    event.preventDefault();
  }
}

class Scale {
  constructor(rows, width) {
    const values = rows.flatMap((row) => (row.speedup === null ? [] : [row.speedup]));
    const low = Math.min(0.8, Math.max(Math.min(...values.slice(0, 50000), 1), 0.02));
    const high = Math.max(1.25, values.reduce((most, value) => Math.max(most, value), 1)) * 1.1;
    Object.assign(this, { low, high, count: Math.max(rows.length, 2), width });
    this.floor = HEIGHT - MARGIN.bottom;
  }

  x(row) {
    return this.xOf(row.sequence);
  }

  xOf(sequence) {
    const span = this.width - MARGIN.left - MARGIN.right;
    return round(MARGIN.left + ((sequence - 1) / (this.count - 1)) * span);
  }

  /** Logarithmic: twice as fast is as far from 1 as half as fast. */
  y(value) {
    const share = Math.log(Math.max(value, this.low) / this.low) / Math.log(this.high / this.low);
    const base = HEIGHT - MARGIN.bottom - FLOOR;
    return round(base - share * (base - MARGIN.top));
  }

  sequenceAt(x) {
    const span = this.width - MARGIN.left - MARGIN.right;
    return Math.round(1 + ((x - MARGIN.left) / span) * (this.count - 1));
  }
}

function axes(scale, width) {
  const right = width - MARGIN.right;
  const steps = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
  const close = scale.high / scale.low < 6 ? [0.75, 1.25, 1.5, 3, 4] : [];
  const ticks = [...steps, ...close].filter((value) => value >= scale.low && value <= scale.high);
  const step = niceStep(scale.count / Math.max(width / 110, 2));
  const marks = [];
  for (let sequence = step; sequence <= scale.count; sequence += step) marks.push(sequence);
  return [
    ticks.map((value) => [
      svg("line", { class: value === 1 ? "one" : "grid", x1: MARGIN.left, x2: right, y1: scale.y(value), y2: scale.y(value) }),
      svg("text", { x: MARGIN.left - 8, y: scale.y(value) + 4, "text-anchor": "end" }, `${value}×`)]),
    marks.map((sequence) => svg("text", { x: scale.xOf(sequence), y: HEIGHT - 18, "text-anchor": "middle" }, sequence)),
    svg("text", { x: right, y: HEIGHT - 3, "text-anchor": "end" }, "evaluation"),
  ];
}

function niceStep(rough) {
  const size = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return [1, 2, 5, 10].map((factor) => factor * size).find((step) => step >= rough) ?? size;
}

function intervals(rows, scale) {
  return rows
    .filter((row) => row.speedup_interval)
    .map((row) => `M${scale.x(row)},${scale.y(row.speedup_interval[0])}V${scale.y(row.speedup_interval[1])}`)
    .join("");
}

/** Steps of the speed-up of what was the best then; it falls where that is measured again as slower. */
export function bestPath(history, scale) {
  let path = "";
  let leader = null;
  for (const row of history.rows) {
    const best = row.best === null ? null : history.at(row.best);
    if (best && best !== leader) {
      path += path ? `H${scale.x(row)}V${scale.y(best.speedup ?? 0)}` : `M${scale.x(row)},${scale.y(best.speedup ?? 0)}`;
      leader = best;
    }
  }
  return path ? `${path}H${scale.x(history.rows.at(-1))}` : "";
}

function dot(x, y) {
  return `M${x},${y}h0`;
}

function cross(x, y) {
  return `M${x - 3},${y - 3}l6,6m0,-6l-6,6`;
}

function round(value) {
  return Math.round(value * 10) / 10;
}

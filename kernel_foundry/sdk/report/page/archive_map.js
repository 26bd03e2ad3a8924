// The archive: a grid of 4 × 4 × 4 cells, of all islands or of one, each with its elite.

import { el, refill } from "./dom.js";
import { percent, speedup, times } from "./format.js";

const LEVELS = [0, 1, 2, 3];

export class ArchiveMap {
  /** `onChosen` is told the sequence of an elite. */
  constructor(history, onChosen) {
    Object.assign(this, { history, onChosen, island: "" });
    this.choice = el("select", { "aria-label": "Island", on: { change: () => { this.island = this.choice.value; this.draw(); } } });
    this.grids = el("div", { class: "maps" });
    this.sums = el("p", { class: "soft", role: "status" });
    this.element = el("div", {}, el("div", { class: "filter" }, this.choice), this.grids, this.sums,
      el("p", { class: "soft" }, "Rows: memory (m), columns: algorithm (a), one grid for each level of synchronization. Each number is what ranks the cell's elite: the speed-up that is sure over the baselines at the run's beginning; the stronger the colour, the faster."));
    this.draw();
  }

  /** Mark the cells that proposals are steered to and from. */
  steer({ pinned, banned }) {
    this.steered = new Map([...banned.map((cell) => [cell, "banned"]), [pinned, "pinned"]]);
  }

  draw() {
    const elites = this.history.elites(this.island);
    const gains = [...elites.values()].map((row) => row.ranked_speedup).filter((gain) => gain !== null);
    const range = [Math.min(...gains), Math.max(...gains)];
    refill(this.choice, [["", "all islands"], ...this.history.islands().map((name) => [name, `island ${name}`])]
      .map(([value, text]) => el("option", { value, selected: value === this.island }, text)));
    refill(this.grids, LEVELS.map((level) => this.#grid(level, elites, range)));
    const score = [...elites.values()].reduce((sum, row) => sum + row.fitness, 0);
    refill(this.sums, `${elites.size} of 64 cells have an elite (${percent(elites.size / 64)}); QD score ${score.toFixed(2)}.`);
  }

  #grid(synchronization, elites, range) {
    return el("table", { class: "map" },
      el("caption", { class: "soft" }, `synchronization ${synchronization}`),
      el("thead", {}, el("tr", {}, el("td", {}), LEVELS.map((level) => el("th", { scope: "col" }, `a${level}`)))),
      el("tbody", {}, LEVELS.map((memory) => el("tr", {}, el("th", { scope: "row" }, `m${memory}`),
        LEVELS.map((algorithm) => this.#cell([memory, algorithm, synchronization].join(), elites, range))))));
  }

  #cell(cell, elites, [least, most]) {
    const row = elites.get(cell);
    const steered = this.steered?.get(cell) ?? "";
    const mark = steered && el("span", { class: "steered-cell" }, steered);
    if (!row) return el("td", { class: `empty ${steered}` }, el("span", { "aria-label": "empty" }, "·"), mark);
    const share = most > least ? (row.ranked_speedup - least) / (most - least) : 1;
    const name = `Elite: evaluation ${row.sequence}, ${speedup(row.speedup, row.speedup_interval)}`;
    const choose = () => this.onChosen(row.sequence);
    return el("td", { class: `elite heat${Math.round(share * 4)} ${steered}` }, mark,
      el("button", { type: "button", class: "plain", title: name, "aria-label": name, on: { click: choose } }, row.ranked_speedup === null ? "suspect" : times(row.ranked_speedup)));
  }
}

// The table of evaluations: filter, sort, a hundred on a page.

import { el, refill } from "./dom.js";
import { counted, duration, speedup, words } from "./format.js";
import { compared } from "./sorted_table.js";

const PAGE = 100;

const COLUMNS = [
  { name: "#", key: "sequence", kind: "number", text: (row) => row.sequence },
  { name: "Operator", key: "operator", text: (row, history) => history.made(row) },
  { name: "Expert", key: "island", kind: "wide-only room-only", text: (row) => row.island },
  { name: "Model", key: "model", kind: "wide-only room-only", text: (row) => row.model },
  { name: "Outcome", key: "outcome", text: (row) => words(row.outcome) + (row.trust === "full" ? "" : ` (${row.trust})`), mark: (row) => (row.outcome === "PASSED" ? "good" : "bad") },
  { name: "Time", key: "call_ns", kind: "number wide-only", of: (row) => row.call_ns[0] ?? null, text: (row) => row.call_ns.map(duration).join(", ") },
  { name: "Speed-up", key: "speedup", kind: "number", text: (row) => (row.speedup === null ? "" : speedup(row.speedup, row.speedup_interval)) },
  { name: "Bits", key: "bits", kind: "number wide-only room-only", text: (row) => (row.bits === null ? "" : row.bits.toFixed(1)) },
  { name: "Cell", key: "cell", kind: "whole wide-only room-only", of: (row) => row.cell?.join() ?? null, text: (row) => row.cell?.join(" ") ?? "" },
  { name: "Finding", key: "finding", kind: "finding wide-only", text: (row) => row.finding },
];

export class EvaluationTable {
  /** `onChosen` is told the sequence of an evaluation. */
  constructor(history, onChosen) {
    Object.assign(this, { history, onChosen, page: 0, sorted: COLUMNS[0], isFalling: true });
    const again = () => { this.page = 0; this.draw(); };
    this.words = el("input", { type: "search", placeholder: "Filter: words, digest, finding", "aria-label": "Filter evaluations by words", on: { input: again } });
    this.outcome = el("select", { "aria-label": "Filter evaluations by outcome", on: { change: again } });
    this.count = el("span", { class: "soft", role: "status" });
    this.heads = el("tr", {}, COLUMNS.map((column) => this.#head(column)));
    this.body = el("tbody", {});
    this.pages = el("div", { class: "pages" });
    this.element = el("div", {},
      el("div", { class: "filter" }, this.words, this.outcome, this.count),
      el("div", { class: "wide" }, el("table", { class: "evaluations" },
        el("caption", { class: "unseen" }, "Evaluations; j and k go to the next and the previous one"),
        el("thead", {}, this.heads), this.body)),
      this.pages);
  }

  /** Mark the evaluation that is looked at. */
  mark(sequence) {
    this.marked = sequence;
    for (const row of this.body.rows) {
      row.setAttribute("aria-current", String(Number(row.dataset.sequence) === sequence));
    }
  }

  draw() {
    this.#drawOutcomes();
    const rows = this.#shown();
    const pageCount = Math.max(Math.ceil(rows.length / PAGE), 1);
    this.page = Math.min(this.page, pageCount - 1);
    refill(this.count, rows.length === this.history.rows.length ? counted(rows.length, "evaluation") : `${rows.length} of ${this.history.rows.length}`);
    refill(this.body, rows.slice(this.page * PAGE, (this.page + 1) * PAGE).map((row) => this.#row(row)));
    [...this.heads.cells].forEach((cell, at) => {
      const order = this.isFalling ? "descending" : "ascending";
      cell.setAttribute("aria-sort", COLUMNS[at] === this.sorted ? order : "none");
    });
    this.#drawPages(pageCount);
    this.mark(this.marked);
  }

  #shown() {
    const outcome = this.outcome.value;
    const wanted = this.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = this.history.rows.filter((row) => {
      if (outcome === "failed" ? row.outcome === "PASSED" : outcome && row.outcome !== outcome) return false;
      if (!wanted.length) return true;
      const text = [row.sequence, row.candidate, this.history.made(row), row.island, row.model, words(row.outcome), row.configuration, row.finding].join(" ").toLowerCase();
      return wanted.every((word) => text.includes(word));
    });
    const of = this.sorted.of ?? ((row) => row[this.sorted.key]);
    const sign = this.isFalling ? -1 : 1;
    return rows.sort((one, other) => sign * compared(of(one), of(other), sign) || other.sequence - one.sequence);
  }

  #drawOutcomes() {
    const found = [...new Set(this.history.rows.map((row) => row.outcome))].sort();
    if (found.join() === this.outcomes) return;
    this.outcomes = found.join();
    const { value } = this.outcome;
    const choices = [["", "all outcomes"], ["failed", "failed"], ...found.map((name) => [name, words(name)])];
    refill(this.outcome, choices.map(([key, text]) => el("option", { value: key, selected: key === value }, text)));
  }

  #head(column) {
    const sort = () => {
      this.isFalling = this.sorted === column ? !this.isFalling : column.kind?.includes("number") ?? false;
      this.sorted = column;
      this.page = 0;
      this.draw();
    };
    return el("th", { scope: "col", class: column.kind }, el("button", { type: "button", class: "sort", on: { click: sort } }, column.name));
  }

  #row(row) {
    const cells = COLUMNS.map((column) => el("td", { class: `${column.kind ?? ""} ${column.mark?.(row) ?? ""}` }, column.text(row, this.history)));
    refill(cells[0], el("button", { type: "button", class: "plain", "aria-label": `Evaluation ${row.sequence}` }, row.sequence));
    return el("tr", { "data-sequence": row.sequence, on: { click: () => this.onChosen(row.sequence) } }, cells);
  }

  #drawPages(pageCount) {
    const go = (step) => () => { this.page += step; this.draw(); };
    refill(this.pages, pageCount > 1 && [
      el("button", { type: "button", disabled: this.page === 0, on: { click: go(-1) } }, "Previous"),
      el("span", { class: "soft" }, `page ${this.page + 1} of ${pageCount}`),
      el("button", { type: "button", disabled: this.page === pageCount - 1, on: { click: go(1) } }, "Next"),
    ]);
  }
}

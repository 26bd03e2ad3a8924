// The evaluations of one run, in order, and who came from whom.

export class RunHistory {
  /** Rows by sequence, which begins at 1. */
  rows = [];

  /** Digests of the candidates that people gave while the run went on. */
  injected = new Set();

  #newest = new Map();
  #children = new Map();
  #selections = new Map();

  add(rows) {
    for (const row of rows) {
      if (row.sequence <= this.rows.length) continue;
      this.rows.push(row);
      if (!this.#newest.has(row.candidate)) {
        for (const parent of row.parents) {
          if (!this.#children.has(parent)) this.#children.set(parent, []);
          this.#children.get(parent).push(row.candidate);
        }
      }
      if (row.selection !== null) this.#selections.set(row.candidate, row.selection);
      this.#newest.set(row.candidate, row);
    }
  }

  at(sequence) {
    return this.rows[sequence - 1];
  }

  /** The best evaluation so far, or undefined. */
  get best() {
    return this.at(this.rows.at(-1)?.best);
  }

  /** The newest evaluation of a candidate, or undefined. */
  newest(candidate) {
    return this.#newest.get(candidate);
  }

  /** The selection that a candidate answers, also where it was measured again; or undefined. */
  selection(row) {
    return this.#selections.get(row.candidate);
  }

  /** How an evaluation came about, in words. */
  made(row) {
    if (row.is_final) return "measured again";
    return row.selection === null && this.injected.has(row.candidate) ? "injected" : row.operator;
  }

  parents(row) {
    return row.parents.map((parent) => this.newest(parent)).filter(Boolean);
  }

  children(row) {
    return (this.#children.get(row.candidate) ?? []).map((child) => this.newest(child));
  }

  /** The row and its first parents, back to the seed. */
  line(row) {
    const line = [];
    const seen = new Set();
    for (let one = row; one && !seen.has(one.candidate); one = this.parents(one)[0]) {
      seen.add(one.candidate);
      line.push(one);
    }
    return line;
  }

  /** Roles of the islands, in order of appearance; a run without has none. */
  islands() {
    return [...new Set(this.rows.map((row) => row.island))].filter(Boolean);
  }

  /** The fittest newest verdict of each cell, by "m,a,s"; of one island, or of all for "". */
  elites(island) {
    const elites = new Map();
    for (const row of this.#newest.values()) {
      if (row.outcome !== "PASSED" || !row.cell || (island && row.island !== island)) continue;
      const key = row.cell.join();
      const other = elites.get(key);
      if (!other || row.fitness > other.fitness) elites.set(key, row);
    }
    return elites;
  }
}

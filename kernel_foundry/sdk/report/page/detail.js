// The evaluation that is looked at, in panes.

import { diffView } from "./diff.js";
import { el, refill } from "./dom.js";
import { promptPane } from "./exchanges.js";
import { speedup, words } from "./format.js";
import { lineagePane } from "./lineage.js";
import { profilePane } from "./profile.js";
import { roofline } from "./roofline.js";
import { sampleStrips } from "./samples.js";
import { Tabs } from "./tabs.js";
import { verdictPane } from "./verdict.js";

const KEPT = 50; // details in memory

export class Detail {
  /** `view` has `source`, `name`, `history` and `choose`. */
  constructor(view) {
    this.view = view;
    this.known = new Map();
    this.title = el("h2", {});
    this.about = el("p", { class: "soft" });
    this.tabs = new Tabs("Parts of the evaluation", [
      ["verdict", "Verdict", async () => verdictPane(await this.#read(this.row))],
      ["code", "Code", async () => codePane(await this.#read(this.row))],
      ["diff", "Diff", () => this.#diff()],
      ["times", "Times", async () => timesPane(await this.#read(this.row))],
      ["profile", "Profile", async () => profilePane(await this.#read(this.row))],
      ["lineage", "Lineage", () => lineagePane(view, this.row, (sequence, to) => view.choose(sequence, to))],
      ["prompt", "Prompt", () => promptPane(view.source, view.name, view.history.selection(this.row))],
    ], (pane) => { if (this.row) view.pane = pane; });
    this.element = el("aside", { class: "detail", "aria-label": "The evaluation that is looked at" }, this.title, this.about, this.tabs.element);
  }

  /** Show an evaluation; undefined: there is none yet. */
  show(row, pane) {
    this.element.hidden = !row;
    if (!row || (this.row === row && this.tabs.chosen === pane)) return;
    this.row = row;
    const gain = row.speedup === null ? words(row.outcome) : speedup(row.speedup, row.speedup_interval);
    refill(this.title, `#${row.sequence} `, el("span", { class: row.outcome === "PASSED" ? "" : "bad" }, gain));
    const made = this.view.history.made(row);
    refill(this.about, [made, row.model && `by ${row.model}`, row.island && `for ${row.island}`, `generation ${row.generation}`, row.configuration]
      .filter(Boolean).join(" · "), " · ", el("code", { title: row.candidate }, row.candidate.slice(0, 12)));
    this.tabs.choose(pane);
  }

  async #diff() {
    const parents = this.view.history.parents(this.row);
    if (!parents.length) return el("p", { class: "soft" }, "It has no parents.");
    const after = await this.#read(this.row);
    return Promise.all(parents.map(async (parent) => [
      el("p", {}, `From #${parent.sequence} to #${this.row.sequence}`), diffView(await this.#read(parent), after)]));
  }

  async #read(row) {
    const known = this.known.get(row.sequence) ?? (await this.view.source.evaluation(this.view.name, row.sequence));
    this.known.delete(row.sequence);
    this.known.set(row.sequence, known);
    if (this.known.size > KEPT) this.known.delete(this.known.keys().next().value);
    return known;
  }
}

function timesPane({ verdict }) {
  const timed = verdict.workloads.some((result) => result.samples_ns.length);
  return timed ? [roofline(verdict.workloads), sampleStrips(verdict.workloads)] : el("p", { class: "soft" }, "It was not timed.");
}

function codePane(detail) {
  return [
    el("h3", {}, "Device code"), el("pre", { tabindex: "0", "aria-label": "Device code" }, detail.device_code),
    el("h3", {}, "Launch plan"), el("pre", { tabindex: "0", "aria-label": "Launch plan" }, detail.plan),
  ];
}

// Who came from whom: the ancestors of an evaluation, and what was made of it.

import { el } from "./dom.js";
import { promptSections } from "./exchanges.js";
import { times, words } from "./format.js";
import { table } from "./verdict.js";

const MOST_CHILDREN = 200;

/** Ancestors and children; `choose` is told the sequence and the pane of what is clicked. */
export async function lineagePane({ source, name, history }, row, choose) {
  const line = history.line(row);
  const others = history.parents(row).slice(1);
  const children = history.children(row);
  const heads = ["Evaluation", "Made by", { name: "Speed-up", kind: "number" }, { name: "To its parent", kind: "number" }, "How"];
  const steps = (rows) => rows.map((one) => [
    el("button", { type: "button", class: "plain", on: { click: () => choose(one.sequence, "lineage") } }, `#${one.sequence}`),
    [words(history.made(one)), one.model && ` by ${one.model}`, one.island && ` for ${one.island}`],
    one.speedup === null ? el("span", { class: "bad" }, words(one.outcome)) : times(one.speedup),
    change(history, one),
    [stepButton("diff", one, choose), " ", history.selection(one) === undefined ? null : stepButton("prompt", one, choose)],
  ]);
  return [
    el("h3", {}, line.length > 1 ? "From the seed to this one, newest first" : "It has no parents"),
    table("Ancestors, newest first", heads, steps(line)),
    others.length ? [el("h3", {}, "Its other parents"), table("Other parents", heads, steps(others))] : null,
    el("h3", {}, children.length ? `Made of it: ${children.length}` : "Nothing was made of it yet"),
    children.length ? table("Children", heads, steps(children.slice(0, MOST_CHILDREN))) : null,
    await whyPart(source, name, history.selection(row)),
  ];
}

/** Direction, lessons and hint that a step was given. */
async function whyPart(source, run, selection) {
  let sections = [];
  let missing = "No model was asked for it.";
  if (selection !== undefined) {
    try {
      sections = await promptSections(source, run, selection);
      missing = "Its prompt, where one is kept, gave no direction, lesson or hint.";
    } catch (error) {
      missing = error.message;
    }
  }
  return [el("h3", {}, "What this step was told"),
    sections.length ? sections.map(([title, text]) => [el("p", {}, title), el("pre", { tabindex: "0", "aria-label": title }, text)]) : el("p", { class: "soft" }, missing)];
}

function stepButton(pane, row, choose) {
  const on = { click: () => choose(row.sequence, pane) };
  return el("button", { type: "button", class: "plain", "aria-label": `${pane} of evaluation ${row.sequence}`, on }, pane);
}

function change(history, row) {
  const parent = history.parents(row)[0];
  if (!parent || row.speedup === null || parent.speedup === null) return "";
  const ratio = row.speedup / parent.speedup;
  return el("span", { class: ratio > 1.02 ? "good" : ratio < 0.98 ? "bad" : "soft" }, `${ratio >= 1 ? "▲" : "▼"} ${times(ratio)}`);
}

// What the run was asked to do.

import { el } from "./dom.js";

/** The task's reference and the run's settings. */
export function taskPanel(head) {
  const facts = [
    ["task", head.task], ["workloads", head.workloads.join(", ")],
    ["switched off", head.without.join(", ") || "nothing"],
    ["budget", budgetText(head.budget)],
  ];
  return [
    el("dl", { class: "facts" }, facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
    el("h3", {}, "Reference"),
    el("pre", { tabindex: "0", "aria-label": "Reference" }, head.task_text),
  ];
}

function budgetText(budget) {
  if (!budget) return "not known";
  const named = [["evaluations", "evaluations"], ["minutes", "minutes left"], ["cost_usd", "USD"], ["tokens", "tokens"],
    ["requests_per_minute", "requests a minute"]];
  const parts = named.filter(([name]) => budget[name] !== null).map(([name, unit]) => `${Number(budget[name].toFixed(2))} ${unit}`);
  return parts.join(", ") || "no limit";
}

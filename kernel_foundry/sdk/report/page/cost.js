// How evaluations ended, what models took, and what acted.

import { el } from "./dom.js";
import { dollars, percent, words } from "./format.js";
import { table } from "./verdict.js";

/** Outcomes, islands, models, repairs, lessons and mechanisms of a run. */
export function costPanel(head, history, account) {
  const { stats } = head;
  return [
    el("h3", {}, "Outcomes"),
    table("How evaluations ended", ["Outcome", count("Evaluations"), count("Share")],
      stats.outcomes.map((one) => [words(one.outcome), one.count, percent(one.count / stats.evaluation_count)])),
    models(account),
    repairs(account.repairs),
    islands(stats.islands),
    mechanisms(head, history, account),
  ];
}

function count(name) {
  return { name, kind: "number" };
}

function models(account) {
  if (account.failure) return el("p", { class: "soft" }, `What models took is not known here: ${account.failure}`);
  const rows = Object.entries(account.spend ?? {}).map(([model, spend]) => [
    model, spend.requests, spend.retries, spend.prompt_tokens, spend.completion_tokens, dollars(spend.usd)]);
  return [
    rows.length ? [el("h3", {}, "Models"), table("What models took",
      ["Model", count("Requests"), count("Retries"), count("Tokens in"), count("Tokens out"), count("Cost")], rows)] : null,
    account.lessons ? el("p", { class: "soft" }, `Lessons: ${account.lessons.shown} shown in prompts, ${account.lessons.learnt} learnt.`) : null,
  ];
}

function repairs(made) {
  const rows = Object.entries(made ?? {}).map(([kind, one]) => [
    words(kind), one.attempts, one.successes, one.attempts ? percent(one.successes / one.attempts) : ""]);
  return rows.length ? [el("h3", {}, "Repairs by what was wrong"),
    table("Repairs", ["Finding", count("Attempts"), count("Successes"), count("Share")], rows)] : null;
}

function islands(all) {
  return all.length > 1 ? [el("h3", {}, "Islands"), table("Islands", ["Island", count("Elites"), count("QD score"), count("Taken in")],
    all.map((one) => [one.name, one.elite_count, one.qd_score.toFixed(2), one.migrations]))] : null;
}

function mechanisms(head, history, account) {
  const acted = {
    ...account.mechanisms,
    migration: head.stats.islands.reduce((sum, island) => sum + island.migrations, 0),
    sweeps: head.sweeps.length,
    promotion: history.rows.filter((row) => row.is_final).length,
  };
  const rows = Object.entries(acted).filter(([, times]) => times).sort((one, other) => other[1] - one[1]);
  return rows.length ? [el("h3", {}, "How often each mechanism acted"),
    table("How often each mechanism acted", ["Mechanism", count("Times")], rows.map(([name, times]) => [words(name), times]))] : null;
}

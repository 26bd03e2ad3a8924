// Suites: the list, and one in the field's numbers with each of its runs.

import { el, link, refill } from "./dom.js";
import { counted, date, dollars, percent, speedup } from "./format.js";
import { reached } from "./reached.js";
import { sortedTable } from "./sorted_table.js";
import { table } from "./verdict.js";

/** Show all suites; returns what ends that. */
export async function showSuites(root, source) {
  document.title = "Suites · Kernel Foundry";
  const suites = await source.suites();
  const columns = [
    { name: "Suite", of: (suite) => suite.suite, text: (suite) => link(`/suite/${suite.suite}`, {}, suite.suite) },
    { name: "Runs", of: (suite) => Object.entries(suite.runs).filter(([, count]) => count).map(([state, count]) => `${count} ${state}`).join(", ") },
    { name: "Cost", kind: "number", of: (suite) => suite.cost_usd, text: (suite) => dollars(suite.cost_usd) },
    { name: "Begun", kind: "wide-only", of: (suite) => suite.created_unix_s, text: (suite) => date(suite.created_unix_s) },
  ];
  refill(root, el("h1", {}, "Suites"), el("section", {}, suites.length ? sortedTable("All suites, newest first", columns, suites)
    : el("p", { class: "soft" }, "No suites yet: ", el("code", {}, "kfoundry suite run FOLDER"), " makes one.")));
  return () => {};
}

/** Show one suite, or foreign kernels that were judged as one; returns what ends that. */
export async function showSuite(root, source, name) {
  document.title = `${name} · Kernel Foundry`;
  const suite = await source.suite(name);
  const { summary } = suite;
  refill(root,
    el("h1", {}, suite.suite, " ", el("span", { class: `state ${suite.has_ended ? "finished" : "running"}` }, suite.has_ended ? "finished" : "running")),
    el("p", { class: "soft" }, suite.heading),
    summary.unfinished.length ? el("p", { class: "warm" }, `Not finished, and not counted: ${summary.unfinished.length} of the tasks.`) : null,
    el("section", {}, el("h2", {}, "In the field's numbers"), numbers(summary, suite.used_seconds)),
    el("section", {}, el("h2", {}, "Speed-up over the fastest baseline"), distribution(suite), reached(suite.runs)),
    el("section", {}, el("h2", {}, "Runs"), sortedTable("Runs of the suite", runColumns(source.isLive), suite.runs)));
  return () => {};
}

function runColumns(isLive) {
  return [
    { name: "Task", of: (run) => run.task, text: (run) => (isLive && run.evaluations ? link(`/run/${run.run}`, {}, run.task) : run.task) },
    { name: "State", of: (run) => run.state, text: (run) => [run.state, run.reason ? `: ${run.reason}` : "", run.degenerate ? ", degenerate" : "", run.trust && run.trust !== "full" ? ` (${run.trust})` : ""] },
    { name: "Device", kind: "wide-only", of: (run) => run.device },
    { name: "Over fastest", kind: "number", of: (run) => run.speedup_fastest ?? null, text: (run) => gain(run, "fastest") },
    { name: "Over eager", kind: "number", of: (run) => run.speedup_eager ?? null, text: (run) => gain(run, "eager") },
    { name: "SOL score", kind: "number wide-only", of: (run) => run.sol_score, text: (run) => run.sol_score?.toFixed(2) ?? "" },
    { name: "Bits", kind: "number wide-only", of: (run) => run.effective_bits, text: (run) => run.effective_bits?.toFixed(1) },
    { name: "Own kernels", kind: "number wide-only", of: (run) => run.own_share, text: (run) => (run.own_share === null ? "" : percent(run.own_share)) },
    { name: "Evaluations", kind: "number wide-only", of: (run) => run.evaluations },
    { name: "Cost", kind: "number wide-only", of: (run) => run.cost_usd, text: (run) => dollars(run.cost_usd) },
    { name: "Minutes", kind: "number wide-only", of: (run) => run.seconds, text: (run) => (run.seconds / 60).toFixed(1) },
  ];
}

function gain(run, baseline) {
  const value = run[`speedup_${baseline}`] ?? null;
  return value === null ? "" : speedup(value, [run[`speedup_${baseline}_low`], run[`speedup_${baseline}_high`]]);
}

function share(estimate) {
  return estimate ? `${percent(estimate.value)} (${(100 * estimate.low).toFixed(0)}–${(100 * estimate.high).toFixed(0)})` : "–";
}

function score(estimate) {
  return `${estimate.value.toFixed(2)} (${estimate.low.toFixed(2)}–${estimate.high.toFixed(2)})`;
}

function numbers(summary, seconds) {
  const heads = ["Over", { name: "Geometric mean", kind: "number" }, { name: "Median", kind: "number" },
    ...(summary.baselines[0]?.fast ?? []).map((fast) => ({ name: `fast_${fast.p}`, kind: "number" }))];
  const ratio = (estimate) => (estimate ? speedup(estimate.value, [estimate.low, estimate.high]) : "–");
  const bits = summary.effective_bits ? `${summary.effective_bits.value.toFixed(1)} bits` : "not known";
  return [
    el("p", {}, `${share(summary.correctness)} of ${counted(summary.tasks, "task")} solved; ${counted(summary.evaluations, "evaluation")}, ${dollars(summary.cost_usd)}, ${(seconds / 3600).toFixed(1)} h.`),
    summary.baselines.length ? table("Speed-ups over each baseline", heads, summary.baselines.map((one) => [
      baselineName(one), ratio(one.geometric_mean), ratio(one.median), ...one.fast.map((fast) => share(fast.share))])) : null,
    summary.workloads > summary.tasks ? wins(summary) : null,
    el("p", { class: "soft" }, "fast_p: share of all tasks that are correct and more than p times faster (KernelBench); win@p: the same of all workloads (FlashInfer-Bench). Means and medians are over solved tasks. Intervals of 95 % are over tasks."),
    el("p", { class: "soft" }, `Precision of the winners, median: ${bits}. Device time in own kernels: ${share(summary.own_share)}. Runs refused: ${summary.refused}, failed: ${summary.failed}; winners not fully trusted: ${summary.suspect}.`),
    summary.sol_score ? el("p", { class: "soft" }, `SOL score (0.5: the fastest baseline, 1: the larger of traffic bound and arithmetic estimate): ${score(summary.sol_score)}, mean over ${counted(summary.sol_scored, "task")}.`) : null,
    summary.degenerate.length ? el("p", { class: "soft" }, `A trivial answer passes these tasks, which are not counted: ${summary.degenerate.join(", ")}.`) : null,
  ];
}

/** Shares of workloads, which say more than fast_p where tasks have several. */
function wins(summary) {
  const heads = ["Over", ...(summary.baselines[0]?.win ?? []).map((one) => ({ name: `win@${one.p}`, kind: "number" }))];
  return table(`Shares of ${counted(summary.workloads, "workload")}`, heads, summary.baselines.map((one) => [baselineName(one), ...one.win.map((of) => share(of.share))]));
}

function baselineName(one) {
  return one.baseline === "fastest" ? "fastest baseline" : one.baseline;
}

function distribution(suite) {
  const most = Math.max(1, ...suite.distribution.map((range) => range.count));
  return table("Runs in each range of speed-ups", ["Range", { name: "Runs", kind: "number" }, ""], suite.distribution.map((range) => [
    range.label, range.count, el("meter", { "aria-label": `${range.count} of ${suite.runs.length}`, value: range.count / most })]));
}

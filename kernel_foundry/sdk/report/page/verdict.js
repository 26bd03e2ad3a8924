// The verdict on a candidate: times, findings, checks, evidence.

import { el, wide } from "./dom.js";
import { duration, figure, percent, speedup, words } from "./format.js";

/** Everything that an evaluation says. */
export function verdictPane({ verdict }) {
  return [
    findings(verdict.findings),
    workloads(verdict.workloads),
    kernels(verdict),
    checks(verdict.checks),
    precision(verdict.workloads),
    evidence(verdict),
    stages(verdict.stages_ms),
    verdict.compile?.log ? fold("Compiler's log", el("pre", { tabindex: "0" }, verdict.compile.log)) : null,
  ];
}

/** A table with a caption that screen readers say. */
export function table(caption, heads, rows) {
  return wide(caption, el("table", {},
    el("caption", { class: "unseen" }, caption),
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col", class: head.kind }, inWords(head.name ?? head))))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, at) => el("td", { class: heads[at].kind }, cell)))))));
}

/** A heading that may break between words, and nowhere else. */
function inWords(name) {
  return typeof name === "string" ? name.split(" ").map((word, at) => [at ? " " : "", el("span", { class: "whole" }, word)]) : name;
}

function number(name) {
  return { name, kind: "number" };
}

function fold(title, ...content) {
  return el("details", {}, el("summary", {}, title), content);
}

function findings(found) {
  if (!found.length) return null;
  return [el("h3", {}, "Findings"), el("ul", { class: "findings" }, found.map((finding) => el("li", { class: finding.severity },
    el("b", {}, words(finding.kind), finding.line === null ? "" : `, line ${finding.line}`), " ",
    el("span", { class: "message" }, finding.message), " ", el("span", { class: "soft" }, finding.hint))))];
}

function workloads(results) {
  const heads = ["Workload", number("Time"), number("Speed-up"), number("Traffic bound"), number("Arithmetic"), number("Error")];
  const rows = results.map((result) => [
    result.workload + (result.held_out ? " (held out)" : ""),
    result.median_ns === null ? (result.correctness ? "correct" : "") : spread(result),
    result.speedup === null ? "" : speedup(result.speedup, result.speedup_interval),
    result.traffic_bound_share === null ? "" : percent(result.traffic_bound_share),
    result.arithmetic_estimate_share === null ? "" : percent(result.arithmetic_estimate_share),
    result.correctness ? figure(result.correctness.max_abs_error) : "",
  ]);
  const baselines = results.filter((result) => Object.keys(result.baselines).length).map((result) => el("p", { class: "soft" },
    `${result.workload}: `, Object.entries(result.baselines).map(([name, ns]) => `${name} ${duration(ns)}`).join(", "),
    result.prepare_ns === null ? "" : `; prepare ${duration(result.prepare_ns)}${result.prepare_counted_in ? ", counted in" : ", not counted"}`));
  const shares = el("p", { class: "soft" }, "Traffic bound and arithmetic estimate: their time as a share of the kernel's; error: the largest.");
  return rows.length ? [el("h3", {}, "Workloads"), shares, table("Times of each workload", heads, rows), baselines] : null;
}

function spread(result) {
  const half = (50 * (result.ci95_ns[1] - result.ci95_ns[0])) / result.median_ns;
  return `${duration(result.median_ns)} ±${figure(Number(half.toPrecision(2)))} %`;
}

function kernels(verdict) {
  const timed = verdict.workloads.flatMap((result) => {
    const sum = result.kernel_times.reduce((ns, time) => ns + time.median_ns, 0);
    return result.kernel_times.map((time) => [
      result.workload, time.kernel, time.launches, duration(time.median_ns / time.launches), percent(time.median_ns / sum)]);
  });
  const built = (verdict.compile?.kernels ?? []).map((kernel) => [
    kernel.kernel, kernel.registers, kernel.shared_bytes, kernel.local_bytes, kernel.spill_bytes]);
  return [
    timed.length ? [el("h3", {}, "Time of each kernel"), table("Time of each kernel", ["Workload", "Kernel", number("Launches"), number("Time of one"), number("Share")], timed)] : null,
    built.length ? [el("h3", {}, "What each kernel takes"), table("What each kernel takes",
      ["Kernel", number("Registers"), number("Shared bytes"), number("Local bytes"), number("Spilt bytes")], built)] : null,
    verdict.arithmetic ? el("p", { class: "soft" }, `Arithmetic: ${verdict.arithmetic}.`) : null,
  ];
}

function checks(made) {
  if (!made.length) return null;
  const rows = made.map((check) => [
    words(check.kind), check.workload,
    el("span", { class: { passed: "good", failed: "bad", suspect: "warm" }[check.result] ?? "soft" }, check.result),
    [Object.entries(check.figures).map(([name, value]) => `${words(name)} ${figure(value)}`).join(", "), " ", el("span", { class: "soft" }, check.note)],
  ]);
  return [el("h3", {}, "Checks"), table("Checks that the verdict rests on", ["Check", "Workload", "Result", "Figures"], rows)];
}

function precision(results) {
  const audited = results.filter((result) => result.correctness?.precision);
  if (!audited.length) return null;
  const heads = ["Workload", ...["Median", "99 %", "Largest", "Root mean square", "Of the reference", "Effective bits"].map(number)];
  const rows = audited.map(({ workload, correctness: { precision: audit } }) => [
    workload, ...[audit.median_error, audit.p99_error, audit.max_error, audit.rms_error, audit.reference_rms_error].map((error) => Number(error).toExponential(2)),
    audit.effective_bits.toFixed(1)]);
  return fold("Errors against float64", table("Errors against float64", heads, rows),
    el("p", { class: "soft" }, "Each error in units of its row's scale plus its own size, as the tolerance counts it."));
}

function evidence(verdict) {
  const signed = verdict.attestation;
  const rows = [
    ["trust", el("span", { class: verdict.trust === "full" ? "good" : "warm" }, verdict.trust)],
    ...(signed ? [
      ["digest", el("code", {}, signed.digest)],
      ["signed with key", el("code", {}, signed.key_fingerprint)],
      ...Object.entries(signed.seeds).map(([workload, seeds]) => [`seeds of ${workload}`, seeds.join(", ") + (signed.seeds_given ? " (given by the caller)" : "")]),
    ] : verdict.outcome === "PASSED" ? [["digest", "none: it was judged before verdicts were signed"]] : []),
    ...Object.entries(verdict.evidence),
  ];
  return fold("Evidence", table("Evidence", ["What", "Value"], rows));
}

function stages(times) {
  const rows = Object.entries(times).map(([stage, ms]) => [words(stage), duration(ms * 1e6)]);
  return rows.length ? fold("Where the evaluation's time went", table("Wall time of each stage", ["Stage", number("Time")], rows)) : null;
}

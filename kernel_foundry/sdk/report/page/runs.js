// The list of runs, newest first.

import { el, link, refill } from "./dom.js";
import { date, dollars, speedup } from "./format.js";

const EVERY_MS = 5000;

/** Show all runs and keep them fresh; returns what ends that. */
export async function showRuns(root, source) {
  document.title = "Runs · Kernel Foundry";
  const list = el("div", {});
  const draw = async () => refill(list, runsTable(await source.runs()));
  await draw();
  refill(root, el("h1", {}, "Runs"), list);
  const timer = setInterval(() => draw().catch(() => {}), EVERY_MS);
  return () => clearInterval(timer);
}

function runsTable(runs) {
  if (!runs.length) {
    return el("p", { class: "soft" }, "No runs yet: ", el("code", {}, "kfoundry optimize TASK"), " makes one.");
  }
  const heads = [["Run"], ["State"], ["Best", "number"], ["Evaluations", "number wide-only"],
    ["Cost", "number wide-only"], ["Task", "wide-only"], ["Device", "wide-only"], ["Begun", "wide-only"]];
  return el("section", {}, el("div", { class: "wide" }, el("table", {},
    el("caption", { class: "unseen" }, "All runs, newest first"),
    el("thead", {}, el("tr", {}, heads.map(([name, kind]) => el("th", { scope: "col", class: kind }, name)))),
    el("tbody", {}, runs.map(runRow)))));
}

function runRow(run) {
  return el("tr", {},
    el("th", { scope: "row" }, link(`/run/${run.run}`, {}, run.run)),
    el("td", {}, el("span", { class: `state ${run.state}` }, run.state)),
    el("td", { class: "number" }, speedup(run.speedup, run.speedup_interval)),
    el("td", { class: "number wide-only" }, run.evaluations),
    el("td", { class: "number wide-only" }, dollars(run.cost_usd)),
    el("td", { class: "wide-only" }, run.task),
    el("td", { class: "wide-only" }, run.device),
    el("td", { class: "wide-only" }, date(run.created_unix_s)));
}

// The list of runs, newest first.

import { el, link, refill, wide } from "./dom.js";
import { date, dollars, speedup } from "./format.js";

const EVERY_MS = 5000;

/** Show all runs and keep them fresh; returns what ends that. */
export async function showRuns(root, source) {
  document.title = "Runs · Kernel Foundry";
  const list = el("div", {});
  const marked = new Set();
  const compare = el("p", { class: "soft wide-only", role: "status" });
  const onMark = (name, isMarked) => {
    marked[isMarked ? "add" : "delete"](name);
    refill(compare, marked.size === 2 ? link(`/compare/${[...marked].join("/")}`, {}, `Compare ${[...marked].join(" and ")}`) : "Mark two runs to compare them.");
  };
  onMark("", false);
  const draw = async () => refill(list, runsTable(await source.runs(), marked, onMark));
  await draw();
  refill(root, el("h1", {}, "Runs"), compare, list);
  const timer = setInterval(() => draw().catch(() => {}), EVERY_MS);
  return () => clearInterval(timer);
}

function runsTable(runs, marked, onMark) {
  if (!runs.length) {
    return el("p", { class: "soft" }, "No runs yet: ", el("code", {}, "kfoundry optimize TASK"), " makes one.");
  }
  const heads = [["Compare", "wide-only"], ["Run"], ["State"], ["Best", "number"], ["Evaluations", "number wide-only"],
    ["Cost", "number wide-only"], ["Task", "wide-only"], ["Device", "wide-only"], ["Begun", "wide-only"]];
  return el("section", {}, wide("All runs", el("table", {},
    el("caption", { class: "unseen" }, "All runs, newest first"),
    el("thead", {}, el("tr", {}, heads.map(([name, kind]) => el("th", { scope: "col", class: kind }, name)))),
    el("tbody", {}, runs.map((run) => runRow(run, marked, onMark))))));
}

function runRow(run, marked, onMark) {
  const mark = el("input", { type: "checkbox", checked: marked.has(run.run), "aria-label": `Compare ${run.run}`, on: { change: () => onMark(run.run, mark.checked) } });
  return el("tr", {},
    el("td", { class: "wide-only" }, mark),
    el("th", { scope: "row" }, link(`/run/${run.run}`, {}, run.run)),
    el("td", {}, el("span", { class: `state ${run.state}` }, run.state)),
    el("td", { class: "number" }, speedup(run.speedup, run.speedup_interval)),
    el("td", { class: "number wide-only" }, run.evaluations),
    el("td", { class: "number wide-only" }, dollars(run.cost_usd)),
    el("td", { class: "wide-only clip", title: run.task }, run.task),
    el("td", { class: "wide-only clip", title: run.device }, run.device),
    el("td", { class: "wide-only" }, date(run.created_unix_s)));
}

// What each run of a suite reached with how many evaluations, and the front of those that none beats in both.

import { el, svg } from "./dom.js";
import { counted, times } from "./format.js";
import { logScale } from "./log_scale.js";
import { plotWidth } from "./plot_width.js";

const MOST_WIDTH = 720;
const HEIGHT = 260;
const LEFT = 50;
const BOTTOM = HEIGHT - 36;

/** The plot of the runs that solved their task; nothing where none did. */
export function reached(runs) {
  const solved = runs.filter((run) => run.correct && run.speedup_fastest && run.evaluations);
  if (!solved.length) return null;
  const width = plotWidth(MOST_WIDTH);
  const x = logScale(solved.map((run) => run.evaluations), LEFT + 8, width - 14, 1.1);
  const y = logScale([1, ...solved.map((run) => run.speedup_fastest)], BOTTOM, 12, 1.1);
  const best = front(solved);
  const ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100].filter((value) => y(value) <= BOTTOM && y(value) >= 12);
  const counts = [...new Set([solved, best].flat().map((run) => run.evaluations))].sort((one, other) => one - other);
  const marked = counts.filter((_count, at) => at % Math.ceil(counts.length / 8) === 0);
  const words = best.map((run) => `${run.task}: ${times(run.speedup_fastest)} after ${counted(run.evaluations, "evaluation")}`).join("; ");
  return [
    el("h3", {}, "Reached with how many evaluations"),
    svg("svg", { class: "reached", role: "img", "aria-label": words, viewBox: `0 0 ${width} ${HEIGHT}` },
      ticks.map((value) => [
        svg("line", { class: value === 1 ? "one" : "grid", x1: LEFT, x2: width - 10, y1: y(value), y2: y(value) }),
        svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, `${value}×`)]),
      marked.map((count) => svg("text", { x: x(count), y: BOTTOM + 16, "text-anchor": "middle" }, count)),
      svg("text", { x: width - 10, y: HEIGHT - 3, "text-anchor": "end" }, "evaluations (logarithmic)"),
      svg("path", { class: "front", d: best.map((run, at) => `${at ? "H" : "M"}${x(run.evaluations)}${at ? "V" : ","}${y(run.speedup_fastest)}`).join("") }),
      solved.map((run) => svg("circle", { cx: x(run.evaluations), cy: y(run.speedup_fastest), r: 4 })),
      best.map((run) => svg("text", { x: x(run.evaluations) + 7, y: y(run.speedup_fastest) - 5, "text-anchor": x(run.evaluations) > width / 2 ? "end" : "start" }, run.task))),
    el("p", { class: "soft" }, "A dot is a run that solved its task. The line joins those that no other beats in both numbers (Pareto)."),
  ];
}

/** Runs that are faster than all that took as many evaluations or fewer, by evaluations. */
function front(runs) {
  const ordered = [...runs].sort((one, other) => one.evaluations - other.evaluations || other.speedup_fastest - one.speedup_fastest);
  let most = 0;
  return ordered.filter((run) => {
    const isFaster = run.speedup_fastest > most;
    if (isFaster) most = run.speedup_fastest;
    return isFaster;
  });
}

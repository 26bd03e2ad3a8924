// The roofline of an evaluation. The device's own numbers are in two times of each workload: what moving
// its bytes takes at least (traffic bound), and what its arithmetic takes at the measured rate (estimate).
// Their ratio is the arithmetic intensity over that of the ridge, and estimate over time the share of the rate.

import { el, svg } from "./dom.js";
import { duration, percent } from "./format.js";
import { logScale } from "./log_scale.js";
import { plotWidth } from "./plot_width.js";
import { table } from "./verdict.js";

const MOST_WIDTH = 560;
const HEIGHT = 260;
const LEFT = 48;
const BOTTOM = HEIGHT - 36;

/** The plot and its numbers, of the workloads for which both times are known. */
export function roofline(workloads) {
  const known = workloads.filter((result) => result.median_ns !== null && result.traffic_bound_ns && result.arithmetic_estimate_ns);
  if (!known.length) return el("p", { class: "soft" }, "No roofline: this verdict lacks the traffic bound or the arithmetic estimate.");
  const points = known.flatMap(pointsOf);
  const width = plotWidth(MOST_WIDTH);
  const x = logScale([...points.map((point) => point.x), 1], LEFT, width - 10, 4);
  const y = logScale([...points.map((point) => point.y), 1], BOTTOM, 12, 1.6);
  const lowest = Math.min(...points.map((point) => point.x), 1) / 4;
  const words = points.map((point) => `${point.name} on ${point.workload}: ${percent(point.y / Math.min(point.x, 1))} of the roof`).join("; ");
  return [
    el("h3", {}, "Roofline"),
    svg("svg", { class: "roofline", role: "img", "aria-label": words, viewBox: `0 0 ${width} ${HEIGHT}` },
      [1, 0.1, 0.01, 0.001].filter((share) => y(share) < BOTTOM).map((share) => [
        svg("line", { class: "grid", x1: LEFT, x2: width - 10, y1: y(share), y2: y(share) }),
        svg("text", { x: LEFT - 6, y: y(share) + 4, "text-anchor": "end" }, `${share * 100} %`)]),
      svg("path", { class: "roof", d: `M${x(lowest)},${Math.min(y(lowest), BOTTOM)}L${x(1)},${y(1)}H${width - 10}` }),
      svg("line", { class: "grid", x1: x(1), x2: x(1), y1: y(1), y2: BOTTOM }),
      svg("text", { x: x(1), y: BOTTOM + 14, "text-anchor": "middle" }, "ridge"),
      svg("text", { x: width - 10, y: HEIGHT - 4, "text-anchor": "end" }, "arithmetic intensity (logarithmic)"),
      points.map((point) => (point.isKernel
        ? svg("circle", { class: "kernel", cx: x(point.x), cy: y(point.y), r: 5 })
        : svg("rect", { class: "baseline", x: x(point.x) - 4, y: y(point.y) - 4, width: 8, height: 8 }))),
      points.map((point) => svg("text", { class: point.isKernel ? "chosen-text" : "", x: x(point.x) + (x(point.x) > width / 2 ? -9 : 9), y: y(point.y) + 4, "text-anchor": x(point.x) > width / 2 ? "end" : "start" }, point.name))),
    el("p", { class: "soft" }, "Height: share of the measured arithmetic rate. The roof is what traffic (left of the ridge) and arithmetic allow; dot: this kernel, squares: baselines."),
    table("Times that the roof is made of", ["Workload", number("Traffic bound"), number("Arithmetic estimate"), number("Kernel"), number("Of the roof")],
      known.map((result) => [result.workload, duration(result.traffic_bound_ns), duration(result.arithmetic_estimate_ns), duration(result.call_ns[1]),
        percent(Math.max(result.traffic_bound_ns, result.arithmetic_estimate_ns) / result.call_ns[1])])),
  ];
}

function pointsOf(result) {
  const point = (name, ns, isKernel) => ({
    name, isKernel, workload: result.workload,
    x: result.arithmetic_estimate_ns / result.traffic_bound_ns, y: result.arithmetic_estimate_ns / ns });
  return [point("this kernel", result.call_ns[1], true), ...Object.entries(result.baselines).map(([name, ns]) => point(name, ns, false))];
}

function number(name) {
  return { name, kind: "number" };
}

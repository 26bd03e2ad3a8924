// The samples of each workload as a strip: time across, in the order in which they were taken.

import { el, svg } from "./dom.js";
import { counted, duration } from "./format.js";
import { logScale } from "./log_scale.js";
import { plotWidth } from "./plot_width.js";

const MOST_WIDTH = 560;
const STRIP = 54;
const LINE = 16;

/** A strip for each timed workload, with the medians of its baselines. */
export function sampleStrips(workloads) {
  return workloads.filter((result) => result.samples_ns.length).map((result) => [el("h3", {}, `Samples: ${result.workload}`), strip(result)]);
}

function strip(result) {
  const samples = result.samples_ns;
  const width = plotWidth(MOST_WIDTH);
  const label = (x, ...rest) => labelAt(x, width, ...rest);
  const baselines = Object.entries(result.baselines).sort((one, other) => one[1] - other[1]);
  const scale = logScale([...samples, ...baselines.map(([, ns]) => ns)], 12, width - 12, 1.08);
  const height = STRIP + LINE * (baselines.length + 1) + 6;
  const y = (at) => 6 + (at / Math.max(samples.length - 1, 1)) * (STRIP - 12);
  const [low, high] = result.ci95_ns.map(scale);
  const words = `${counted(samples.length, "sample")}, median ${duration(result.median_ns)}, from ${duration(Math.min(...samples))} to ${duration(Math.max(...samples))}; `
    + baselines.map(([name, ns]) => `${name} ${duration(ns)}`).join(", ");
  return [
    svg("svg", { class: "strip", role: "img", "aria-label": words, viewBox: `0 0 ${width} ${height}` },
      svg("rect", { class: "band", x: low, y: 0, width: Math.max(high - low, 1), height: STRIP }),
      svg("line", { class: "median", x1: scale(result.median_ns), x2: scale(result.median_ns), y1: 0, y2: STRIP }),
      samples.map((ns, at) => svg("circle", { class: "sample", cx: scale(ns), cy: y(at), r: 2 })),
      label(scale(result.median_ns), STRIP + 13, `median ${duration(result.median_ns)}`, "chosen-text"),
      baselines.map(([name, ns], at) => [
        svg("line", { class: "one", x1: scale(ns), x2: scale(ns), y1: 0, y2: STRIP + LINE * (at + 1) + 3 }),
        label(scale(ns), STRIP + LINE * (at + 2) - 3, `${name} ${duration(ns)}`)])),
    el("p", { class: "soft" }, `${counted(samples.length, "sample")}, first at the top; stopped: ${result.stop_reason.replaceAll("_", " ")}`,
      result.discarded_samples ? `; ${result.discarded_samples} discarded since the device throttled` : "",
      result.warm_median_ns === null ? "" : `; with warm caches ${duration(result.warm_median_ns)}`),
  ];
}

function labelAt(x, width, y, text, kind = "") {
  const anchor = x > width * 0.75 ? "end" : x < width * 0.25 ? "start" : "middle";
  return svg("text", { x, y, "text-anchor": anchor, class: kind }, text);
}

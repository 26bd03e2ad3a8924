// Sweeps as parallel coordinates: an axis for each TUNE name, and one for the time.

import { el, svg, wide } from "./dom.js";
import { counted, duration, words } from "./format.js";
import { logScale } from "./log_scale.js";
import { plotWidth } from "./plot_width.js";
import { table } from "./verdict.js";

const MOST_WIDTH = 620;
const HEIGHT = 260;
const TOP = 26;
const FLOOR = HEIGHT - 26;
const MOST_LISTED = 12;

/** The landscapes of a run, one at a time. */
export async function sweepsPanel(source, head, chosen, onChosen) {
  if (!head.sweeps.length) return el("p", { class: "soft" }, "No landscapes of sweeps are kept of this run on this machine.");
  const name = head.sweeps.includes(chosen) ? chosen : head.sweeps[0];
  const results = await source.sweep(head.run, name);
  const choice = el("select", { "aria-label": "Candidate that was swept", on: { change: () => onChosen(choice.value) } },
    head.sweeps.map((one) => el("option", { value: one, selected: one === name }, one)));
  const timed = results.filter((result) => result.time_ms !== null).sort((one, other) => one.time_ms - other.time_ms);
  return [
    el("div", { class: "filter" }, choice, el("span", { class: "soft" }, `${counted(results.length, "configuration")}, ${timed.length} right and timed`)),
    coordinates(results, timed),
    el("p", { class: "soft" }, "A line for each configuration; thick: the fastest, dashed: those that failed."),
    el("h3", {}, "The fastest"),
    table("The fastest configurations", ["Configuration", { name: "Time", kind: "number" }],
      timed.slice(0, MOST_LISTED).map((result) => [configurationWords(result), duration(1e6 * result.time_ms)])),
  ];
}

function coordinates(results, timed) {
  const names = [...new Set(results.flatMap((result) => Object.keys(result.configuration)))];
  const width = Math.max(90 * (names.length + 1), plotWidth(MOST_WIDTH));
  const axes = names.map((name, at) => axis(name, results, 60 + at * ((width - 130) / names.length)));
  const times = timed.map((result) => result.time_ms);
  const scale = times.length ? logScale(times, FLOOR, TOP, 1.02) : () => FLOOR;
  const x = width - 70;
  const path = (result) => {
    const points = axes.map((one) => [one.x, one.y(result.configuration[one.name])]);
    if (result.time_ms !== null) points.push([x, scale(result.time_ms)]);
    return points.map(([px, py], at) => `${at ? "L" : "M"}${px},${py}`).join("");
  };
  const line = (result, kind) => svg("path", { class: kind, d: path(result) },
    svg("title", {}, `${configurationWords(result)}: ${result.time_ms === null ? words(result.validity) : duration(1e6 * result.time_ms)}`));
  const summary = `${counted(names.length, "parameter")}, ${counted(results.length, "configuration")}${times.length ? `, the fastest takes ${duration(1e6 * times[0])}` : ""}`;
  return wide("Configurations of the sweep", svg("svg", { class: "sweep", role: "img", "aria-label": summary, width, viewBox: `0 0 ${width} ${HEIGHT}` },
    results.filter((result) => result.time_ms === null).map((result) => line(result, "wrong")),
    [...timed].reverse().map((result) => line(result, result === timed[0] ? "fastest" : "right")),
    axes.map(axisMarks),
    svg("line", { class: "axis", x1: x, x2: x, y1: TOP, y2: FLOOR }),
    svg("text", { x, y: 12, "text-anchor": "middle" }, "time"),
    times.length ? [times[0], times.at(-1)].map((ms) => svg("text", { x: x + 6, y: scale(ms) + 4 }, duration(1e6 * ms))) : null));
}

function axis(name, results, x) {
  const values = [...new Set(results.map((result) => result.configuration[name]).filter((value) => value !== undefined))];
  values.sort((one, other) => (typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other))));
  const y = (value) => {
    const at = values.indexOf(value);
    return values.length > 1 ? FLOOR - (Math.max(at, 0) / (values.length - 1)) * (FLOOR - TOP) : (FLOOR + TOP) / 2;
  };
  return { name, values, x, y };
}

function axisMarks({ name, values, x, y }) {
  return svg("g", {},
    svg("line", { class: "axis", x1: x, x2: x, y1: TOP, y2: FLOOR }),
    svg("text", { x, y: 12, "text-anchor": "middle" }, name),
    values.map((value) => svg("text", { x: x - 5, y: y(value) + 4, "text-anchor": "end" }, value)));
}

function configurationWords(result) {
  return Object.entries(result.configuration).map(([name, value]) => `${name}=${value}`).join(" ") || "(no TUNE)";
}

// What an evaluation's kernels do with the device: busy units, waiting, occupancy, hot lines.

import { el, svg } from "./dom.js";
import { duration, percent } from "./format.js";
import { table } from "./verdict.js";

const WIDTH = 560;
const BAR = 18;
const LABEL = 200;
const LONGEST_LABEL = 24;

/** The profile of a verdict, and the digest of it that models read. */
export function profilePane({ verdict, profile: digest, device_code: code }) {
  const { profile } = verdict;
  if (!profile) return el("p", { class: "soft" }, "It has no profile: only what takes at most a tenth longer than the best has one.");
  const total = profile.kernels.reduce((ns, kernel) => ns + kernel.time_ns, 0);
  return [
    el("p", { class: "soft" }, `${profile.workload}, ${duration(profile.call_ns)} a call`,
      profile.tool ? `, by ${profile.tool}` : `; no hardware counters: ${profile.reason || "none were read"}`),
    profile.kernels.map((kernel) => kernelPart(kernel, total)),
    hotLines(profile.lines, code),
    profile.counters.length ? [el("h3", {}, "Counters of a call"), table("Counters of a call", ["Counter", { name: "Count", kind: "number" }],
      profile.counters.map((counter) => [counter.name.replaceAll("_", " "), counter.value.toPrecision(4)]))] : null,
    el("details", {}, el("summary", {}, "As models read it"), el("pre", { tabindex: "0", "aria-label": "Digest" }, digest.join("\n"))),
  ];
}

function kernelPart(kernel, total) {
  const facts = [
    kernel.time_ns ? `${duration(kernel.time_ns)} in ${kernel.launches === 1 ? "one launch" : `${kernel.launches} launches`}` : "",
    kernel.time_ns && total ? `${percent(kernel.time_ns / total)} of the kernels' time` : "",
    kernel.occupancy === null ? "" : `occupancy ${percent(kernel.occupancy)} reached`,
    kernel.possible_occupancy === null ? "" : `${percent(kernel.possible_occupancy)} possible${kernel.occupancy_limit && `, limited by ${kernel.occupancy_limit}`}`,
    kernel.registers ? `${kernel.registers} registers` : "",
    kernel.shared_bytes ? `${kernel.shared_bytes} bytes of shared memory` : "",
    kernel.moved_bytes === null ? "" : `${kernel.moved_bytes.toPrecision(3)} bytes moved in a launch`,
  ].filter(Boolean);
  return [
    el("h3", {}, kernel.kernel, kernel.is_library ? " (library)" : ""),
    el("p", { class: "soft" }, facts.join("; ")),
    bars("How busy each unit is", kernel.units, ""),
    bars("What warps wait for", kernel.stalls, "waiting"),
    bars("Instructions in object code", kernel.instructions, ""),
  ];
}

function bars(title, shares, kind) {
  if (!shares.length) return null;
  const length = (share) => Math.min(Math.max(share, 0), 1) * (WIDTH - LABEL - 50);
  const words = `${title}: ${shares.map((one) => `${one.name} ${percent(one.share)}`).join(", ")}`;
  return [el("p", {}, title), svg("svg", { class: "bars", role: "img", "aria-label": words, viewBox: `0 0 ${WIDTH} ${BAR * shares.length}` },
    shares.map((one, at) => [
      svg("text", { x: LABEL - 8, y: BAR * at + 13, "text-anchor": "end" }, short(one.name)),
      svg("rect", { class: kind, x: LABEL, y: BAR * at + 3, width: length(one.share), height: BAR - 6, rx: 2 }),
      svg("text", { x: LABEL + length(one.share) + 6, y: BAR * at + 13 }, percent(one.share))]))];
}

function short(name) {
  return name.length > LONGEST_LABEL ? `${name.slice(0, LONGEST_LABEL - 1)}…` : name;
}

function hotLines(lines, code) {
  if (!lines.length) return null;
  const source = code.split("\n");
  return [el("h3", {}, "Hottest lines"), table("Hottest lines", ["Line", { name: "Samples", kind: "number" }, "Waiting for", "Source"],
    lines.map((hot) => [hot.file ? `${hot.file}:${hot.line}` : hot.line, percent(hot.share), hot.stall,
      hot.file ? "" : el("code", {}, (source[hot.line - 1] ?? "").trim())]))];
}

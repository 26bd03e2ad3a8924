// How a candidate differs from one of its parents, line by line.

import { el } from "./dom.js";

const CONTEXT = 3;
const MOST_CELLS = 16e6; // of the table of common lines

/** The difference of a candidate's text to a parent's. */
export function diffView(before, after) {
  const parts = [["Device code", before.device_code, after.device_code], ["Launch plan", before.plan, after.plan]];
  return parts.map(([title, old, young]) => {
    const lines = lineDiff(old.split("\n"), young.split("\n"));
    const isSame = lines.every(([mark]) => mark === " ");
    return [el("h3", {}, title), isSame ? el("p", { class: "soft" }, "unchanged")
      : el("pre", { class: "diff", tabindex: "0", "aria-label": `${title}, lines with minus are the parent's` }, hunks(lines))];
  });
}

/** The lines of both, each with " ", "-" or "+"; common ones once. */
export function lineDiff(old, young) {
  let start = 0;
  while (start < old.length && start < young.length && old[start] === young[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < young.length - start && old.at(-1 - end) === young.at(-1 - end)) end += 1;
  const marked = (mark) => (line) => [mark, line];
  return [
    ...old.slice(0, start).map(marked(" ")),
    ...middle(old.slice(start, old.length - end), young.slice(start, young.length - end)),
    ...old.slice(old.length - end).map(marked(" ")),
  ];
}

function middle(old, young) {
  const width = young.length + 1;
  if (old.length * young.length > MOST_CELLS) return [...old.map((line) => ["-", line]), ...young.map((line) => ["+", line])];
  const common = new Uint32Array((old.length + 1) * width); // of the rests behind i and j
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = young.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = old[i] === young[j] ? common[(i + 1) * width + j + 1] + 1
        : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const lines = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < young.length) {
    if (i < old.length && j < young.length && old[i] === young[j]) {
      lines.push([" ", old[i]]);
      i += 1;
      j += 1;
    } else if (j >= young.length || (i < old.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      lines.push(["-", old[i]]);
      i += 1;
    } else {
      lines.push(["+", young[j]]);
      j += 1;
    }
  }
  return lines;
}

function hunks(lines) {
  const near = lines.map((_line, at) => lines.slice(Math.max(at - CONTEXT, 0), at + CONTEXT + 1).some(([mark]) => mark !== " "));
  return lines.map(([mark, line], at) => {
    if (!near[at]) return at === 0 || near[at - 1] ? el("span", { class: "gap" }, "⋯\n") : null;
    return el("span", { class: { "-": "removed", "+": "added" }[mark] }, `${mark} ${line}\n`);
  });
}

// A table that is sorted by a click on a heading.

import { el, refill } from "./dom.js";

/** Columns are { name, of, text, kind }: `of` gives what is sorted by, `text` what is shown. */
export function sortedTable(caption, columns, rows) {
  let [sorted, isFalling] = [null, false];
  const body = el("tbody", {});
  const heads = columns.map((column) => el("th", { scope: "col", class: column.kind, "aria-sort": "none" },
    el("button", { type: "button", class: "sort", on: { click: () => sort(column) } }, column.name)));

  function sort(column) {
    isFalling = sorted === column ? !isFalling : column.kind?.includes("number") ?? false;
    sorted = column;
    draw();
  }

  function draw() {
    const sign = isFalling ? -1 : 1;
    const shown = sorted ? [...rows].sort((one, other) => sign * compared(sorted.of(one), sorted.of(other), sign)) : rows;
    heads.forEach((head, at) => head.setAttribute("aria-sort", columns[at] !== sorted ? "none" : isFalling ? "descending" : "ascending"));
    refill(body, shown.map((row) => el("tr", {}, columns.map((column) => el("td", { class: column.kind }, (column.text ?? column.of)(row))))));
  }

  draw();
  return el("div", { class: "wide" }, el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, el("tr", {}, heads)), body));
}

/** Below 0 where `one` comes first; what is not known comes last in either order. */
export function compared(one, other, sign) {
  if (one === null || other === null) return sign * (Number(one === null) - Number(other === null));
  if (typeof one === "string") return one.localeCompare(other);
  return Number(one) - Number(other);
}

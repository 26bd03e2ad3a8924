// Two runs side by side: their best so far in one picture, and their numbers.

import { bestPath } from "./curve.js";
import { el, link, refill, svg } from "./dom.js";
import { dollars, percent, speedup, words } from "./format.js";
import { RunHistory } from "./history.js";
import { logScale } from "./log_scale.js";
import { plotWidth } from "./plot_width.js";
import { table } from "./verdict.js";

const MOST_WIDTH = 1420;
const HEIGHT = 280;
const LEFT = 50;
const BOTTOM = HEIGHT - 30;

/** Show two runs and follow both; returns what ends that. */
export async function showComparison(root, source, names) {
  document.title = `${names.join(" and ")} · Kernel Foundry`;
  const heads = await Promise.all(names.map((name) => source.run(name)));
  const accounts = await Promise.all(names.map((name) => source.account(name)));
  const histories = names.map(() => new RunHistory());
  const picture = el("section", { "aria-label": "Best so far of both runs" });
  let isWaiting = 0; // rows come in many small parts
  const draw = () => {
    isWaiting = 0;
    refill(picture, el("h2", {}, "Best so far"), curves(names, histories));
  };
  draw();
  refill(root, el("h1", {}, "Compared runs"), picture, el("section", {}, el("h2", {}, "Numbers"), figures(heads, accounts)));
  const stops = names.map((name, at) => source.follow(name, {
    onRows: (rows) => {
      histories[at].add(rows);
      isWaiting ||= requestAnimationFrame(draw);
    },
    onState: () => {},
    onFailure: () => {},
  }));
  return () => stops.forEach((stop) => stop());
}

function curves(names, histories) {
  const width = plotWidth(MOST_WIDTH);
  const count = Math.max(2, ...histories.map((history) => history.rows.length));
  const best = histories.flatMap((history) => history.rows.map((row) => history.at(row.best)?.speedup ?? 1));
  const y = logScale([1, ...best], BOTTOM, 12, 1.1);
  const scale = { x: (row) => LEFT + ((row.sequence - 1) / (count - 1)) * (width - LEFT - 10), y };
  const marks = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100].filter((value) => y(value) <= BOTTOM && y(value) >= 12);
  const label = names.map((name, at) => `${name}: ${speedup(histories[at].best?.speedup ?? null, histories[at].best?.speedup_interval)}`).join("; ");
  return [
    svg("svg", { class: "compared", role: "img", "aria-label": label, viewBox: `0 0 ${width} ${HEIGHT}` },
      marks.map((value) => [
        svg("line", { class: value === 1 ? "one" : "grid", x1: LEFT, x2: width - 10, y1: y(value), y2: y(value) }),
        svg("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, `${value}×`)]),
      svg("text", { x: width - 10, y: HEIGHT - 6, "text-anchor": "end" }, `evaluation, up to ${count}`),
      histories.map((history, at) => svg("path", { class: `run${at}`, d: bestPath(history, scale) }))),
    el("p", { class: "key soft" }, names.map((name, at) => el("span", { class: `mark run${at}` }, name))),
  ];
}

function figures(heads, accounts) {
  const outcomes = [...new Set(heads.flatMap((head) => head.stats.outcomes.map((one) => one.outcome)))];
  const tokens = (spends) => Object.values(spends).reduce((sum, spend) => sum + spend.prompt_tokens + spend.completion_tokens, 0);
  const lines = [
    ["Task", (head) => head.task],
    ["State", (head) => head.state],
    ["Models", (head) => head.models.join(", ")],
    ["Strategy and seed", (head) => `${head.strategy}, ${head.seed}`],
    ["Switched off", (head) => head.without.join(", ") || "nothing"],
    ["Over the fastest baseline", (head) => speedup(head.speedup, head.speedup_interval)],
    ["Over PyTorch eager", (head) => speedup(head.speedup_eager, head.speedup_eager_interval)],
    ["Evaluations", (head) => head.stats.evaluation_count],
    ["Cells with an elite", (head) => `${head.stats.elite_count} (${percent(head.stats.coverage)})`],
    ["QD score", (head) => head.stats.qd_score.toFixed(2)],
    ["Cost", (head) => dollars(head.cost_usd)],
    ["Tokens", (_head, at) => (accounts[at].spend ? tokens(accounts[at].spend) : "not known here")],
    ...outcomes.map((outcome) => [words(outcome), (head) => head.stats.outcomes.find((one) => one.outcome === outcome)?.count ?? 0]),
  ];
  return el("div", { class: "halves" }, table("Numbers of both runs", ["Number", ...heads.map((head) => ({ name: link(`/run/${head.run}`, {}, head.run) }))],
    lines.map(([name, of]) => [name, ...heads.map((head, at) => of(head, at))])));
}

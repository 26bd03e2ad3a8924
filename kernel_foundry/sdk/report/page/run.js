// One run: its numbers, its curve, its evaluations, and the one that is looked at.

import { ArchiveMap } from "./archive_map.js";
import { costPanel } from "./cost.js";
import { Curve } from "./curve.js";
import { Detail } from "./detail.js";
import { el, refill } from "./dom.js";
import { EvaluationTable } from "./evaluations.js";
import { between, counted, date, dollars, isUnclear, percent, times } from "./format.js";
import { RunHistory } from "./history.js";
import { SteeringPanel, steeringWords, injected } from "./steering.js";
import { sweepsPanel } from "./sweeps.js";
import { Tabs } from "./tabs.js";
import { taskPanel } from "./task.js";

const HEAD_MS = 4000;
const STEERING_MS = 3000; // others may steer it, too

/** Show a run and follow it; returns what ends that. */
export async function showRun(root, source, name, route) {
  document.title = `${name} · Kernel Foundry`;
  const view = new RunView(root, source, name, await source.run(name));
  view.go(route);
  return view.begin();
}

class RunView {
  constructor(root, source, name, head) {
    Object.assign(this, { root, source, name, head });
    this.history = new RunHistory();
    this.history.injected = injected(head.steering);
    this.steering = new SteeringPanel(source.isLive && (async (what) => this.#setSteering(await source.steer(name, what))));
    this.top = el("div", {});
    this.status = el("p", { class: "bad", role: "alert" });
    this.curve = new Curve(this.history, (sequence) => this.choose(sequence));
    this.detail = new Detail(this);
    this.table = new EvaluationTable(this.history, (sequence) => this.choose(sequence));
    this.map = new ArchiveMap(this.history, (sequence) => this.choose(sequence, "code"));
    this.map.steer(head.steering);
    this.tabs = new Tabs("Parts of the run", [
      ["evaluations", "Evaluations", () => this.table.element],
      ["map", "Archive map", () => { this.map.draw(); return this.map.element; }],
      ["sweeps", "Sweeps", () => this.#sweeps()],
      ["steering", "Steering", () => this.#steering()],
      ["cost", "Outcomes and cost", async () => costPanel(this.head, this.history, await this.source.account(this.name))],
      ["task", "Task", () => taskPanel(this.head)],
    ]);
    refill(root, this.top, this.status,
      el("section", { "aria-label": "Speed-up over evaluations" }, this.curve.element),
      el("div", { class: "columns" }, this.detail.element, el("section", {}, this.tabs.element)));
    this.tabs.choose("evaluations");
    this.#drawTop();
  }

  /** Follow the run; returns what ends that. */
  begin() {
    const onRoute = (event) => this.go(event.detail);
    const onKey = (event) => this.#key(event);
    const onResize = () => this.curve.draw();
    this.root.addEventListener("route", onRoute);
    addEventListener("keydown", onKey);
    addEventListener("resize", onResize);
    const stop = this.source.follow(this.name, {
      onRows: (rows) => this.#take(rows),
      onState: (state) => this.#setState(state),
      onFailure: (text) => refill(this.status, text),
    });
    const steering = this.source.isLive && setInterval(() => this.#readSteering(), STEERING_MS);
    return () => {
      stop();
      clearInterval(steering);
      this.root.removeEventListener("route", onRoute);
      removeEventListener("keydown", onKey);
      removeEventListener("resize", onResize);
    };
  }

  /** Show what the address names: [NUMBER, PANE]; without a number the best. */
  go([sequence, pane]) {
    this.asked = Number(sequence) || null;
    if (pane) this.pane = pane;
    this.#drawChosen();
  }

  choose(sequence, pane = this.pane) {
    location.hash = `/run/${this.name}/${sequence}${pane ? `/${pane}` : ""}`;
    // In one column what was chosen stands above what it was chosen in.
    if (matchMedia("(max-width: 1099px)").matches) this.detail.element.scrollIntoView();
  }

  /** The evaluation that is looked at: the one asked for, else the best. */
  get chosen() {
    if (this.asked) return this.history.at(this.asked);
    return this.history.newest(this.head.winner) ?? this.history.best ?? this.history.rows.at(-1);
  }

  #sweeps() {
    return sweepsPanel(this.source, this.head, this.sweep, (name) => {
      this.sweep = name;
      this.tabs.draw();
    });
  }

  #steering() {
    this.steering.draw(this.head.steering, this.head.state === "running");
    return this.steering.element;
  }

  async #readSteering() {
    // What fails here is told by the stream of events.
    const steering = await this.source.steering(this.name).catch(() => this.head.steering);
    if (steering.events.length !== this.head.steering.events.length) this.#setSteering(steering);
  }

  #setSteering(steering) {
    this.head.steering = steering;
    this.history.injected = injected(steering);
    this.map.steer(steering);
    if (this.tabs.chosen === "map") this.map.draw();
    this.#steering();
    this.#drawTop();
    this.table.draw();
  }

  #take(rows) {
    this.history.add(rows);
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.curve.draw();
      this.table.draw();
      if (this.tabs.chosen === "map") this.map.draw();
      this.#drawChosen();
      this.#freshen();
    });
  }

  #setState(state) {
    if (this.head.state !== state || this.head.evaluations !== this.history.rows.length) this.#readHead();
  }

  #freshen() {
    if (this.history.rows.length === this.head.evaluations || this.timer) return;
    this.timer = setTimeout(() => this.#readHead(), HEAD_MS);
  }

  async #readHead() {
    clearTimeout(this.timer);
    this.timer = null;
    this.head = await this.source.run(this.name);
    this.#drawTop();
    this.#drawChosen();
    this.history.injected = injected(this.head.steering);
    this.map.steer(this.head.steering);
    if (this.tabs.chosen === "steering") this.#steering();
    else if (this.tabs.chosen !== "evaluations") this.tabs.draw();
  }

  #drawChosen() {
    const row = this.chosen;
    this.curve.mark(row ? this.history.line(row).map((one) => one.sequence) : []);
    this.table.mark(row?.sequence);
    this.detail.show(row, this.pane);
  }

  #drawTop() {
    const { head } = this;
    const { stats } = head;
    const isFaster = head.speedup_interval && head.speedup_interval[0] > 1;
    const again = stats.evaluation_count - stats.candidate_count;
    refill(this.top,
      el("h1", {}, head.run, " ", el("span", { class: `state ${head.state}` }, head.state)),
      el("p", { class: "soft" }, [
        head.task, `${head.language} on ${head.device}`, head.models.join(", "),
        `strategy ${head.strategy}, seed ${head.seed}`, date(head.created_unix_s),
      ].join(" · ")),
      steeringWords(head.steering) && el("p", { class: "steered", tabindex: "0" }, "Steered: ", steeringWords(head.steering)),
      head.left_out.map((limit) => el("p", { class: "soft" }, `${limit.model} cannot do ${limit.missing}: the run goes on without it`)),
      el("div", { class: "tiles" },
        gainTile(head.speedup, head.speedup_interval, "over the fastest baseline", isFaster ? "good" : ""),
        gainTile(head.speedup_eager, head.speedup_eager_interval, "over PyTorch eager"),
        tile(stats.evaluation_count, again ? `evaluations: ${counted(stats.candidate_count, "candidate")}, ${again} measured again` : stats.evaluation_count === 1 ? "evaluation" : "evaluations"),
        tile(`${stats.elite_count} / 64`, `cells with an elite, ${percent(stats.coverage)}`),
        tile(dollars(head.cost_usd), "spent on models")));
  }

  #key(event) {
    const step = { j: 1, k: -1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    const next = (this.chosen?.sequence ?? 0) + step;
    if (this.history.at(next)) this.choose(next);
  }
}

function tile(value, text, kind = "") {
  return el("div", { class: "tile" }, el("b", { class: kind }, value), el("span", { class: "soft" }, text));
}

/** A speed-up; where its interval contains 1, that there is no clear gain comes first. */
function gainTile(value, bounds, over, kind = "") {
  const unclear = isUnclear(bounds);
  return tile(unclear ? "no clear gain" : times(value), [unclear ? `${times(value)} ` : "", `${over} `, interval(bounds)], kind);
}

function interval(bounds) {
  return bounds ? el("span", { class: "whole" }, between(bounds)) : null;
}

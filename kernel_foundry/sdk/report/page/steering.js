// What people ask of a run while it goes on: what is in force, what was asked when, and controls.

import { el, refill } from "./dom.js";
import { date } from "./format.js";
import { table } from "./verdict.js";

const LONGEST_HINT = 2000;
const LONGEST_TRICK = 500;
const LONGEST_QUOTED = 40;
const LEVELS = [0, 1, 2, 3];

export class SteeringPanel {
  /** `steer` is told what is asked, and gives a promise; without it there are no controls. */
  constructor(steer) {
    this.steer = steer;
    this.state = el("p", { class: "steered", role: "status" });
    this.answer = el("p", { class: "bad", role: "alert" });
    this.events = el("div", {});
    this.element = el("div", {}, this.state, steer ? this.#controls() : null, this.events);
  }

  /** Show what is in force and what was asked; what is being written stays. */
  draw(steering, isRunning) {
    refill(this.state, stateWords(steering, isRunning));
    if (this.steer) {
      this.pause.disabled = steering.paused || steering.stopped;
      this.resume.disabled = !steering.paused && !steering.stopped;
      this.stop.disabled = steering.stopped;
      refill(this.tricks, steering.tricks.map((text) => this.#button(`Release ${quoted(text)}`, () => ({ action: "release", text }))));
    }
    const rows = [...steering.events].reverse().map((event) => [
      date(event.steered_unix_s), `#${event.evaluations}`, eventWords(event)]);
    refill(this.events, el("h3", {}, "What was asked, newest first"),
      rows.length ? table("Steering events", [{ name: "When", kind: "whole" }, "After", "What"], rows) : el("p", { class: "soft" }, "Nothing yet."));
  }

  #controls() {
    this.pause = this.#button("Pause", () => ({ action: "pause" }));
    this.resume = this.#button("Resume", () => ({ action: "resume" }));
    this.stop = this.#button("Stop", () => ({ action: "stop" }));
    this.tricks = el("span", { class: "filter" });
    const hint = el("textarea", { id: "hint", rows: 3, maxlength: LONGEST_HINT, placeholder: "Shown to models in the next prompts" });
    const candidate = el("textarea", { id: "candidate", rows: 5, placeholder: "Markdown with two fenced blocks: device code and plan" });
    const cell = ["memory", "algorithm", "synchronization"].map((name) => el("select", { "aria-label": `Level of ${name}` },
      LEVELS.map((level) => el("option", { value: level }, `${name} ${level}`))));
    const chosen = () => cell.map((select) => select.value).join();
    const trick = el("input", { id: "trick", type: "text", maxlength: LONGEST_TRICK, placeholder: "Words of code or of lessons, such as atomicAdd, or lesson 12" });
    const taking = (field, name) => () => ({ action: field === hint ? "hint" : "inject", [name]: field.value });
    return el("div", { class: "steer" },
      el("div", { class: "filter" }, this.pause, this.resume, this.stop),
      el("label", { for: "hint" }, "Hint"), hint,
      el("div", { class: "filter" }, this.#button("Give hint", taking(hint, "text"), () => { hint.value = ""; }),
        this.#button("Take hint back", () => ({ action: "hint" }))),
      el("span", { class: "soft" }, "Cell of the archive map"),
      el("div", { class: "filter" }, cell,
        this.#button("Pin", () => ({ action: "pin", cell: chosen() })),
        this.#button("Ban", () => ({ action: "ban", cell: chosen() })),
        this.#button("Release", () => ({ action: "release", cell: chosen() })),
        this.#button("Release all", () => ({ action: "release" }))),
      el("label", { for: "trick" }, "Trick that no proposal may use"), trick,
      el("div", { class: "filter" },
        this.#button("Ban trick", () => ({ action: "ban", text: trick.value }), () => { trick.value = ""; }), this.tricks),
      el("label", { for: "candidate" }, "Candidate to judge"), candidate,
      el("div", { class: "filter" }, this.#button("Inject", taking(candidate, "candidate"), () => { candidate.value = ""; })),
      this.answer);
  }

  #button(text, what, onDone = () => {}) {
    const click = async () => {
      try {
        await this.steer(what());
        onDone();
        refill(this.answer);
      } catch (error) {
        refill(this.answer, error.message);
      }
    };
    return el("button", { type: "button", on: { click } }, text);
  }
}

/** A trick within other words; what was asked lists the whole of it. */
function quoted(trick) {
  return trick.length > LONGEST_QUOTED ? `“${trick.slice(0, LONGEST_QUOTED)}…”` : `“${trick}”`;
}

/** What is in force in one line; "" when nothing is. */
export function steeringWords(steering) {
  const banned = [...steering.banned.map((cell) => `cell ${cell}`), ...steering.tricks.map(quoted)];
  return [
    steering.stopped ? "stopped" : steering.paused ? "paused" : "",
    steering.pinned && `cell ${steering.pinned} pinned`,
    banned.length ? `banned: ${banned.join(", ")}` : "",
    steering.hint && `hint: ${steering.hint}`,
  ].filter(Boolean).join(" · ");
}

/** Digests of the candidates that people gave. */
export function injected(steering) {
  return new Set(steering.events.map((event) => event.candidate).filter(Boolean));
}

function stateWords(steering, isRunning) {
  const words = steeringWords(steering) || "Nothing is steered";
  return isRunning ? words : [words, el("span", { class: "soft" }, " · No loop works on the run now: what is asked is in force once it goes on.")];
}

function eventWords({ action, text, cell, candidate }) {
  if (action === "hint") return text ? `hint: ${text}` : "no hint any more";
  if (candidate) return ["inject candidate ", el("code", { title: candidate }, candidate.slice(0, 12))];
  if (text) return `${action} trick: ${text}`;
  return cell ? `${action} cell ${cell}` : action === "release" ? "release all cells and tricks" : action;
}

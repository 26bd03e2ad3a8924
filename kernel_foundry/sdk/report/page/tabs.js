// Tabs: one panel at a time, chosen by click or arrow keys.

import { el, refill } from "./dom.js";

const LATE_MS = 150; // after which the panel of another tab is not left to stand for this one

export class Tabs {
  /** `tabs` are [id, title, draw]; `draw` gives the panel's content, or a promise of it. */
  constructor(label, tabs, onChosen = () => {}) {
    this.tabs = tabs;
    this.onChosen = onChosen;
    this.buttons = tabs.map(([id, title]) =>
      el("button", { type: "button", role: "tab", on: { click: () => this.choose(id) } }, title));
    this.panel = el("div", { role: "tabpanel", class: "panel", tabindex: "-1" });
    const list = el("div", { role: "tablist", class: "tabs", "aria-label": label, on: { keydown: (event) => this.#step(event) } }, this.buttons);
    this.element = el("div", {}, list, this.panel);
  }

  async choose(id) {
    const at = Math.max(this.tabs.findIndex((tab) => tab[0] === id), 0);
    this.chosen = this.tabs[at][0];
    this.buttons.forEach((button, index) => {
      button.setAttribute("aria-selected", String(index === at));
      button.setAttribute("tabindex", index === at ? "0" : "-1");
    });
    this.panel.setAttribute("aria-label", this.tabs[at][1]);
    this.onChosen(this.chosen);
    const late = setTimeout(() => refill(this.panel, el("p", { class: "soft", role: "status" }, "Loading …")), LATE_MS);
    await this.draw(late);
  }

  /** Draw the chosen panel again; what was asked for another one meanwhile is not shown. */
  async draw(late) {
    const asked = this.chosen;
    const drawing = (this.drawing = Symbol(asked));
    clearTimeout(this.late);
    this.late = late;
    let content;
    try {
      content = await this.tabs.find((tab) => tab[0] === asked)[2]();
    } catch (error) {
      content = el("p", { class: "soft", role: "status" }, error.message);
    }
    if (this.drawing !== drawing) return;
    clearTimeout(late);
    refill(this.panel, content);
  }

  #step(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const at = this.tabs.findIndex((tab) => tab[0] === this.chosen);
    const next = (at + step + this.tabs.length) % this.tabs.length;
    this.choose(this.tabs[next][0]);
    this.buttons[next].focus();
    event.preventDefault();
    event.stopPropagation();
  }
}

// The page: which view the address names, and what is around it.

import { showComparison } from "./compare.js";
import { el, link, refill } from "./dom.js";
import { showRun } from "./run.js";
import { showRuns } from "./runs.js";
import { openSource } from "./source.js";
import { showSuite, showSuites } from "./suites.js";

const main = el("main", { id: "main", tabindex: "-1" });
let leave = () => {};

/** Show what the address names: "#/", "#/run/NAME/NUMBER/PANE", "#/compare/NAME/NAME", "#/suites", "#/suite/NAME". */
async function showRoute(source) {
  const route = location.hash.slice(1).split("/").slice(1).map(decodeURIComponent);
  const [view, ...rest] = source.isLive ? route : [...source.place, ...route.slice(2)];
  if (view === "run" && main.dataset.run === rest[0]) {
    main.dispatchEvent(new CustomEvent("route", { detail: rest.slice(1) }));
    return;
  }
  leave();
  leave = () => {};
  delete main.dataset.run;
  refill(main, el("p", { class: "soft" }, "reading …"));
  try {
    if (view === "run") {
      main.dataset.run = rest[0];
      leave = await showRun(main, source, rest[0], rest.slice(1));
    } else if (view === "compare") {
      leave = await showComparison(main, source, rest.slice(0, 2));
    } else if (view === "suites") {
      await showSuites(main, source);
    } else if (view === "suite") {
      await showSuite(main, source, rest[0]);
    } else {
      leave = await showRuns(main, source);
    }
  } catch (error) {
    refill(main, el("p", { class: "bad", role: "alert" }, error.message));
  }
}

async function begin() {
  const source = await openSource();
  const home = source.isLive ? link("/", { class: "home" }, "Kernel Foundry") : el("span", { class: "home" }, "Kernel Foundry");
  document.body.replaceChildren(el("header", {}, home, source.isLive ? [link("/", {}, "Runs"), link("/suites", {}, "Suites")] : null), main);
  addEventListener("hashchange", () => showRoute(source));
  await showRoute(source);
}

begin();

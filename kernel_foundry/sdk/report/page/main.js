// The page: which view the address names, and what is around it.

import { showComparison } from "./compare.js";
import { el, link, refill } from "./dom.js";
import { showRun } from "./run.js";
import { showRuns } from "./runs.js";
import { openSource } from "./source.js";
import { showSuite, showSuites } from "./suites.js";

let main = el("main");
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
  // Each view has an element of its own: one that is still reading when the address changes draws where nobody looks.
  const own = el("main", { id: "main", tabindex: "-1" }, el("p", { class: "soft" }, "reading …"));
  main.replaceWith(own);
  main = own;
  if (view === "run") own.dataset.run = rest[0];
  try {
    const end = await show(own, source, view, rest);
    if (main === own) leave = end;
    else end();
  } catch (error) {
    refill(own, el("p", { class: "bad", role: "alert" }, error.message));
  }
}

/** Show a view; returns what ends it. */
async function show(root, source, view, rest) {
  if (view === "run") return showRun(root, source, rest[0], rest.slice(1));
  if (view === "compare") return showComparison(root, source, rest.slice(0, 2));
  if (view === "suites") return showSuites(root, source);
  if (view === "suite") return showSuite(root, source, rest[0]);
  return showRuns(root, source);
}

async function begin() {
  const source = await openSource();
  const home = source.isLive ? link("/", { class: "home" }, "Kernel Foundry") : el("span", { class: "home" }, "Kernel Foundry");
  document.body.replaceChildren(el("header", {}, home, source.isLive ? [link("/", {}, "Runs"), link("/suites", {}, "Suites")] : null), main);
  addEventListener("hashchange", () => showRoute(source));
  await showRoute(source);
}

begin();

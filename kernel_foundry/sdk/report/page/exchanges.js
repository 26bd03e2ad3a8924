// What a model was asked for an evaluation, and what it replied.

import { el } from "./dom.js";
import { dollars, words } from "./format.js";

/** The prompts and replies that an evaluation's candidate came from. */
export async function promptPane(source, run, selection) {
  if (selection === undefined) return el("p", { class: "soft" }, "No model was asked for it: it was given, or tried by a sweep.");
  const exchanges = await source.exchanges(run, selection);
  if (!exchanges.length) return el("p", { class: "soft" }, "No exchange is kept of it here: the built-in recipes need none, and others lie with their generator.");
  return exchanges.map((exchange) => [
    el("h3", {}, exchange.attempt ? "Asked again: " : "", `${exchange.model}, ${words(exchange.finish)}`),
    el("p", { class: "soft" }, `${exchange.prompt_tokens} tokens in, ${exchange.completion_tokens} out, ${dollars(exchange.usd)}`),
    exchange.messages.map((message, at) => el("details", { open: at === exchange.messages.length - 1 },
      el("summary", {}, `${message.role}, ${message.content.length} characters`), el("pre", { tabindex: "0" }, message.content))),
    el("h3", {}, "Reply"), el("pre", { tabindex: "0", "aria-label": "Reply" }, exchange.reply),
  ]);
}

const TOLD = ["Direction", "Lessons from earlier kernels", "What the user asks"];

/** The parts [title, text] of a selection's first prompt that say why: direction, lessons, hint. */
export async function promptSections(source, run, selection) {
  const [first] = await source.exchanges(run, selection);
  return first ? sectionsOf(first.messages.at(-1).content).filter(([title]) => TOLD.includes(title)) : [];
}

/** The parts [title, text] of a Markdown text; a heading inside a fence is none. */
export function sectionsOf(text) {
  const sections = [];
  let fence = "";
  for (const line of text.split("\n")) {
    const [mark] = line.match(/^`{3,}/) ?? [""];
    if (fence ? mark.length >= fence.length && line.trim() === mark : mark) fence = fence ? "" : mark;
    if (!fence && line.startsWith("# ")) sections.push([line.slice(2), []]);
    else sections.at(-1)?.[1].push(line);
  }
  return sections.map(([title, lines]) => [title, lines.join("\n").trim()]);
}

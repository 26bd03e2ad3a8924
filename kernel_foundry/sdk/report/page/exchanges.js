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

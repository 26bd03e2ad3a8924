"""`kfoundry runs exchanges`: the prompts of a run, and the replies of models."""

from collections.abc import Iterator
from typing import Any, Literal

import click
from rich.table import Table

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.options import json_option, open_foundry, target_options
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.domain.exchange import Exchange
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.sdk.client import Foundry

_RULE = "─" * 80


@click.command("exchanges")
@click.argument("run", default="")
@click.option(
    "--selection",
    type=click.IntRange(min=0),
    help="Show the full prompts and replies of this selection's proposal.",
)
@json_option
@target_options
def exchanges_command(run: str, selection: int | None, as_json: bool, **targets: Any) -> int:
    """List a run's exchanges with models; with --selection show prompts and replies.

    Prompts and replies are stored exactly. The selection of an exchange is the number of the
    archive's selection that it was made for; `runs watch --json` shows it, too.

    \b
    kfoundry runs exchanges                          of the newest run
    kfoundry runs exchanges softmax-1 --selection 12
    """  # noqa: D301  a backspace keeps click from joining the lines
    with open_foundry(**targets) as foundry:
        name = foundry.ask_archive(lambda a: a.get_run(run)).spec.name
        found = [e for e in _exchanges(foundry, name) if selection in (None, e.selection)]
    if as_json:
        whole = selection is not None
        print_json([to_plain(e) if whole else _row_object(e) for e in found])
    elif selection is not None:
        for exchange in found:
            _show(exchange)
    else:
        PrintableConsole().print(
            _table(found) if found else f"this generator has no exchanges of {name}"
        )
    return 0


def _exchanges(foundry: Foundry, run: str) -> Iterator[Exchange]:
    after = 0
    while page := foundry.ask_generator(lambda g, n=after: g.exchanges(run, after=n)):  # type: ignore[misc]
        yield from page
        after = page[-1].sequence


def _row_object(exchange: Exchange) -> dict[str, Any]:
    return {
        "sequence": exchange.sequence,
        "purpose": exchange.purpose.value,
        "selection": exchange.selection,
        "attempt": exchange.attempt,
        "asked": exchange.asked,
        "model": exchange.usage.model,
        "prompt_tokens": exchange.usage.input_tokens,
        "completion_tokens": exchange.usage.output_tokens,
        "usd": exchange.usage.cost_usd,
        "latency_ms": exchange.usage.latency_ms,
        "finish": exchange.finish.value,
        "recorded_unix_s": exchange.recorded_unix_s,
    }


def _table(exchanges: list[Exchange]) -> Table:
    table = Table()
    for heading in ("#", "selection", "purpose", "model", "tokens in", "out", "USD", "finish"):
        is_number = heading in ("#", "selection", "tokens in", "out", "USD")
        justify: Literal["left", "right"] = "right" if is_number else "left"
        table.add_column(heading, justify=justify, no_wrap=heading == "model")
    for exchange in exchanges:
        again = " again" if exchange.attempt else ""
        table.add_row(
            str(exchange.sequence),
            "" if exchange.selection is None else str(exchange.selection),
            exchange.purpose.value.replace("_", " ") + again,
            exchange.usage.model,
            str(exchange.usage.input_tokens),
            str(exchange.usage.output_tokens),
            f"{exchange.usage.cost_usd:.4f}",
            exchange.finish.value,
        )
    return table


def _show(exchange: Exchange) -> None:
    """Print an exchange word for word: nothing in it is markup."""
    texts = [(f"{m.role} to {exchange.asked}", m.content) for m in exchange.messages]
    texts.append((f"reply of {exchange.usage.model}, {exchange.finish.value}", exchange.reply))
    for heading, text in texts:
        print_text(f"{_RULE}\n{exchange.sequence} {heading}\n{_RULE}\n{text}")

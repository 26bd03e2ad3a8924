"""The data of a run that its report holds."""

import json
from collections.abc import Iterable
from typing import Any, Final

from kernel_foundry.domain.best import Leader
from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.ports import Archive, Generator
from kernel_foundry.sdk.archive_pages import all_evaluations
from kernel_foundry.sdk.loop.promotion import winner
from kernel_foundry.sdk.report.exchange_index import ExchangeIndex
from kernel_foundry.sdk.report.page_objects import (
    account_answer_object,
    detail_object,
    exchange_object,
    head_object,
    row_object,
    sweep_object,
)
from kernel_foundry.sdk.run_account import AccountAnswer
from kernel_foundry.sdk.steering import steering_events
from kernel_foundry.sdk.sweep_files import sweep_paths

MOST_DETAILS: Final = 2000
"""Evaluations whose source and verdict a report holds: the elites, their ancestors, the newest."""


async def run_data(archive: Archive, run: str, answer: AccountAnswer) -> dict[str, Any]:
    """Return a run's head, all rows, details and landscapes; "exchanges" are to be filled."""
    found = await archive.get_run(run)
    leader = Leader()
    rows = [row_object(one, leader.add(one)) async for one in all_evaluations(archive, run)]
    wanted = _wanted(rows, [elite.candidate.digest for elite in await archive.elites(run)])
    details = {
        one.sequence: detail_object(one, found.spec.task.name)
        async for one in all_evaluations(archive, run)
        if one.sequence in wanted
    }
    sweeps = {path.stem: path for path in sweep_paths(found.spec.name)}
    head = head_object(
        found,
        await archive.stats(run),
        await winner(archive, run),
        sweeps=tuple(sweeps),
        steering=await steering_events(archive, run),
    )
    return {
        "run": head,
        "account": account_answer_object(answer),
        "rows": rows,
        "evaluations": details,
        "exchanges": {},
        "sweeps": {
            name: sweep_object(json.loads(path.read_text(encoding="utf-8")))
            for name, path in sweeps.items()
        },
    }


async def winners_exchanges(generator: Generator, data: dict[str, Any]) -> dict[int, Any]:
    """Return the exchanges that the winner and its ancestors came from, by selection."""
    rows, winner_digest = data["rows"], data["run"]["winner"]
    line = _ancestors(rows, [winner_digest] if winner_digest else [])
    selections = {
        row["selection"]
        for row in rows
        if row["candidate"] in line and row["selection"] is not None
    }
    index = ExchangeIndex(data["run"]["run"])
    try:
        return {
            selection: [exchange_object(e) for e in await index.of_selection(generator, selection)]
            for selection in sorted(selections)
        }
    except KernelFoundryError:  # damaged, or of a generator that is not there: the rest is shown
        return {}


def _wanted(rows: list[dict[str, Any]], elites: Iterable[str]) -> set[int]:
    digests = _ancestors(rows, elites)
    wanted = {row["sequence"] for row in rows if row["candidate"] in digests}
    newest = (row["sequence"] for row in reversed(rows))
    for sequence in newest:
        if len(wanted) >= MOST_DETAILS:
            break
        wanted.add(sequence)
    return wanted


def _ancestors(rows: list[dict[str, Any]], candidates: Iterable[str]) -> set[str]:
    parents = {row["candidate"]: row["parents"] for row in rows}
    found: set[str] = set()
    waiting = list(candidates)
    while waiting:
        candidate = waiting.pop()
        if candidate not in found:
            found.add(candidate)
            waiting += parents.get(candidate, [])
    return found

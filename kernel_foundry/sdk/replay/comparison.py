"""Compares a run and its repetition: evaluations, export files and everything in reports.

The first difference ends a comparison as a `DifferenceError`.
"""

import gzip
import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from kernel_foundry.domain.account import ModelSpend
from kernel_foundry.domain.exchange import Exchange
from kernel_foundry.ports import Archive

_REPORT: Final = "report"
_PAGE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first difference between a run and its repetition."""

    where: str
    """Such as "evaluation 17 (selection 21)"."""
    what: str
    """Such as "parents"."""
    recorded: str
    replayed: str


class DifferenceError(Exception):
    """The repetition differs from the recorded run.

    Args:
        where: As of `Difference`, as all others.
        what: Likewise.
        recorded: Shown as text.
        replayed: Shown as text.
    """

    def __init__(self, where: str, what: str, *, recorded: object, replayed: object) -> None:
        super().__init__(f"{where}: {what}")
        self.difference = Difference(
            where=where, what=what, recorded=str(recorded), replayed=str(replayed)
        )


def check_equal(where: str, what: str, *, recorded: object, replayed: object) -> None:
    """Raise a `DifferenceError` unless both are equal."""
    if recorded != replayed:
        raise DifferenceError(where, what, recorded=recorded, replayed=replayed)


def check_members(where: str, names: Iterable[str], recorded: object, replayed: object) -> None:
    """Raise a `DifferenceError` for the first of `names` that differs between two objects."""
    for name in names:
        check_equal(where, name, recorded=getattr(recorded, name), replayed=getattr(replayed, name))


def check_exports(recorded: Path, replayed: Path) -> str:
    """Return the SHA-256 digest of both files.

    Raises:
        DifferenceError: they are not equal, byte for byte.
    """
    digest = hashlib.sha256(recorded.read_bytes()).hexdigest()
    if hashlib.sha256(replayed.read_bytes()).hexdigest() == digest:
        return digest
    with gzip.open(recorded) as first, gzip.open(replayed) as second:
        for number, (one, other) in enumerate(zip_longest(first, second, fillvalue=b"{}"), 1):
            if one != other:
                _check_lines(f"export file, line {number}", json.loads(one), json.loads(other))
    raise DifferenceError("export file", "compression", recorded=recorded, replayed=replayed)


def _check_lines(where: str, recorded: dict[str, Any], replayed: dict[str, Any]) -> None:
    for name in recorded | replayed:
        check_equal(where, name, recorded=recorded.get(name), replayed=replayed.get(name))
    check_equal(where, "order", recorded=list(recorded), replayed=list(replayed))


async def check_report_data(recorded: Archive, replayed: Archive, run: str) -> int:
    """Compare all that a report of the run is made of; return how many elites it has.

    Raises:
        DifferenceError: something is not equal.
    """
    # What the run may use is for who goes on with it, and no report shows it.
    runs = [replace(await archive.get_run(run), budget=None) for archive in (recorded, replayed)]
    check_equal(_REPORT, "run", recorded=runs[0], replayed=runs[1])
    for what in ("stats", "gradient"):
        answers = [await getattr(archive, what)(run) for archive in (recorded, replayed)]
        check_equal(_REPORT, what, recorded=answers[0], replayed=answers[1])
    elites = await recorded.elites(run)
    check_equal(_REPORT, "elites", recorded=elites, replayed=await replayed.elites(run))
    after = 0
    while page := await recorded.transitions(run, after=after, limit=_PAGE):
        again = await replayed.transitions(run, after=after, limit=_PAGE)
        check_equal(_REPORT, "transitions", recorded=page, replayed=again)
        after = page[-1].sequence
    return len(elites)


def check_spend(spend: Iterable[ModelSpend], exchanges: Iterable[Exchange]) -> None:
    """Compare the ledger with what the recorded exchanges add up to.

    Raises:
        DifferenceError: tokens or USD of a model are not equal.
    """
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0, 0.0])
    for exchange in exchanges:
        usage = exchange.usage
        for position, amount in enumerate(
            (usage.input_tokens, usage.output_tokens, usage.cost_usd)
        ):
            sums[usage.model][position] += amount
    ledger = {s.model: [s.prompt_tokens, s.completion_tokens, s.usd] for s in spend}
    for model in ledger | sums:
        booked, added = ledger.get(model, [0, 0, 0.0]), sums[model]
        where = f"spend on {model}"
        check_equal(where, "prompt_tokens", recorded=booked[0], replayed=added[0])
        check_equal(where, "completion_tokens", recorded=booked[1], replayed=added[1])
        if not math.isclose(booked[2], added[2], rel_tol=1e-9, abs_tol=1e-12):
            raise DifferenceError(where, "usd", recorded=booked[2], replayed=added[2])

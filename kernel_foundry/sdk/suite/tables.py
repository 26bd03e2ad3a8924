"""A suite's results as plain rows, for JSON, CSV and tables: one for each run."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from kernel_foundry.domain.plain import to_plain
from kernel_foundry.sdk.suite.entry import EntryState
from kernel_foundry.sdk.suite.numbers.fast_p import hits
from kernel_foundry.sdk.suite.results import FASTEST, EntryResult
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.sdk.suite.summary import summary_of


def row_of(result: EntryResult) -> dict[str, Any]:
    """Return one run as named values; None where there is none."""
    entry, verdict = result.entry, result.verdict
    progress = entry.progress
    row: dict[str, Any] = {
        "task": entry.task.name,
        "repeat": entry.repeat,
        "seed": entry.seed,
        "run": entry.run,
        "state": entry.state.value,
        "device": progress.device,
        "correct": verdict is not None,
        "degenerate": result.is_degenerate,
        "trust": verdict.trust.value if verdict else None,
    }
    for baseline in (FASTEST, *result.baselines):
        found = result.speedup(baseline)
        row[f"speedup_{baseline}"] = found and found.value
        row[f"speedup_{baseline}_low"] = found and found.low
        row[f"speedup_{baseline}_high"] = found and found.high
    return {
        **row,
        "win_1": hits(result.speedups(FASTEST), 1.0),
        "sol_score": result.sol_score,
        "effective_bits": result.effective_bits,
        "own_share": result.own_share,
        "evaluations": progress.evaluations,
        "cost_usd": progress.cost_usd,
        "tokens": progress.tokens,
        "seconds": progress.seconds,
        "reason": progress.reason,
    }


def csv_text(results: Sequence[EntryResult]) -> str:
    """Return all runs as CSV, with a line of headings."""
    rows = [row_of(result) for result in results]
    headings = dict.fromkeys(name for row in rows for name in row)
    text = io.StringIO()
    writer = csv.DictWriter(text, headings, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue()


def suite_object(suite: Suite, results: Sequence[EntryResult]) -> dict[str, Any]:
    """Return the `--json` object of a suite (docs/suites.md)."""
    plan = suite.plan
    return {
        "suite": plan.name,
        "has_ended": suite.has_ended,
        "language": plan.language.value,
        "devices": list(plan.devices),
        "models": list(plan.models),
        "strategy": plan.strategy,
        "repeats": plan.repeats,
        "used_seconds": suite.used_seconds,
        "summary": to_plain(summary_of(results)),
        "runs": [to_plain(row_of(result)) for result in results],
    }


def listed_suite_object(suite: Suite) -> dict[str, Any]:
    """Return the `--json` object of a suite in the list of all."""
    return {
        "suite": suite.plan.name,
        "runs": {state.value: suite.count(state) for state in EntryState},
        "cost_usd": suite.cost_usd,
        "used_seconds": suite.used_seconds,
        "created_unix_s": suite.created_unix_s,
    }


def _cell(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula begins with an apostrophe."""
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula else value

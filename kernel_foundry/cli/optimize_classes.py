"""`kfoundry optimize --device h200,rtx4090,sycl`: a run on each class, and the cross table."""

from collections.abc import Mapping
from typing import Any, Final

from rich.text import Text

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.live import PlainProgress
from kernel_foundry.cli.main import EXIT_NOTHING_CORRECT, exit_code
from kernel_foundry.cli.name import as_called
from kernel_foundry.cli.options import open_foundry
from kernel_foundry.cli.output import print_json
from kernel_foundry.cli.runs import best_object
from kernel_foundry.cli.summary import CAUSES
from kernel_foundry.cli.table import plain_table
from kernel_foundry.domain.task import Task
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.device_classes.cross_table import CrossVerdict
from kernel_foundry.sdk.device_classes.optimization import ClassesResult, ClassRun
from kernel_foundry.sdk.report.write import write_record_beside, write_report
from kernel_foundry.sdk.verdict_text import speedup_text, winner_text

_NOTHING: Final = "–"


def run_on_classes(
    task: Task, arguments: Mapping[str, Any], targets: Mapping[str, Any], *, as_json: bool
) -> int:
    """Run a search on several classes and show the results; return the exit code.

    Args:
        task: The task.
        arguments: Of `Foundry.optimize_classes`.
        targets: Of `open_foundry`.
        as_json: Print one JSON object in place of tables.
    """
    with open_foundry(**targets) as foundry:
        result = foundry.optimize_classes(
            task, listener=lambda label: PlainProgress(label).on, **arguments
        )
        reports = _write_reports(foundry, result)
        if as_json:
            print_json(_object(result, reports))
        else:
            _show(result, reports)
    errors = [r.error for r in result.runs if r.error is not None]
    if errors:
        return exit_code(errors[0])
    has_all = all(r.result is not None and r.result.winner for r in result.runs)
    return 0 if has_all else EXIT_NOTHING_CORRECT


def _write_reports(foundry: Foundry, result: ClassesResult) -> dict[str, str]:
    """Write report and record of each run that ended; return the reports' paths by label."""
    reports = {}
    for one in result.runs:
        if one.result is not None:
            report = write_report(foundry, one.run)
            write_record_beside(report, one.result)
            reports[one.choice.label] = str(report)
    return reports


def _show(result: ClassesResult, reports: Mapping[str, str]) -> None:
    console = PrintableConsole()
    for one in result.runs:
        for line in _run_lines(one, reports):
            console.print(line, soft_wrap=True, highlight=False)
    labels = [
        r.choice.label for r in result.runs if any(c.on == r.choice.label for c in result.cross)
    ]
    if len(labels) < 2:
        return
    console.print("cross table: speed-up of each class's winner over the baselines of each class")
    table = plain_table("winner of", *(f"on {label}" for label in labels))
    for winner in labels:
        table.add_row(winner, *(_cell(result, winner, on) for on in labels))
    console.print(table)
    for cell in result.cross:
        if cell.reason:
            line = f"winner of {cell.winner_of} on {cell.on}: {cell.reason}"
            console.print(line, soft_wrap=True, highlight=False)


def _run_lines(one: ClassRun, reports: Mapping[str, str]) -> list[str]:
    head = f"{one.choice.label} ({one.choice.class_name}), run {one.run}: "
    if one.result is None:
        again = as_called(f"optimize --resume --run {one.run}")
        return [f"{head}failed: {one.error}", f"  if it had begun, `{again}` continues it"]
    cause = CAUSES[one.result.cause]
    if one.result.winner is None:
        return [f"{head}ended, {cause}", "  nothing correct was found"]
    return [
        f"{head}ended, {cause}",
        f"  {winner_text(one.result.winner.evaluation)}",
        f"  report: {reports[one.choice.label]}",
    ]


def _cell(result: ClassesResult, winner: str, on: str) -> Text:
    found = next((c for c in result.cross if (c.winner_of, c.on) == (winner, on)), None)
    if found is None:
        return Text(_NOTHING)  # another language
    if found.speedup is None:
        outcome = "not judged" if found.evaluation is None else found.evaluation.outcome.value
        return Text(outcome)
    style = "bold green" if found is result.fastest_on(on) else ""
    return Text(speedup_text(found.speedup), style)


def _object(result: ClassesResult, reports: Mapping[str, str]) -> dict[str, Any]:
    return {
        "classes": [_run_object(one, reports) for one in result.runs],
        "cross": [_cross_object(cell) for cell in result.cross],
        "fastest": {
            one.choice.label: best.winner_of
            for one in result.runs
            if (best := result.fastest_on(one.choice.label)) is not None
        },
    }


def _run_object(one: ClassRun, reports: Mapping[str, str]) -> dict[str, Any]:
    winner = None if one.result is None else one.result.winner
    return {
        "label": one.choice.label,
        "class": one.choice.class_name,
        "language": one.choice.language.value,
        "run": one.run,
        "report": reports.get(one.choice.label),
        "error": None if one.error is None else one.error.message,
        "best": best_object(one.result.run, winner) if one.result and winner else None,
    }


def _cross_object(cell: CrossVerdict) -> dict[str, Any]:
    verdict = cell.evaluation
    return {
        "winner_of": cell.winner_of,
        "on": cell.on,
        "candidate": None if verdict is None else verdict.candidate,
        "outcome": None if verdict is None else verdict.outcome.value,
        "speedup": cell.speedup,
        "reason": cell.reason,
    }

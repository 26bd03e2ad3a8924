"""Progress of a run on stderr: a live bar on a terminal, one plain line for each event else."""

import sys
import time
from types import TracebackType
from typing import Protocol, Self

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.finding import OF_THE_MOMENT, FindingKind
from kernel_foundry.domain.model_limit import ModelLimit
from kernel_foundry.domain.steering import SteeringEvent
from kernel_foundry.domain.sweep import best_of
from kernel_foundry.printable import one_line
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.fleet.change import FleetChange
from kernel_foundry.sdk.loop.budget import Budget, BudgetUse
from kernel_foundry.sdk.loop.progress import (
    AdmissionEvent,
    AdmissionStartEvent,
    Event,
    LostCandidateEvent,
    RunResult,
    SweepEvent,
    UnsavedSweepEvent,
    VerdictEvent,
)
from kernel_foundry.sdk.steering import steering_text
from kernel_foundry.sdk.verdict_text import baselines_text, duration, headline_text, verdict_text


class Progress(Protocol):
    """Shows events while it is entered."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def on(self, event: Event) -> None:
        """Show one event."""
        ...


class HostLines:
    """Lines about load on the host while times were taken; a load that goes on is shown once."""

    def __init__(self) -> None:
        self._was_loaded = False

    def of(self, event: VerdictEvent) -> list[str]:
        """Return lines to print below a verdict."""
        evaluation = event.evaluation
        found = [f for f in evaluation.findings if f.kind in OF_THE_MOMENT]
        shown = [f for f in found if not self._was_loaded or f.kind is not FindingKind.LOADED_HOST]
        if evaluation.passed:
            self._was_loaded = any(f.kind is FindingKind.LOADED_HOST for f in found)
        return [f"  {f.message}" for f in shown]


class PlainProgress:
    """One line for each event, for logs and pipes.

    Args:
        label: Begins each line, where several runs are shown; "": nothing does.
    """

    def __init__(self, label: str = "") -> None:
        self._host = HostLines()
        self._begin = f"{label}: " if label else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        """Nothing is held."""

    def on(self, event: Event) -> None:
        """Print one event."""
        if isinstance(event, AdmissionStartEvent):
            self._write("admitting the task: running the reference, timing its baselines …")
        elif isinstance(event, AdmissionEvent):
            self._write(_admission_line(event.admission))
            for warning in event.admission.warnings:
                self._write(f"warning: {warning}")
            for limit in event.run.spec.left_out:
                self._write(_left_out_line(limit))
        elif isinstance(event, VerdictEvent):
            self._write(f"[{event.spent.archived}] {_judged_line(event)}")
            for line in self._host.of(event):
                self._write(line)
        elif isinstance(event, SweepEvent):
            self._write(_swept_line(event))
        elif isinstance(event, LostCandidateEvent):
            self._write(_unjudged_line(event))
        elif isinstance(event, UnsavedSweepEvent):
            self._write(_not_kept_line(event))
        elif isinstance(event, SteeringEvent):
            self._write(_steered_line(event))
        elif isinstance(event, FleetChange):
            self._write(_fleet_line(event))

    def _write(self, line: str) -> None:
        sys.stderr.write(one_line(f"{self._begin}{line}") + "\n")
        sys.stderr.flush()


class LiveProgress:
    """A bar with evaluations done, best speed-up and time left; verdicts scroll above it."""

    def __init__(self) -> None:
        self._bar = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("best {task.fields[best]}", style="bold green", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            console=PrintableConsole(stderr=True),
        )
        self._task = self._bar.add_task("starting", total=None, best="–", left="")
        self._host = HostLines()
        self._budget = Budget()
        self._started_s = time.monotonic()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._bar.stop()

    def on(self, event: Event) -> None:
        """Move the bar and print the verdict above it."""
        if isinstance(event, AdmissionStartEvent):
            self._bar.update(self._task, description="admitting")
        elif isinstance(event, AdmissionEvent):
            self._budget = event.budget
            self._started_s = time.monotonic()
            self._print(_admission_line(event.admission))
            for warning in event.admission.warnings:
                self._print(f"warning: {warning}", "yellow")
            for limit in event.run.spec.left_out:
                self._print(_left_out_line(limit), "yellow")
            self._bar.update(
                self._task,
                description="searching",
                total=event.budget.evaluations,
                completed=event.spent.evaluations,
            )
        elif isinstance(event, VerdictEvent):
            colour = "green" if event.evaluation.passed else "red"
            self._print(_judged_line(event), colour)
            for line in self._host.of(event):
                self._print(line, "yellow")
            self._bar.update(
                self._task,
                description="re-measuring" if event.is_promotion else "searching",
                completed=event.spent.evaluations,
                best=_best_text(event),
                left=time_left(self._budget, event.spent),
            )
        elif isinstance(event, SweepEvent):
            self._print(_swept_line(event), "cyan")
            self._bar.update(self._task, completed=event.spent.evaluations)
        elif isinstance(event, LostCandidateEvent):
            self._print(_unjudged_line(event), "yellow")
        elif isinstance(event, UnsavedSweepEvent):
            self._print(_not_kept_line(event), "yellow")
        elif isinstance(event, SteeringEvent):
            self._print(_steered_line(event), "magenta")
        elif isinstance(event, FleetChange):
            self._print(_fleet_line(event), "yellow")
        elif isinstance(event, RunResult):
            self._bar.update(self._task, description=f"ended: {event.cause.value}", left="")

    def _print(self, line: str, style: str = "") -> None:
        self._bar.console.print(one_line(line), style=style, highlight=False)


def time_left(budget: Budget, spent: BudgetUse) -> str:
    """Return the time left by whichever cap comes first, as "2:05 left"."""
    remaining_s = []
    if budget.minutes is not None:
        remaining_s.append(budget.minutes * 60 - spent.seconds)
    if budget.evaluations is not None and spent.evaluations:
        per_evaluation_s = spent.seconds / spent.evaluations
        remaining_s.append((budget.evaluations - spent.evaluations) * per_evaluation_s)
    if not remaining_s:
        return ""
    left_s = max(0, round(min(remaining_s)))
    return f"{left_s // 60}:{left_s % 60:02d} left"


def _admission_line(admission: Admission) -> str:
    timed = [w for w in admission.workloads if not w.held_out]
    parts = [
        f"{w.workload}: "
        + baselines_text(w.baselines)
        + f", traffic bound {duration(w.traffic_bound_ns)}"
        + f", arithmetic estimate {duration(w.arithmetic_estimate_ns)} ({w.arithmetic_unit})"
        for w in timed
    ]
    return f"admitted on {admission.device.name}; " + "; ".join(parts)


def _left_out_line(limit: ModelLimit) -> str:
    return f"warning: {limit.text}: the run goes on without it"


def _judged_line(event: VerdictEvent) -> str:
    evaluation = event.evaluation
    what = "re-measured" if event.is_promotion else event.candidate.operator.value
    if evaluation.swept_count:
        what = "best of its sweep:"
    is_best = evaluation.passed and event.result.is_best
    return f"{what} {verdict_text(event.candidate, evaluation)}{' ★ best' if is_best else ''}"


def _best_text(event: VerdictEvent) -> str:
    if event.best is None:
        return "–"
    best = event.best.evaluation
    return headline_text(best.speedup, best.speedup_interval)


def _swept_line(event: SweepEvent) -> str:
    correct = sum(r.is_correct for r in event.results)
    line = (
        f"swept {event.candidate.digest[:8]}: {counted(len(event.results), 'configuration')}, "
        f"{correct} right"
    )
    best = best_of(event.results)
    if best is not None:
        values = " ".join(f"{s.name}={s.value}" for s in best.configuration)
        line += f", best {duration(best.median_ns)} with {values}"
    return line


def _unjudged_line(event: LostCandidateEvent) -> str:
    return f"not judged, {event.candidate.digest[:8]}: {event.reason}"


def _steered_line(event: SteeringEvent) -> str:
    return f"steered: {steering_text(event.steering)}"


def _fleet_line(event: FleetChange) -> str:
    if event.is_away:
        left = f"{event.there} of {event.total} left"
        return f"evaluator {event.evaluator} is away ({event.reason}); {left}"
    return f"evaluator {event.evaluator} is back; {event.there} of {event.total} there"


def _not_kept_line(event: UnsavedSweepEvent) -> str:
    digest = event.candidate.digest[:8]
    return f"warning: the landscape of {digest} is not kept: {event.path}: {event.reason}"

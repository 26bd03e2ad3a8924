"""Progress of a run on stderr: a live bar on a terminal, else one plain line for each event."""

from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.output import print_text
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.finding import OF_THE_MOMENT, FindingKind
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


class EventLines:
    """The lines for each event; a loaded host is reported once, until it is idle again."""

    def __init__(self) -> None:
        self._was_loaded = False

    def of(self, event: Event) -> list[tuple[str, str]]:
        """Return lines, each with its colour; none of an event that only moves a bar."""
        match event:
            case AdmissionStartEvent():
                return [(_start_line(event), "")]
            case AdmissionEvent():
                limits = event.run.spec.left_out
                warnings = [f"warning: {warning}" for warning in event.admission.warnings]
                warnings += [f"warning: {x.text}: the run continues without it" for x in limits]
                return [(_admission_line(event.admission), ""), *((w, "yellow") for w in warnings)]
            case VerdictEvent():
                colour = "green" if event.evaluation.passed else "red"
                hosts = ((line, "yellow") for line in self._host_lines(event))
                return [(_judged_line(event), colour), *hosts]
            case SweepEvent():
                return [(_swept_line(event), "cyan")]
            case LostCandidateEvent():
                return [(f"not judged, {event.candidate.digest[:8]}: {event.reason}", "yellow")]
            case UnsavedSweepEvent():
                return [(_not_kept_line(event), "yellow")]
            case SteeringEvent():
                return [(f"steered: {steering_text(event.steering)}", "magenta")]
            case FleetChange():
                return [(_fleet_line(event), "yellow")]
            case _:
                return []

    def _host_lines(self, event: VerdictEvent) -> list[str]:
        evaluation = event.evaluation
        found = [f for f in evaluation.findings if f.kind in OF_THE_MOMENT]
        shown = [f for f in found if not self._was_loaded or f.kind is not FindingKind.LOADED_HOST]
        if evaluation.passed:
            self._was_loaded = any(f.kind is FindingKind.LOADED_HOST for f in found)
        return [f"  {f.message}" for f in shown]


class PlainProgress:
    """Lines for logs and pipes, while it is entered.

    Args:
        label: Begins each line, where several runs are shown; "": nothing does.
    """

    def __init__(self, label: str = "") -> None:
        self._lines = EventLines()
        self._begin = f"{label}: " if label else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        """Do nothing."""

    def on(self, event: Event) -> None:
        """Print one event."""
        number = ""
        if isinstance(event, VerdictEvent):
            number = f"[{event.spent.archived}] "
        for line, _ in self._lines.of(event):
            self._write(f"{number}{line}")
            number = ""

    def _write(self, line: str) -> None:
        print_text(one_line(f"{self._begin}{line}"), err=True)


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
        self._lines = EventLines()
        self._budget = Budget()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._bar.stop()

    def on(self, event: Event) -> None:
        """Move the bar and print the event's lines above it."""
        for line, colour in self._lines.of(event):
            self._bar.console.print(one_line(line), style=colour, highlight=False)
        match event:
            case AdmissionStartEvent():
                self._bar.update(self._task, description="admitting")
            case AdmissionEvent():
                self._budget = event.budget
                self._bar.update(
                    self._task,
                    description="searching",
                    total=event.budget.evaluations,
                    completed=event.spent.evaluations,
                )
            case VerdictEvent():
                self._bar.update(
                    self._task,
                    description="re-measuring" if event.is_promotion else "searching",
                    completed=event.spent.evaluations,
                    best=_best_text(event),
                    left=time_left(self._budget, event.spent),
                )
            case SweepEvent():
                self._bar.update(self._task, completed=event.spent.evaluations)
            case RunResult():
                self._bar.update(self._task, description=f"ended: {event.cause.value}", left="")


def time_left(budget: Budget, spent: BudgetUse) -> str:
    """Return the estimated time until the first cap is reached, as "2:05 left"."""
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


def _start_line(event: AdmissionStartEvent) -> str:
    """Whether the run begins or continues, its limits, and the first step."""
    budget, run = event.budget, event.resumed
    done = 0 if run is None else run.evaluation_count
    limits = []
    if budget.evaluations is not None:
        count = counted(budget.evaluations, "evaluation")
        again = "the leading candidates are measured again beyond that"
        limits.append(f"at most {count} in all, {again}" if done else f"at most {count}, {again}")
    if budget.minutes is not None:
        limits.append(f"{budget.minutes:g} min from now")
    if budget.cost_usd is not None:
        limits.append(f"{budget.cost_usd:g} USD")
    if budget.tokens is not None:
        limits.append(f"{budget.tokens} tokens")
    within = f" ({'; '.join(limits)})" if limits else ""
    begin = "" if run is None else f"run {run.spec.name} continues after {counted(done, 'verdict')}"
    first = f"admitting {event.task.name}: running the reference, timing its baselines …"
    return f"{begin}{within}; {first}" if begin else f"{first}{within}"


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


def _fleet_line(event: FleetChange) -> str:
    if event.is_away:
        left = f"{event.there} of {event.total} left"
        return f"evaluator {event.evaluator} is away ({event.reason}); {left}"
    return f"evaluator {event.evaluator} is back; {event.there} of {event.total} there"


def _not_kept_line(event: UnsavedSweepEvent) -> str:
    digest = event.candidate.digest[:8]
    return f"warning: the landscape of {digest} could not be written: {event.path}: {event.reason}"

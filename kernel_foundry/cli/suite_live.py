"""Progress of a suite on stderr: a live table on a terminal, else a line for each run."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Self

from rich.live import Live
from rich.table import Table

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.live import time_left
from kernel_foundry.cli.output import print_text
from kernel_foundry.cli.table import numbers, plain_table, whole
from kernel_foundry.domain.archive import Elite
from kernel_foundry.printable import one_line
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.loop.budget import Budget, BudgetUse
from kernel_foundry.sdk.loop.progress import AdmissionEvent, RunResult, SweepEvent, VerdictEvent
from kernel_foundry.sdk.suite.entry import EntryState, SuiteEntry
from kernel_foundry.sdk.suite.estimate import SuiteEstimate
from kernel_foundry.sdk.suite.progress import EntryEvent, SuiteEvent, SuiteRunEvent, WaitEvent
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.sdk.verdict_text import headline_text

_ENDED_SHOWN: Final = 12
"""Rows of runs that have ended; the older ones scroll out of the table."""


class _SoFar:
    """The progress of each run: its best kernel, what it has used, and its budget."""

    def __init__(self) -> None:
        self._best: dict[int, Elite] = {}
        self._used: dict[int, BudgetUse] = {}
        self._budgets: dict[int, Budget] = {}

    def hear(self, event: SuiteRunEvent) -> None:
        """Record one event."""
        number, heard = event.entry.number, event.event
        if isinstance(heard, AdmissionEvent):
            self._budgets[number] = heard.budget
        if isinstance(heard, AdmissionEvent | VerdictEvent | SweepEvent | RunResult):
            self._used[number] = replace(heard.spent)  # the run counts on in its own
        best = heard.best if isinstance(heard, VerdictEvent) else None
        best = heard.winner if isinstance(heard, RunResult) else best
        if best is not None:
            self._best[number] = best

    def text(self, entry: SuiteEntry) -> str:
        """Return the speed-up of a run's best with its interval; a dash without any."""
        elite = self._best.get(entry.number)
        if elite is None:
            return "–"
        return headline_text(elite.evaluation.speedup, elite.evaluation.speedup_interval)

    def evaluations(self, entry: SuiteEntry) -> int:
        """Return how many evaluations a run has made."""
        return entry.progress.evaluations or self._used_by(entry).evaluations

    def cost_usd(self, entry: SuiteEntry) -> float:
        """Return what a run has cost."""
        return entry.progress.cost_usd if entry.has_ended else self._used_by(entry).cost_usd

    def left_text(self, entry: SuiteEntry) -> str:
        """Return the time that a run has left, as "2:05 left"; "" if unknown."""
        return time_left(self._budgets.get(entry.number, Budget()), self._used_by(entry))

    def _used_by(self, entry: SuiteEntry) -> BudgetUse:
        return self._used.get(entry.number, BudgetUse())


class PlainSuite:
    """A line for each run that begins or ends, for logs and pipes."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._so_far = _SoFar()
        self._begun: set[int] = set()

    def __enter__(self) -> Self:
        _say(head_text(self._suite))
        return self

    def __exit__(self, *_exc: object) -> None:
        """Do nothing."""

    def on(self, event: SuiteEvent) -> None:
        """Print one event."""
        if isinstance(event, SuiteRunEvent):
            self._so_far.hear(event)
            return
        entry = event.entry
        if isinstance(event, WaitEvent):
            _say(f"{entry.title}: again in {event.seconds:.0f} s: {event.reason}")
            return
        if entry.state is EntryState.BEGUN and entry.number in self._begun:
            return  # it is tried again, which was said
        self._begun.add(entry.number)
        ended = sum(one.has_ended for one in self._suite.entries)
        line = f"[{ended}/{len(self._suite.entries)}] {entry.title} {entry.state.value}"
        progress = entry.progress
        if entry.state is EntryState.BEGUN:
            line += f" on {progress.device}"
        elif entry.state is EntryState.FINISHED:
            line += f": {self._so_far.text(entry)}, {counted(progress.evaluations, 'evaluation')}"
            line += f", {progress.cost_usd:.2f} USD, {progress.seconds:.0f} s"
            if progress.reason:
                line += f"; more budget brought nothing: {progress.reason}"
        else:
            line += f": {progress.reason}"
        _say(line)


class LiveSuite:
    """A table of the runs in progress and of those that ended last, with the suite's totals.

    Args:
        suite: The suite that is worked on.
        clock: Gives seconds.
    """

    def __init__(self, suite: Suite, clock: Callable[[], float] = time.monotonic) -> None:
        self._suite = suite
        self._clock = clock
        self._so_far = _SoFar()
        self._used_before_s = suite.used_seconds
        self._started_s = clock()
        self._begun_s: dict[int, float] = {}
        self._ended: deque[SuiteEntry] = deque(maxlen=_ENDED_SHOWN)
        self._trouble = ""
        self._live = Live(
            get_renderable=self.table, console=PrintableConsole(stderr=True), refresh_per_second=2
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._live.stop()

    def on(self, event: SuiteEvent) -> None:
        """Record one event; the table refreshes itself."""
        if isinstance(event, SuiteRunEvent):
            self._so_far.hear(event)
        elif isinstance(event, WaitEvent):
            self._trouble = f"{event.entry.title}: {event.reason}"
        elif isinstance(event, EntryEvent):
            self._trouble = ""
            if event.entry.has_ended:
                self._begun_s.pop(event.entry.number, None)
                self._ended.append(event.entry)
            else:
                self._begun_s.setdefault(event.entry.number, self._clock())

    def table(self) -> Table:
        """Return the table of the present state."""
        begun = [e for e in self._suite.entries if e.number in self._begun_s]
        head = head_text(
            self._suite,
            used_seconds=self._used_before_s + self._clock() - self._started_s,
            begun_usd=sum(self._so_far.cost_usd(entry) for entry in begun),
        )
        table = plain_table(
            whole("task"),
            "state",
            "device",
            *numbers("evaluations"),
            "best",
            *numbers("USD", "time", "left"),
            title=one_line(head),
            title_justify="left",
            caption=one_line(self._trouble),
            caption_justify="left",
        )
        for entry in (*self._ended, *begun):
            table.add_row(*self._row(entry), style=_STYLES.get(entry.state, ""))
        return table

    def _row(self, entry: SuiteEntry) -> tuple[str, ...]:
        progress, is_begun = entry.progress, entry.number in self._begun_s
        most = progress.budget.evaluations
        made = str(self._so_far.evaluations(entry)) + (f"/{most}" if most else "")
        seconds = progress.seconds
        if is_begun:
            seconds += self._clock() - self._begun_s[entry.number]
        is_told = progress.reason and entry.state is not EntryState.FINISHED
        says = one_line(progress.reason)[:60] if is_told else self._so_far.text(entry)
        return (
            one_line(entry.title),
            entry.state.value,
            progress.device,
            made,
            says,
            f"{self._so_far.cost_usd(entry):.2f}",
            clock_text(seconds),
            self._so_far.left_text(entry) if is_begun else "",
        )


_STYLES: Final = {
    EntryState.FINISHED: "green",
    EntryState.REFUSED: "yellow",
    EntryState.FAILED: "red",
}


def head_text(suite: Suite, *, used_seconds: float | None = None, begun_usd: float = 0.0) -> str:
    """Return a suite's totals: "suite l1: 3 of 250 runs ended, 2 begun, 245 waiting, 0.41 USD, …".

    Args:
        suite: The suite.
        used_seconds: Wall-clock time up to now; None: as the suite has it.
        begun_usd: What runs that go on have cost.
    """
    used_s = suite.used_seconds if used_seconds is None else used_seconds
    ended = sum(entry.has_ended for entry in suite.entries)
    text = f"suite {suite.plan.name}: {ended} of {counted(len(suite.entries), 'run')} ended"
    for state in (EntryState.BEGUN, EntryState.WAITING):
        if count := suite.count(state):
            text += f", {count} {state.value}"
    text += f", {suite.cost_usd + begun_usd:.2f} USD, {clock_text(used_s)}"
    left = len(suite.entries) - ended
    if ended and left:
        text += f", about {clock_text(used_s / ended * left)} left"
    return text


def estimate_text(found: SuiteEstimate) -> str:
    """Return an estimate as text, and which runs it is derived from."""
    pace = found.pace
    if pace.runs:
        basis = (
            f"By the pace of {pace.runs} earlier runs ({pace.seconds:.2g} s and"
            f" {pace.cost_usd:.2g} USD an evaluation): about {_hours(found.hours)} and"
            f" {_usd(found.cost_usd)}."
        )
    else:
        basis = "No estimate: there is no earlier run in this language with these models."
    hours = "no cap on time" if found.most_hours is None else f"at most {_hours(found.most_hours)}"
    usd = "no cap on cost" if found.most_usd is None else f"at most {_usd(found.most_usd)}"
    return f"{counted(found.runs, 'run')}, {found.devices} at once. {basis} Caps: {hours}, {usd}."


def clock_text(seconds: float) -> str:
    """Return a time as hours, minutes and seconds: "1:02:03"."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _hours(hours: float | None) -> str:
    return "an unknown time" if hours is None else clock_text(3600 * hours)


def _usd(usd: float | None) -> str:
    return "an unknown cost" if usd is None else f"{usd:.2f} USD"


def _say(line: str) -> None:
    print_text(one_line(line), err=True)

"""Progress of a self-test on stderr: a live bar on a terminal, else a line for each case."""

import sys
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.output import print_text
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.selftest.case import CaseResult, CaseState


class CaseProgress:
    """Shows results as they arrive, while it is entered."""

    def __init__(self, *, total: int) -> None:
        self._total = total
        self._done = 0
        self._bar: Progress | None = None
        if sys.stderr.isatty():
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=PrintableConsole(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("probing the host", total=total or None)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def on(self, result: CaseResult) -> None:
        """Show one result."""
        self._done += 1
        if self._bar is None:
            print_text(one_line(f"[{self._done}/{self._total}] {_line(result)}"), err=True)
            return
        self._bar.update(self._task, completed=self._done, description=one_line(result.case.name))
        if result.state in (CaseState.UNEXPECTED, CaseState.ERROR):
            self._bar.console.print(one_line(_line(result)), style="red")


def _line(result: CaseResult) -> str:
    outcome = result.state.name if result.evaluation is None else result.evaluation.outcome.name
    problem = f": {result.detail}" if result.detail else ""
    return f"{result.case.name}: {outcome}, {result.seconds:.1f} s{problem}"

"""A run as a notebook shows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kernel_foundry.domain.archive import ArchivedEvaluation, Elite, Run
from kernel_foundry.domain.best import Leader
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.ports import Archive
from kernel_foundry.printable import one_line
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.archive_pages import all_evaluations
from kernel_foundry.sdk.loop.promotion import winner
from kernel_foundry.sdk.notebook.data_frame import data_frame
from kernel_foundry.sdk.notebook.evaluation_view import EvaluationView
from kernel_foundry.sdk.notebook.gain_plot import gain_plot
from kernel_foundry.sdk.notebook.markup import escaped, paragraph
from kernel_foundry.sdk.report.page_objects import row_object
from kernel_foundry.sdk.verdict_text import headline_text

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class RunView:
    """A run as it was when it was asked for: `run`, and its evaluations in order."""

    run: Run
    archived: Sequence[ArchivedEvaluation]
    winner: Elite | None
    """Its winner, or the best so far; None before anything passed."""

    def __repr__(self) -> str:
        """One printable line, such as "<run softmax-1: 40 evaluations, 1.83× (1.79–1.88)>"."""
        return one_line(f"<run {self.run.spec.name}: {self._summary()}>")

    def __len__(self) -> int:
        """Return how many evaluations there are."""
        return len(self.archived)

    @property
    def best(self) -> EvaluationView | None:
        """The verdict on the winner, or on the best so far; None before anything passed."""
        if self.winner is None:
            return None
        return EvaluationView(self.winner.evaluation, self.winner.candidate.source)

    def evaluation(self, number: int) -> EvaluationView:
        """Return an evaluation by its number, from 1, as `runs watch` and `to_pandas` show it.

        Raises:
            InvalidArgumentError: there is none of that number.
        """
        for one in self.archived:
            if one.sequence == number:
                return EvaluationView(one.evaluation, one.candidate.source)
        raise InvalidArgumentError(
            f"run {self.run.spec.name} has no evaluation {number}; it has {len(self)}",
            field="number",
        )

    def to_pandas(self) -> "DataFrame":
        """Return one row for each evaluation, by number; times in ns, archived_unix_s in seconds.

        Columns are those of `kfoundry runs watch --json` and what the page's table adds;
        `speedup_lower` and `speedup_upper` bound the 95 % interval.

        Raises:
            PackageMissingError: pandas is not installed.
        """
        return data_frame(self._rows, index="sequence")

    def plot(self) -> str:
        """Return the speed-ups by evaluation as SVG; empty where nothing passed."""
        return gain_plot(self._rows)

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        leader = Leader()
        return [row_object(one, leader.add(one)) for one in self.archived]

    def _summary(self) -> str:
        gain = headline_text(self.run.best_speedup, self.run.best_speedup_interval)
        return f"{counted(len(self), 'evaluation')}, {gain}"

    def _repr_html_(self) -> str:
        spec = self.run.spec
        heading = f"<p><strong>{escaped(spec.name)}</strong> {escaped(self._summary())}</p>"
        facts = (spec.task.name, spec.language.value, spec.device, self.run.state.value)
        best = "" if self.best is None else self.best._repr_html_()
        return heading + paragraph(" · ".join(facts)) + self.plot() + best


async def run_view(archive: Archive, name: str) -> RunView:
    """Return a run with all its evaluations.

    Args:
        archive: Where it is.
        name: The run; "" is the newest.

    Raises:
        RunNotFoundError: there is no such run.
    """
    run = await archive.get_run(name)
    archived = [one async for one in all_evaluations(archive, run.spec.name)]
    return RunView(run, archived, await winner(archive, run.spec.name))

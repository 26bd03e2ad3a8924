"""Verdicts on published kernels in a file, one a line, so that judging goes on after a kill.

Each line holds its task as well: the folder by itself is a suite that can be shown and compared.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernel_foundry.domain.archive import RunBudget
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.plain import PlainError, from_json, to_json
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.suite.entry import EntryState, SuiteEntry
from kernel_foundry.sdk.suite.plan import SuitePlan, WholeBudget, language_of
from kernel_foundry.sdk.suite.results import EntryResult, judged_result
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.whole_file import writing

FILE_NAME: Final = "verdicts.jsonl"
_LONGEST_LINE: Final = 64 << 20
"""Bytes of one verdict; a file that is no such list may have no end of line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptVerdict:
    """What became of one task, and of which kernel."""

    kernel: str
    """Digest; empty: there is none."""
    asked: str
    """The device that was asked for, its evaluator, and what else decides the verdict."""
    entry: SuiteEntry
    evaluation: Evaluation | None
    """None without a kernel, and where the task was refused or could not be judged."""


class KeptVerdicts:
    """The verdicts of one folder; a new one is on disk before it counts.

    Args:
        folder: Where the file is, or is to be.
        asked: The device that is asked for, its evaluator, and what else decides a verdict.

    Raises:
        InvalidArgumentError: the folder cannot be written to.
    """

    def __init__(self, folder: Path, asked: str) -> None:
        self._asked = asked
        self._path = folder / FILE_NAME
        self._found: dict[tuple[str, str], KeptVerdict] = {}
        with writing(folder, field="out"):
            folder.mkdir(parents=True, exist_ok=True)
            if self._path.exists():
                for kept in _lines(self._path):
                    if kept.asked == asked:
                        self._add(kept)
            self._file = self._path.open("ab")
            if self._file.tell():
                self._file.write(b"\n")  # what a kill has cut short stays a line of its own

    def find(self, task: Task, kernel: str) -> KeptVerdict | None:
        """Return what became of a task with a kernel of that digest; None if that is not known.

        What was refused or failed is not known: it may pass now.
        """
        return self._found.get((task.digest, kernel))

    def keep(self, entry: SuiteEntry, kernel: str, evaluation: Evaluation | None) -> None:
        """Add what became of a task; it is on disk on return.

        Raises:
            InvalidArgumentError: the file cannot be written.
        """
        kept = KeptVerdict(kernel=kernel, asked=self._asked, entry=entry, evaluation=evaluation)
        with writing(self._path, field="out"):
            self._file.write(to_json(kept).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        self._add(kept)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _add(self, kept: KeptVerdict) -> None:
        if kept.entry.state is EntryState.FINISHED:
            self._found[kept.entry.task.digest, kept.kernel] = kept


def is_judged(folder: Path) -> bool:
    """Return whether a folder has verdicts on published kernels."""
    return (folder / FILE_NAME).is_file()


def judged_suite(folder: Path) -> tuple[Suite, tuple[EntryResult, ...]]:
    """Return the tasks of a folder, judged so far with what was asked for last, as a suite.

    Raises:
        InvalidArgumentError: the folder has no verdicts.
    """
    try:
        lines = list(_lines(folder / FILE_NAME))
    except OSError as error:
        raise InvalidArgumentError(f"{folder}: {error.strerror}", field="suite") from error
    if not lines:
        raise InvalidArgumentError(f"{folder / FILE_NAME}: no verdict there", field="suite")
    newest = {kept.entry.task.name: kept for kept in lines if kept.asked == lines[-1].asked}
    judged = sorted(newest.values(), key=lambda kept: kept.entry.number)
    entries = [kept.entry for kept in judged]
    device = next((entry.progress.device for entry in entries if entry.progress.device), "")
    plan = SuitePlan(
        name=folder.resolve().name,
        tasks=tuple(entry.task for entry in entries),
        language=language_of((device,)),
        devices=(device,),
        strategy="published kernels",
        each=RunBudget(),
        whole=WholeBudget(),
        limits=EvaluationLimits(),
    )
    suite = Suite(
        id=0,
        plan=plan,
        entries=entries,
        created_unix_s=(folder / FILE_NAME).stat().st_mtime,
        used_seconds=sum(entry.progress.seconds for entry in entries),
    )
    return suite, tuple(judged_result(kept.entry, kept.evaluation) for kept in judged)


def _lines(path: Path) -> Iterator[KeptVerdict]:
    """All lines; one that is no verdict counts as none, and is judged again."""
    with path.open("rb") as file:
        while line := file.readline(_LONGEST_LINE):
            try:
                kept = from_json(KeptVerdict, line)
            except PlainError:
                continue
            if kept.evaluation is None or kept.evaluation.task == kept.entry.task.digest:
                yield kept

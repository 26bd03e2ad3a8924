"""Verdicts on published kernels in a file, one a line, so that judging goes on after a kill."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.foreign import ForeignSource
from kernel_foundry.domain.plain import PlainError, from_json, to_json
from kernel_foundry.domain.task import Task
from kernel_foundry.whole_file import writing

FILE_NAME: Final = "verdicts.jsonl"
_LONGEST_LINE: Final = 64 << 20
"""Bytes of one verdict; a file that is no such list may have no end of line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptVerdict:
    """A verdict, and what it is on."""

    task: str
    kernel: str
    """Digests."""
    asked: str
    """The device that was asked for, its evaluator, and what else decides the verdict."""
    evaluation: Evaluation


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
        self._found: dict[tuple[str, str], Evaluation] = {}
        with writing(folder, field="out"):
            folder.mkdir(parents=True, exist_ok=True)
            if self._path.exists():
                self._read()
            self._file = self._path.open("ab")
            if self._file.tell():
                self._file.write(b"\n")  # what a kill has cut short stays a line of its own

    def find(self, task: Task, source: ForeignSource) -> Evaluation | None:
        """Return the verdict on a kernel; None if there is none yet."""
        return self._found.get((task.digest, source.digest))

    def keep(self, task: Task, source: ForeignSource, evaluation: Evaluation) -> None:
        """Add a verdict; it is on disk on return.

        Raises:
            InvalidArgumentError: the file cannot be written.
        """
        kept = _KeptVerdict(
            task=task.digest, kernel=source.digest, asked=self._asked, evaluation=evaluation
        )
        with writing(self._path, field="out"):
            self._file.write(to_json(kept).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        self._found[task.digest, source.digest] = evaluation

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self) -> None:
        """Read all lines; one that is no verdict counts as none, and is judged again."""
        with self._path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                try:
                    kept = from_json(_KeptVerdict, line)
                except PlainError:
                    continue
                if kept.asked == self._asked and kept.evaluation.task == kept.task:
                    self._found[kept.task, kept.kernel] = kept.evaluation

"""The numbers of every lesson that ranking needs, as arrays: ten thousand are scored at once.

What the numbers are worth is in `ranking.py`.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson
from kernel_foundry.domain.measures import Measures

Rows = npt.NDArray[np.int64]
"""Positions in the columns."""

_KINDS: Final = {kind: np.uint64(1 << position) for position, kind in enumerate(FindingKind)}
_NO_CELL: Final = -1
_NO_ROW: Final = -1

_ROW: Final = np.dtype(
    [
        ("id", np.int64),
        ("language", np.int8),
        ("findings", np.uint64),
        ("experts", np.uint64),
        ("device", np.int64),
        ("before", np.int8, (3,)),
        ("after", np.int8, (3,)),
        ("effect", np.float32),
        ("uses", np.float32),
        ("failures", np.float32),
    ]
)


class _Names:
    """Numbers names in the order in which they come; 0 is the empty one."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def number(self, name: str) -> int:
        """Return the number of `name`, a new one when it is new."""
        return self._numbers.setdefault(name, len(self._numbers))


class LessonColumns:
    """The columns of some lessons."""

    def __init__(self) -> None:
        self._table = np.zeros(64, dtype=_ROW)
        self._count = 0
        self._row_by_id = np.full(64, _NO_ROW, dtype=np.int64)
        self._experts = _Names()
        self._languages = _Names()
        self._devices = _Names()

    def __len__(self) -> int:
        return self._count

    def put(self, lesson: Lesson) -> None:
        """Add a lesson, or replace the one of its id."""
        row = self._row(lesson.id)  # may make the table anew
        self._table[row] = (
            lesson.id,
            self._languages.number(lesson.language or ""),
            findings_mask(lesson.findings),
            self._experts_mask(lesson.experts),
            self._devices.number(lesson.device),
            _cell(lesson.before),
            _cell(lesson.after),
            lesson.effect,
            lesson.use_count,
            lesson.failure_count,
        )

    def remove(self, unwanted: Sequence[int]) -> None:
        """Forget lessons; the last row takes the place of each."""
        for lesson_id in unwanted:
            row = self._row_by_id[lesson_id]
            self._row_by_id[lesson_id] = _NO_ROW
            self._count -= 1
            if row != self._count:
                self._table[row] = self._table[self._count]
                self._row_by_id[self._table[row]["id"]] = row

    def rows(self, ids: npt.NDArray[np.int64]) -> Rows:
        """Return where the lessons of `ids` stand."""
        return self._row_by_id[ids]

    def column(self, name: str, rows: Rows | slice = slice(None)) -> npt.NDArray[np.generic]:
        """Return one column of `rows`, of all lessons by default."""
        return self._table[: len(self)][name][rows]

    def suitable(self, language: Language, expert: str) -> npt.NDArray[np.int64]:
        """Return the ids of lessons in a language that are for a role, "" for any."""
        table = self._table[: len(self)]
        fits = (table["language"] == self._languages.number(language)) | (table["language"] == 0)
        if expert:
            for_all = table["experts"] == 0
            fits &= for_all | ((table["experts"] & np.uint64(self._expert_bit(expert))) != 0)
        ids: npt.NDArray[np.int64] = table["id"][fits]
        return ids

    def device(self, name: str) -> int:
        """Return the number that stands for a device in its column."""
        return self._devices.number(name)

    def _row(self, lesson_id: int) -> int:
        while lesson_id >= len(self._row_by_id):
            more = np.full_like(self._row_by_id, _NO_ROW)
            self._row_by_id = np.concatenate([self._row_by_id, more])
        if self._row_by_id[lesson_id] == _NO_ROW:
            if self._count == len(self._table):
                self._table = np.concatenate([self._table, np.zeros_like(self._table)])
            self._row_by_id[lesson_id] = self._count
            self._count += 1
        return int(self._row_by_id[lesson_id])

    def _experts_mask(self, roles: Sequence[str]) -> int:
        mask = 0
        for role in roles:  # one may come twice, and two may share a bit
            mask |= self._expert_bit(role)
        return mask

    def _expert_bit(self, role: str) -> int:
        # Beyond 63 roles some share a bit: they would see each other's lessons.
        return 1 << (self._experts.number(role) - 1) % 64 if role else 0


def findings_mask(kinds: Sequence[FindingKind]) -> np.uint64:
    """Return kinds as bits."""
    mask = np.uint64(0)
    for kind in kinds:
        mask |= _KINDS[kind]
    return mask


def _cell(measures: Measures | None) -> tuple[int, int, int]:
    return measures.cell if measures else (_NO_CELL, _NO_CELL, _NO_CELL)

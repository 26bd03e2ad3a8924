"""Reads ncu's source page: where in the source warps were found, as comma-separated values.

A block for each launch and file begins with "File Path" and "Function Name"; a row with a line
number sums up the instructions that follow it. Columns behind the instruction are numbers of
samples: of all reasons together, or one for each reason.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from evaluator_svc.tools.profile_report import SAMPLE, SAMPLES, kernel_name

_FILE: Final = "File Path"
_FUNCTION: Final = "Function Name"
_LINE: Final = "Line No"
_MAX_ROWS: Final = 200_000
_LONGEST_NAME: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    """A line of a kernel's source."""

    kernel: str
    file: str
    """Its name without folders."""
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSamples:
    """How often warps were found at a line."""

    total: int
    reasons: Mapping[str, int]
    """Of these by what they waited for; empty: not told."""

    def without(self, reason: str) -> "LineSamples":
        """Return these samples but for those that waited for `reason`."""
        kept = {name: count for name, count in self.reasons.items() if name != reason}
        return LineSamples(total=max(self.total - self.reasons.get(reason, 0), 0), reasons=kept)


def line_samples(output: str) -> dict[SourceLine, LineSamples]:
    """Return the samples of each line in a source page; empty when it holds none."""
    totals: Counter[SourceLine] = Counter()
    reasons: dict[SourceLine, Counter[str]] = {}
    file, kernel, columns = "", "", list[str]()
    for row in _rows(output):
        match row:
            case [name, value, *_] if name == _FILE:
                file, columns = _printable(PurePosixPath(value).name), []
            case [name, value, *_] if name == _FUNCTION:
                kernel, columns = kernel_name(value), []
            case [name, *_] if name == _LINE:
                columns = row
            case [number, *_] if number.isdecimal() and len(row) == len(columns) and file:
                line = SourceLine(kernel=kernel, file=file, line=int(number[:9]))
                counts = _counts(columns, row)
                total = counts.pop(SAMPLES, None)
                totals[line] += sum(counts.values()) if total is None else total
                reasons.setdefault(line, Counter()).update(
                    {name.removeprefix(SAMPLE): count for name, count in counts.items()}
                )
    return {
        line: LineSamples(total=total, reasons=reasons[line])
        for line, total in totals.items()
        if total > 0 and line.line > 0
    }


def _rows(output: str) -> Iterable[list[str]]:
    try:
        for index, row in enumerate(csv.reader(output.splitlines())):
            if index >= _MAX_ROWS:
                return
            yield row
    except csv.Error:
        return


def _counts(columns: list[str], row: list[str]) -> dict[str, int]:
    return {
        name: int(text.replace(",", ""))
        for name, text in zip(columns, row, strict=True)
        if name == SAMPLES or name.startswith(SAMPLE)
        if text.replace(",", "").isdecimal() and len(text) < _LONGEST_NUMBER
    }


_LONGEST_NUMBER: Final = 20


def _printable(text: str) -> str:
    return "".join(c for c in text if c.isprintable())[:_LONGEST_NAME]

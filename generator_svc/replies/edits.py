"""Search/replace edits of a candidate: all of them apply, or none.

Every SEARCH is looked up in the candidate as it was before any edit, so their order does not
matter. A reply is taken apart in `reply_parts`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Final

from generator_svc.replies.reply_parts import UnusableReplyError, WrittenEdit
from kernel_foundry.domain.candidate import KernelSource

MAX_EDITS: Final = 100
"""More than these are a rewrite."""

_MAX_FOUND: Final = 64
"""Places that are looked at for one edit: one is wanted, so that many are already too many."""

_MAX_COMPARED_CHARS: Final = 200
_MAX_SHOWN_CHARS: Final = 120
_CONTEXT_LINES: Final = 2
_LEAST_LIKENESS: Final = 0.3

_FENCE: Final = re.compile(r"\s*(?:`{3,}|~{3,})[\w+]*\s*")
_TOKEN: Final = re.compile(r"\w+|[^\w\s]")


def apply_edits(source: KernelSource, edits: tuple[WrittenEdit, ...]) -> KernelSource:
    """Return `source` with every edit applied.

    Raises:
        UnusableReplyError: When an edit is malformed, its text is not there or not there once, or
            two of them change the same lines.
    """
    if len(edits) > MAX_EDITS:
        raise UnusableReplyError(
            f"there are {len(edits)} edits, at most {MAX_EDITS} are taken: reply with the whole "
            "candidate"
        )
    parts = (
        _Part(name="device code", lines=tuple(source.device_code.split("\n"))),
        _Part(name="plan", lines=tuple(source.plan.split("\n"))),
    )
    changes: list[_Change] = []
    seen: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
    for number, edit in enumerate(edits, start=1):
        if (edit.search, edit.replacement) in seen and not edit.fault:
            continue  # said twice, meant once
        seen.add((edit.search, edit.replacement))
        changes.append(_change(parts, edit, number=number, count=len(edits)))
    device_code, plan = (_changed(part, changes) for part in parts)
    return replace(source, device_code=device_code, plan=plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    name: str
    lines: tuple[str, ...]

    def starts(self, wanted: tuple[str, ...], normal: Callable[[str], str]) -> list[int]:
        """Return where `wanted`, lines in normal form, begins: 0-based lines, not all of many."""
        text = "\n".join(["", *map(normal, self.lines), ""])
        needle = "\n".join(["", *wanted, ""])
        return [text.count("\n", 0, at) for at in islice(_offsets(text, needle), _MAX_FOUND)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """Lines of one part that give way to others."""

    part: str
    first: int
    """0-based."""
    count: int
    lines: tuple[str, ...]
    number: int = 0
    """Number of the edit, from 1."""


def _change(parts: tuple[_Part, ...], edit: WrittenEdit, *, number: int, count: int) -> _Change:
    name = f"edit {number} of {count}" if count > 1 else "the edit"
    if edit.fault:
        raise UnusableReplyError(
            f"{name} {edit.fault}: an edit is <<<<<<< SEARCH, the lines to find, =======, the "
            "lines that replace them, >>>>>>> REPLACE, each marker on a line of its own"
        )
    search, replacement = _without_fence(edit.search), _without_fence(edit.replacement)
    if not any(line.strip() for line in search):
        raise UnusableReplyError(
            f"{name} has an empty SEARCH: to insert lines, search for the line beside them and "
            "repeat it in REPLACE"
        )
    found = _places(parts, search, replacement)
    if not found:
        raise UnusableReplyError(
            f"{name} was not applied, so none was: its SEARCH is not in the candidate; "
            f"{_nearest(parts, search)}Copy the lines as they stand there, or reply with the whole "
            "candidate"
        )
    if len(found) > 1:
        shown = ", ".join(f"line {place.first + 1} of the {place.part}" for place in found[:4])
        more = ", …" if len(found) > 4 else ""
        raise UnusableReplyError(
            f"{name} was not applied, so none was: its SEARCH is in several places "
            f"({shown}{more}); add neighbouring lines until it is in one only"
        )
    return replace(found[0], number=number)


def _places(
    parts: tuple[_Part, ...], search: tuple[str, ...], replacement: tuple[str, ...]
) -> list[_Change]:
    """Return where an edit applies, by the strictest reading that applies anywhere."""
    exact = [
        _Change(part=part.name, first=first, count=len(search), lines=replacement)
        for part in parts
        for first in part.starts(search, str)
    ]
    if exact:
        return exact
    search, replacement = _without_blank_ends(search, replacement)
    trimmed = [
        _Change(part=part.name, first=first, count=len(search), lines=replacement)
        for part in parts
        for first in part.starts(tuple(map(str.rstrip, search)), str.rstrip)
    ]
    return trimmed or _shifted(parts, search, replacement) or _inside(parts, search, replacement)


def _shifted(
    parts: tuple[_Part, ...], search: tuple[str, ...], replacement: tuple[str, ...]
) -> list[_Change]:
    """Return where the lines stand with one and the same indentation more or less."""
    found = []
    for part in parts:
        for first in part.starts(tuple(map(str.strip, search)), str.strip):
            shift = _shift(search, part.lines[first : first + len(search)])
            if shift is not None:
                lines = tuple([shift.applied(line) for line in replacement])
                found.append(_Change(part=part.name, first=first, count=len(search), lines=lines))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shift:
    added: str = ""
    removed: str = ""

    def applied(self, line: str) -> str:
        if not line.strip():
            return line
        return self.added + line.removeprefix(self.removed)


def _shift(search: tuple[str, ...], there: tuple[str, ...]) -> _Shift | None:
    """Return the indentation between two texts that differ in nothing else."""
    shifts = set()
    for ours, theirs in zip(search, there, strict=True):
        if ours.strip():
            our, their = _indent(ours), _indent(theirs)
            if their.endswith(our):
                shifts.add(_Shift(added=their.removesuffix(our)))
            elif our.endswith(their):
                shifts.add(_Shift(removed=our.removesuffix(their)))
            else:
                return None
    return shifts.pop() if len(shifts) == 1 else None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _inside(
    parts: tuple[_Part, ...], search: tuple[str, ...], replacement: tuple[str, ...]
) -> list[_Change]:
    """Return where the text stands as whole words with more on its first or last line."""
    wanted, new = "\n".join(search).strip(), "\n".join(replacement).strip()
    found = []
    for part in parts:
        text = "\n".join(part.lines)
        for at in islice(_offsets(text, wanted), _MAX_FOUND):
            end = at + len(wanted)
            if _is_in_word(text, at) or _is_in_word(text, end):
                continue
            line_start = text.rfind("\n", 0, at) + 1
            rest_of_line = text[end:].partition("\n")[0]
            lines = (text[line_start:at] + new + rest_of_line).split("\n")
            found.append(
                _Change(
                    part=part.name,
                    first=text.count("\n", 0, at),
                    count=1 + wanted.count("\n"),
                    lines=tuple(lines),
                )
            )
    return found


def _is_in_word(text: str, at: int) -> bool:
    """Return whether the characters on both sides of an offset belong to one word."""
    pair = text[max(0, at - 1) : at + 1]
    return 0 < at < len(text) and all(c.isalnum() or c == "_" for c in pair)


def _offsets(text: str, wanted: str) -> Iterator[int]:
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


def _changed(part: _Part, changes: list[_Change]) -> str:
    own = sorted([c for c in changes if c.part == part.name], key=lambda c: c.first)
    for before, after in pairwise(own):
        if after.first < before.first + before.count:
            first, second = sorted((before.number, after.number))
            raise UnusableReplyError(
                f"edits {first} and {second} change the same lines of the {part.name}: make one "
                "edit of them; every SEARCH is looked up in the candidate before any edit"
            )
    lines = list(part.lines)
    for change in reversed(own):
        lines[change.first : change.first + change.count] = change.lines
    return "\n".join(lines)


def _without_fence(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines between two fences when the markers enclose a fenced block."""
    is_fenced = len(lines) >= 2 and all(_FENCE.fullmatch(lines[end]) for end in (0, -1))
    return lines[1:-1] if is_fenced else lines


def _without_blank_ends(
    search: tuple[str, ...], replacement: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Drop blank lines at the ends of the search, and as many at those of the replacement."""
    above, below = _blank_lines(search), _blank_lines(search[::-1])
    replacement = replacement[min(above, _blank_lines(replacement)) :]
    kept = len(replacement) - min(below, _blank_lines(replacement[::-1]))
    return search[above : len(search) - below], replacement[:kept]


def _blank_lines(lines: tuple[str, ...]) -> int:
    return next((count for count, line in enumerate(lines) if line.strip()), len(lines))


def _nearest(parts: tuple[_Part, ...], search: tuple[str, ...]) -> str:
    """Return the lines of the candidate that are most like the longest one searched for."""
    longest = max((line.strip() for line in search), key=len)
    wanted = _tokens(longest)
    likeness, part, at = max(
        ((_likeness(wanted, _tokens(line)), part, at) for part in parts
         for at, line in enumerate(part.lines)),
        key=lambda entry: entry[0],
    )  # fmt: skip
    if likeness < _LEAST_LIKENESS:
        return f"no line of it is like `{_short(longest)}`. "
    first = max(0, at - _CONTEXT_LINES)
    shown = part.lines[first : at + _CONTEXT_LINES + 1]
    numbered = f"{first + 1} to {first + len(shown)}"
    text = "\n".join(_short(line) for line in shown)
    return f"nearest are lines {numbered} of the {part.name}:\n{text}\n"


def _tokens(line: str) -> frozenset[str]:
    return frozenset(_TOKEN.findall(line[:_MAX_COMPARED_CHARS]))


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def _short(line: str) -> str:
    return line if len(line) <= _MAX_SHOWN_CHARS else line[:_MAX_SHOWN_CHARS] + "…"

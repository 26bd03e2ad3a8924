"""Lessons as files: YAML written by hand, and JSON Lines that carry them from store to store.

Every error names the place.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kernel_foundry.domain.lesson import Lesson, LessonOrigin, lesson_fault
from kernel_foundry.domain.measures import DIMENSIONS
from kernel_foundry.domain.plain import PlainError, from_json, from_plain, to_json
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.plain_yaml import PlainYamlError
from kernel_foundry.plain_yaml import read_yaml as read_plain_yaml
from kernel_foundry.shown_value import shown

_CELLS: Final = ("before", "after")
_NOT_BY_HAND: Final = ("origin", "id", "effect", "use_count", "failure_count")
"""Measured, or given by the store."""
_LONGEST_LINE: Final = 1 << 20
"""Characters; all that a lesson may say, escaped, takes less."""


def lesson_from_fields(fields: Mapping[str, Any], *, origin: LessonOrigin, where: str) -> Lesson:
    """Return the lesson that a person wrote down.

    Args:
        fields: Those of `Lesson` but origin, id and numbers; `before` and `after` as three levels.
        origin: Where it comes from.
        where: File and entry, for errors.

    Raises:
        InvalidArgumentError: it is no lesson, or `lesson_fault` has an objection.
    """
    for name in _NOT_BY_HAND:
        if name in fields:
            raise _invalid(where, f"{name} is not for a person to set")
    plain = {name: v.strip() if isinstance(v, str) else v for name, v in fields.items()}
    plain.setdefault("language", None)
    for name in _CELLS:
        if name in plain:
            plain[name] = _cell(plain[name], f"{where}: {name}")
    return _checked({**plain, "origin": origin.value}, where)


def read_yaml(path: Path) -> tuple[Lesson, ...]:
    """Return the lessons of a YAML file that a user wrote: one, or a list of them.

    Raises:
        InvalidArgumentError: as `lesson_from_fields`, or it cannot be read.
    """
    try:
        content = read_plain_yaml(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, PlainYamlError) as error:
        raise _invalid(str(path), f"not valid YAML: {error}") from error
    entries = content if isinstance(content, list) else [content]
    lessons = []
    for number, entry in enumerate(entries, start=1):
        where = f"{path}, entry {number}"
        if not isinstance(entry, dict):
            raise _invalid(where, "expected fields of a lesson")
        lessons.append(lesson_from_fields(entry, origin=LessonOrigin.USER, where=where))
    return tuple(lessons)


def write_lines(path: Path, lessons: Iterable[Lesson]) -> int:
    """Write lessons with their statistics, one a line; return how many.

    Raises:
        InvalidArgumentError: the file cannot be written.
    """
    lines = [to_json(replace(lesson, id=0)) + "\n" for lesson in lessons]
    try:
        path.write_text("".join(lines), "utf-8")
    except OSError as error:
        raise _invalid(str(path), f"cannot be written: {error}") from error
    return len(lines)


def read_lines(path: Path) -> Iterator[Lesson]:
    """Yield the lessons that `write_lines` wrote.

    Raises:
        InvalidArgumentError: the file cannot be read, or a line is no lesson; it names the line.
    """
    for number, line in enumerate(_lines(path), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                lesson = from_json(Lesson, line)
            except PlainError as error:
                raise _invalid(where, str(error)) from error
            yield _accepted(lesson, where)


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8") as file:
            while line := file.readline(_LONGEST_LINE + 1):
                if len(line) > _LONGEST_LINE:
                    raise _invalid(str(path), f"a line of more than {_LONGEST_LINE} characters")
                yield line
    except (OSError, UnicodeDecodeError) as error:
        raise _invalid(str(path), f"cannot be read: {error}") from error


def _checked(plain: Mapping[str, Any], where: str) -> Lesson:
    try:
        lesson = from_plain(Lesson, dict(plain))
    except PlainError as error:
        raise _invalid(where, str(error)) from error
    return _accepted(lesson, where)


def _accepted(lesson: Lesson, where: str) -> Lesson:
    fault = lesson_fault(lesson)
    if fault:
        raise _invalid(where, fault)
    return lesson


def _cell(levels: Any, where: str) -> Any:
    if levels is None:
        return None
    if not isinstance(levels, list) or len(levels) != len(DIMENSIONS):
        raise _invalid(
            where, f"expected three levels [{', '.join(DIMENSIONS)}], got {shown(levels)}"
        )
    return dict(zip(DIMENSIONS, levels, strict=True))


def _invalid(where: str, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{where}: {what}", field=where)

"""Device code in less room: whole functions are left out, never the middle of one.

What is not shown of code that is to be edited stays as it is. Functions that a finding points at
are left out last.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from generator_svc.markdown import clip
from kernel_foundry.plan.source_text import (
    blank_directives,
    matching,
    strip_comments_and_literals,
)


@dataclass(frozen=True, slots=True)
class _Function:
    """A function from the line of its opening brace to the line of its closing one."""

    start: int
    """Offset behind the opening brace."""
    end: int
    """Offset of the closing brace."""
    first_line: int
    last_line: int


def shortened_code(
    code: str,
    max_chars: int,
    meant_lines: frozenset[int] = frozenset(),
    *,
    is_edited: bool = True,
) -> str:
    """Return `code` with bodies of functions left out until it has `max_chars` at most.

    Args:
        code: Device code.
        max_chars: Room; where heads of functions alone exceed it, lines are cut after all.
        meant_lines: 1-based lines whose functions are left out last.
        is_edited: Whether a reply may be edits of it; else it is to be read alone.
    """
    bodies = sorted(
        _functions(code),
        key=lambda body: (
            any(body.first_line <= line <= body.last_line for line in meant_lines),
            body.start - body.end,
        ),
    )
    left_out: list[_Function] = []
    length = len(code)
    for body in bodies:
        if length <= max_chars:
            break
        saved = body.end - body.start - len(_note(body, is_edited))
        if saved > 0:
            left_out.append(body)
            length -= saved
    return clip(_without(code, left_out, is_edited), max_chars)


def _note(body: _Function, is_edited: bool) -> str:
    stay = " and stay as they are" if is_edited else ""
    return f" /* {body.last_line - body.first_line} lines are left out here{stay} */ "


def _without(code: str, bodies: list[_Function], is_edited: bool) -> str:
    parts: list[str] = []
    position = 0
    for body in sorted(bodies, key=lambda body: body.start):
        parts += (code[position : body.start], _note(body, is_edited))
        position = body.end
    return "".join((*parts, code[position:]))


def _functions(code: str) -> Iterator[_Function]:
    """Iterate over the outermost braces that follow a parameter list, also within namespaces."""
    # Each character is looked at a few times, however many functions or namespaces there are.
    bare = blank_directives(strip_comments_and_literals(code))
    position = 0
    line, counted = 1, 0
    while (start := bare.find("{", position)) >= 0:
        marks = (bare.rfind(mark, position, start) for mark in ";{}")
        head = bare[max(position, *(mark + 1 for mark in marks)) : start]
        is_function = "(" in head and "=" not in head.partition("(")[0]
        if not is_function and not {"namespace", "extern"}.isdisjoint(head.split()):
            position = start + 1
            continue
        end = matching(bare, start)
        if end < 0:
            return
        position = end
        if is_function:
            first_line = line + code.count("\n", counted, start)
            line, counted = first_line + code.count("\n", start, end - 1), end - 1
            yield _Function(start + 1, end - 1, first_line, line)

"""Device code in less room: whole functions are left out, never the middle of one.

What is shown can be edited, and what is not shown stays as it is. Functions that a finding points
at stay to the last. Knows nothing of prompts.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from generator_svc.prompting.text import clip
from kernel_foundry.plan.source_text import (
    blank_directives,
    line_of,
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


def shortened_code(code: str, max_chars: int, meant_lines: frozenset[int] = frozenset()) -> str:
    """Return `code` with bodies of functions left out until it has `max_chars` at most.

    Args:
        code: Device code.
        max_chars: Room; where heads of functions alone exceed it, lines are cut after all.
        meant_lines: 1-based lines whose functions are left out last.
    """
    bodies = sorted(
        _functions(code),
        key=lambda body: (
            any(body.first_line <= line <= body.last_line for line in meant_lines),
            body.start - body.end,
        ),
    )
    left_out: list[_Function] = []
    shown = code
    for body in bodies:
        if len(shown) <= max_chars:
            break
        left_out.append(body)
        shown = _without(code, left_out)
    return clip(shown, max_chars)


def _without(code: str, bodies: list[_Function]) -> str:
    parts: list[str] = []
    position = 0
    for body in sorted(bodies, key=lambda body: body.start):
        count = body.last_line - body.first_line
        parts += (
            code[position : body.start],
            f" /* {count} lines are left out here and stay as they are */ ",
        )
        position = body.end
    return "".join((*parts, code[position:]))


def _functions(code: str) -> Iterator[_Function]:
    """Iterate over the outermost braces that follow a parameter list, also within namespaces."""
    bare = blank_directives(strip_comments_and_literals(code))
    position = 0
    while (start := bare.find("{", position)) >= 0:
        end = matching(bare, start)
        if end < 0:
            return
        head = bare[max(bare.rfind(mark, 0, start) for mark in ";{}") + 1 : start]
        if "(" in head and "=" not in head.partition("(")[0]:
            yield _Function(start + 1, end - 1, line_of(code, start), line_of(code, end - 1))
            position = end
        elif not {"namespace", "extern"}.isdisjoint(head.split()):
            position = start + 1
        else:
            position = end

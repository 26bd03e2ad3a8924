"""Device code as a compiler's first phases see it: lines joined, comments and literals kept apart.

Stricter than what plans need: a difference between this reading and the compiler's would let an
`#include` hide, so lone carriage returns end lines and numbers are the preprocessor's. Raw strings
are found, not read.
"""

import bisect
import re
from dataclasses import dataclass
from typing import Final

_LEXEME: Final = re.compile(
    r"""
      (?P<comment>  //[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<raw>      (?:u8|[uUL])?R" )
    | (?P<word>     [^\W\d]\w* | \.?\d(?:'\w|[eEpP][+-]|[\w.])* )
    | (?P<literal>  "(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z) | '(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z) )
    """,
    re.DOTALL | re.VERBOSE,
)
_SPLICE: Final = re.compile(r"\\\n")
_VISIBLE: Final = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """Source after lines were joined; `plain` and `bare` have the same length."""

    joined: str
    plain: str
    """Comments are blanks."""
    bare: str
    """Comments and literals are blanks."""
    raw_string: int
    """Where the first raw string starts; -1: there is none."""
    splices: tuple[tuple[int, int], ...]
    """Offset after each joint, and its line in the source."""
    comments: tuple[tuple[int, str], ...] = ()
    """Offset and text of each."""
    literals: tuple[tuple[int, str], ...] = ()
    """Offset and text of each, quotes included."""

    def line(self, offset: int) -> int:
        """Return the 1-based line in the source of an offset in the joined text."""
        index = bisect.bisect_right(self.splices, offset, key=lambda s: s[0]) - 1
        start, line = self.splices[index]
        return line + self.joined.count("\n", start, offset)


def read(code: str) -> SourceText:
    """Return `code` as the compiler's first phases leave it."""
    joined, splices = _join(code.replace("\r\n", "\n").replace("\r", "\n"))
    raw = -1
    comments: list[tuple[int, str]] = []
    literals: list[tuple[int, str]] = []
    for match in _LEXEME.finditer(joined):
        if match["comment"] is not None:
            comments.append((match.start(), match[0]))
        elif match["literal"] is not None:
            literals.append((match.start(), match[0]))
        elif match["raw"] is not None and raw < 0:
            raw = match.start()
    plain = _without(joined, comments)
    return SourceText(
        joined=joined,
        plain=plain,
        bare=_without(plain, literals),
        raw_string=raw,
        splices=splices,
        comments=tuple(comments),
        literals=tuple(literals),
    )


def _without(text: str, pieces: list[tuple[int, str]]) -> str:
    """Return `text` with the pieces turned into blanks."""
    parts: list[str] = []
    position = 0
    for start, piece in pieces:
        parts += (text[position:start], _VISIBLE.sub(" ", piece))
        position = start + len(piece)
    return "".join((*parts, text[position:]))


def _join(code: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    parts: list[str] = []
    splices = [(0, 1)]
    offset, position, line = 0, 0, 1
    for match in _SPLICE.finditer(code):
        part = code[position : match.start()]
        parts.append(part)
        offset += len(part)
        line += part.count("\n") + 1
        splices.append((offset, line))
        position = match.end()
    return "".join((*parts, code[position:])), tuple(splices)

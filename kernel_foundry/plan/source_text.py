"""Looks at C++ text without being fooled by comments and strings.

Line and column of everything that stays are kept.
"""

from __future__ import annotations

import re
from typing import Final

_LEXEME: Final = re.compile(
    r"""
      (?P<comment> //(?:\\\r?\n|[^\n])* | /\*.*?(?:\*/|\Z) )
    | (?P<raw>     \b(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z) )
    | (?P<string>  "(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z) )
    | (?P<number>  \b\d(?:'?[\w.])* )
    | (?P<char>    '(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z) )
    """,
    re.DOTALL | re.VERBOSE,
)
_VISIBLE: Final = re.compile(r"[^\n]")


def strip_comments(code: str) -> str:
    """Return `code` with every comment turned into blanks; lines and columns are kept."""
    return _LEXEME.sub(
        lambda match: _blank(match[0]) if match["comment"] is not None else match[0], code
    )


def strip_comments_and_literals(code: str) -> str:
    """Return `code` with comments and the insides of strings turned into blanks.

    The quotes stay, so that `extern "C"` is seen as `extern " "`.
    """

    def replace(match: re.Match[str]) -> str:
        text = match[0]
        if match["number"] is not None:
            return text
        if match["comment"] is not None:
            return _blank(text)
        return text[0] + _blank(text[1:-1]) + text[-1] if len(text) > 1 else text

    return _LEXEME.sub(replace, code)


def blank_directives(code: str) -> str:
    """Return comment-free `code` with preprocessor lines turned into blanks."""
    return re.sub(
        r"^[ \t]*#(?:[^\n]*\\\r?\n)*[^\n]*", lambda match: _blank(match[0]), code, flags=re.M
    )


def lines_inside_lexeme(code: str) -> frozenset[int]:
    """Return how many lines stand before each line break that lies in a comment or a string."""
    found: set[int] = set()
    line = 1
    position = 0
    for match in _LEXEME.finditer(code):
        line += code.count("\n", position, match.start())
        breaks = match[0].count("\n")
        found.update(range(line, line + breaks))
        line += breaks
        position = match.end()
    return frozenset(found)


def line_of(code: str, offset: int) -> int:
    """Return the 1-based line of a position."""
    return code.count("\n", 0, offset) + 1


def matching(code: str, start: int) -> int:
    """Return the position after the bracket that closes the one at `start`; -1 if none does."""
    pairs = {"(": ")", "[": "]", "{": "}", "<": ">"}
    opening, closing = code[start], pairs[code[start]]
    depth = 0
    for position in range(start, len(code)):
        if code[position] == opening:
            depth += 1
        elif code[position] == closing:
            depth -= 1
            if depth == 0:
                return position + 1
    return -1


def _blank(text: str) -> str:
    return _VISIBLE.sub(" ", text)

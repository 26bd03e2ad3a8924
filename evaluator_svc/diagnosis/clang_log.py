"""Reads Clang's diagnostics, as the SYCL compiler writes them.

The compiler's own file names and line numbers count the prelude; the numbers in its quoted lines
are the candidate's.
"""

import re
from collections.abc import Iterator
from typing import Final

from evaluator_svc.diagnosis.diagnostic import MAX_LINES, MAX_TEXT, Diagnostic, same_words

_DIAGNOSTIC: Final = re.compile(
    r"^\s*(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?P<column>\d+): "
    r"(?P<level>fatal error|error|warning): (?P<text>.*)$"
)
_QUOTED: Final = re.compile(r"^\s*(?P<line>\d{1,7}) \| ?(?P<text>.*)$")
_CARET: Final = re.compile(r"^\s*\| *[~ ]*\^")
_OWN_FILE: Final = re.compile(r"(?:rtc_\d+\.cpp|candidate\.(?:sycl|cu))")


def clang_diagnostics(log: str, source: list[str]) -> Iterator[Diagnostic]:
    """Iterate over what Clang says in a log; `source` are the candidate's lines."""
    lines = log.split("\n")[:MAX_LINES]
    starts = [(i, m) for i, line in enumerate(lines) if (m := _DIAGNOSTIC.match(line))]
    for index, (start, match) in enumerate(starts):
        end = starts[index + 1][0] if index + 1 < len(starts) else len(lines)
        is_own = _OWN_FILE.fullmatch(match["file"]) is not None
        # A library header's words help; those about any other file are nobody's business.
        if not is_own and "/include/" not in match["file"]:
            continue
        line = _candidate_line(lines[start + 1 : end], source) if is_own else None
        is_warning = match["level"] == "warning"
        yield Diagnostic(is_warning=is_warning, text=match["text"][:MAX_TEXT], line=line)


def _candidate_line(snippet: list[str], source: list[str]) -> int | None:
    quoted: tuple[int, str] | None = None
    for text in snippet:
        match = _QUOTED.match(text)
        if match:
            quoted = (int(match["line"]), match["text"])
        elif quoted is not None and _CARET.match(text):
            number, words = quoted
            is_there = 1 <= number <= len(source) and same_words(words, source[number - 1])
            return number if is_there else None
    return None

"""Reads the diagnostics of NVRTC and of its assembler.

Line numbers are the candidate's own, since `#line` gives its text a name of its own.
"""

import re
from collections.abc import Iterator
from typing import Final

from evaluator_svc.diagnosis.diagnostic import MAX_LINES, MAX_TEXT, Diagnostic, same_words
from kernel_foundry.languages.cuda import CUDA

_DIAGNOSTIC: Final = re.compile(
    r"^(?P<file>[^\s()][^()\n]*)\((?P<line>\d{1,7})\): "
    r"(?P<level>(?:catastrophic |internal )?error|warning|note|remark)(?: #[\w-]+)?: (?P<text>.*)$"
)
_ASSEMBLER: Final = re.compile(
    r"^\s*(?:ptxas|nvrtc|nvJitLink):?\s+(?P<input>[\w .]*?ptx input, line \d+;\s*)?"
    r"(?:error|fatal)\s*:\s*(?P<text>.*)$"
)
_ABORTED: Final = "Ptx assembly aborted"
_FROM: Final = re.compile(r"\bat line (\d{1,7}) of \S*?([^/\s]+)$")
_OWN_FILE: Final = CUDA.source_file
_MAX_SNIPPET: Final = 40


def nvrtc_diagnostics(log: str, source: list[str]) -> Iterator[Diagnostic]:
    """Iterate over what NVRTC says in a log; `source` are the candidate's lines."""
    lines = log.split("\n")[:MAX_LINES]
    starts = [(i, m) for i, line in enumerate(lines) if (m := _DIAGNOSTIC.match(line))]
    for index, (start, match) in enumerate(starts):
        end = starts[index + 1][0] if index + 1 < len(starts) else len(lines)
        snippet = lines[start + 1 : min(end, start + 1 + _MAX_SNIPPET)]
        if match["level"] not in ("note", "remark"):
            yield from _diagnostic(match, snippet, source)
    yield from _of_assembler(lines)


def _diagnostic(
    match: re.Match[str], snippet: list[str], source: list[str]
) -> Iterator[Diagnostic]:
    name = match["file"].rpartition("/")[2]
    if name == _OWN_FILE:
        line = _believed(int(match["line"]), snippet, source)
        text = match["text"] + _continued(snippet)
    elif "/include/" in match["file"]:
        # A library header's words help; those about any other file are nobody's business.
        line, text = _instantiated_at(snippet, source), match["text"]
    else:
        return
    is_warning = match["level"] == "warning"
    yield Diagnostic(is_warning=is_warning, text=text[:MAX_TEXT], line=line)


def _believed(line: int, snippet: list[str], source: list[str]) -> int | None:
    if not 1 <= line <= len(source):
        return None
    return line if any(same_words(words, source[line - 1]) for words in snippet) else None


def _continued(snippet: list[str]) -> str:
    """Return what the compiler adds on lines of their own, such as the types of arguments."""
    first = snippet[0].strip() if snippet else ""
    is_more = first.startswith(("argument types are:", "because", "object type is:"))
    return f" ({first})" if is_more else ""


def _instantiated_at(snippet: list[str], source: list[str]) -> int | None:
    """Return the candidate's line that made the compiler look at a header's template."""
    for text in snippet:
        match = _FROM.search(text.rstrip())
        if match and match[2] == _OWN_FILE and 1 <= int(match[1]) <= len(source):
            return int(match[1])
    return None


def _of_assembler(lines: list[str]) -> Iterator[Diagnostic]:
    for line in lines:
        match = _ASSEMBLER.match(line)
        if match is None or match["text"].startswith(_ABORTED):
            continue
        # The compiler's own assembly has no errors: it is the candidate's, put in line.
        text = f"inline assembly: {match['text']}" if match["input"] else match["text"]
        yield Diagnostic(is_warning=False, text=text[:MAX_TEXT], line=None)

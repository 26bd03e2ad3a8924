"""Reads Clang's diagnostics: what is wrong, at which line of the candidate, and what to try.

The compiler's own file names and line numbers count the prelude; the numbers in its quoted lines
are the candidate's. A line is believed, and quoted, only when the candidate has it there, so that
nothing of any other file reaches a finding.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kernel_foundry.domain.finding import Finding, FindingKind, Severity

_DIAGNOSTIC: Final = re.compile(
    r"^\s*(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?P<column>\d+): "
    r"(?P<level>fatal error|error|warning): (?P<text>.*)$"
)
_QUOTED: Final = re.compile(r"^\s*(?P<line>\d+) \| ?(?P<text>.*)$")
_CARET: Final = re.compile(r"^\s*\| *[~ ]*\^")
_OWN_FILE: Final = re.compile(r"(?:rtc_\d+\.cpp|candidate\.(?:sycl|cu))")
_MAX_FINDINGS: Final = 10
_MAX_LINES: Final = 20_000
_MAX_TEXT: Final = 300

_HINTS: Final = (
    (
        re.compile(r"use of undeclared identifier '[A-Z][A-Z0-9_]+'"),
        "a constant of the plan must stand in TUNE or CONST to be a macro here",
    ),
    (
        re.compile(r"use of undeclared identifier|no member named .* in namespace"),
        "check the spelling and the namespace: sycl::, syclext:: (ext::oneapi), syclexp:: (its "
        "experimental part)",
    ),
    (
        re.compile(
            r"no matching function for call to '(?:reduce|inclusive_scan|exclusive_scan)_over"
        ),
        "group functions take the group first and a typed operation last: "
        "reduce_over_group(sg, x, sycl::plus<float>())",
    ),
    (
        re.compile(r"no matching (?:member )?function"),
        "compare number and types of the arguments with what the function takes",
    ),
    (re.compile(r"ambiguous"), "make both operands the same type: 1.0f, not 1 or 1.0"),
    (
        re.compile(r"static assertion failed|static_assert"),
        "this configuration is not meant: exclude it with WHERE",
    ),
    (
        re.compile(r"cannot call through a function pointer|function pointer"),
        "call functions by name, or pass a lambda to a template",
    ),
    (
        re.compile(r"cannot call .* recursive|recursive function"),
        "unroll the recursion into a loop",
    ),
    (
        re.compile(r"recursive template instantiation|template instantiation depth"),
        "end the recursion of the template, or use a loop in a constexpr function",
    ),
    (
        re.compile(r"zero-length array|variable length array|variable-length"),
        "array sizes must be compile-time constants: TUNE or CONST in the plan",
    ),
    (
        re.compile(r"no kernel called|undefined kernel"),
        'a kernel is an extern "C" void function with '
        "SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<N>))",
    ),
    (
        re.compile(r"expected ';'|expected '\)'|expected expression|expected unqualified-id"),
        "the line or the one before it is not complete",
    ),
)

_NO_DETAILS: Final = "the compiler failed and named no line"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Diagnostic:
    level: str
    text: str
    line: int | None
    """In the candidate's own numbering."""


def compile_findings(log: str, device_code: str) -> tuple[Finding, ...]:
    """Return what the compiler had to say, errors first, each thing once.

    Args:
        log: The compiler's diagnostics.
        device_code: The candidate's source as written.
    """
    source = device_code.split("\n")
    found = dict.fromkeys(_diagnostics(log, source))  # repeats dropped, order kept
    errors = [d for d in found if d.level != "warning"]
    warnings = [d for d in found if d.level == "warning" and d.line is not None]
    findings = tuple(_finding(d, source) for d in (*errors, *warnings)[:_MAX_FINDINGS])
    if errors or not log.strip():
        return findings
    return (_unlocated(log), *findings)


def _diagnostics(log: str, source: list[str]) -> Iterator[_Diagnostic]:
    lines = log.split("\n")[:_MAX_LINES]
    starts = [(i, m) for i, line in enumerate(lines) if (m := _DIAGNOSTIC.match(line))]
    for index, (start, match) in enumerate(starts):
        end = starts[index + 1][0] if index + 1 < len(starts) else len(lines)
        is_own = _OWN_FILE.fullmatch(match["file"]) is not None
        # A library header's words help; those about any other file are nobody's business.
        if not is_own and "/include/" not in match["file"]:
            continue
        line = _candidate_line(lines[start + 1 : end], source) if is_own else None
        yield _Diagnostic(level=match["level"], text=match["text"][:_MAX_TEXT], line=line)


def _candidate_line(snippet: list[str], source: list[str]) -> int | None:
    """Return the line that the caret stands under, if the candidate has that very line there."""
    quoted: tuple[int, str] | None = None
    for text in snippet:
        match = _QUOTED.match(text)
        if match:
            quoted = (int(match["line"]), match["text"])
        elif quoted is not None and _CARET.match(text):
            number, words = quoted
            is_there = 1 <= number <= len(source) and _same(words, source[number - 1])
            return number if is_there else None
    return None


def _same(quoted: str, own: str) -> bool:
    """Return whether two lines have the same words: the compiler expands tabs, and may cut."""
    a, b = "".join(quoted.split()), "".join(own.split())
    return bool(a) and (a == b or (a.removeprefix("...").removesuffix("...") in b and "..." in a))


def _finding(diagnostic: _Diagnostic, source: list[str]) -> Finding:
    is_warning = diagnostic.level == "warning"
    message = diagnostic.text
    if diagnostic.line is not None:
        message += f"\n    {source[diagnostic.line - 1].strip()[:_MAX_TEXT]}"
    return Finding(
        kind=FindingKind.COMPILE_WARNING if is_warning else FindingKind.COMPILE_ERROR,
        severity=Severity.WARNING if is_warning else Severity.ERROR,
        message=message,
        line=diagnostic.line,
        hint=next((hint for pattern, hint in _HINTS if pattern.search(diagnostic.text)), ""),
    )


def _unlocated(log: str) -> Finding:
    """Return the finding of a log without diagnostics, such as a kernel that is not there."""
    first = log.strip().split("\n", 1)[0].strip()
    # One line that is no diagnostic is our own or the runtime's, and quotes no file.
    message = first[:_MAX_TEXT] if "\n" not in log.strip() else _NO_DETAILS
    hint = next((hint for pattern, hint in _HINTS if pattern.search(message)), "")
    return Finding(
        kind=FindingKind.COMPILE_ERROR, severity=Severity.ERROR, message=message, hint=hint
    )

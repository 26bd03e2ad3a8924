"""Diagnostics from a compiler's log: which line of the candidate, and what to try.

A line is believed, and quoted, only when the candidate has it there, so that nothing of any other
file reaches a finding.
"""

import re
from itertools import chain
from typing import Final

from evaluator_svc.diagnosis.clang_log import clang_diagnostics
from evaluator_svc.diagnosis.compiler_hints import hint_for
from evaluator_svc.diagnosis.diagnostic import MAX_TEXT, Diagnostic
from evaluator_svc.diagnosis.nvrtc_log import nvrtc_diagnostics
from kernel_foundry.domain.finding import Finding, FindingKind, Severity

_STATIC_ASSERTION: Final = re.compile(r"static.?assert(ion)?[ _]failed", re.IGNORECASE)
_MAX_FINDINGS: Final = 10
_NO_DETAILS: Final = "the compiler failed and named no line"


def compile_findings(log: str, device_code: str) -> tuple[Finding, ...]:
    """Return the compiler's diagnostics as findings, errors first, each once.

    Args:
        log: Diagnostics of a build that failed.
        device_code: The candidate's source as written.
    """
    log = log.replace("\0", "\n")  # as NVRTC parts its assembler's report from its errors
    source = device_code.split("\n")
    said = chain(clang_diagnostics(log, source), nvrtc_diagnostics(log, source))
    found = dict.fromkeys(said)  # repeats dropped, order kept
    errors = [d for d in found if not d.is_warning]
    warnings = [d for d in found if d.is_warning and d.line is not None]
    findings = tuple(_finding(d, source) for d in (*errors, *warnings)[:_MAX_FINDINGS])
    if errors or not log.strip():
        return findings
    return (_unlocated(log), *findings)


def fails_static_assertion(log: str) -> bool:
    """Return whether a failed build says, as Clang and NVRTC do, that a `static_assert` failed."""
    return _STATIC_ASSERTION.search(log) is not None


def _finding(diagnostic: Diagnostic, source: list[str]) -> Finding:
    is_warning = diagnostic.is_warning
    message = diagnostic.text
    if diagnostic.line is not None:
        message += f"\n    {source[diagnostic.line - 1].strip()[:MAX_TEXT]}"
    return Finding(
        kind=FindingKind.COMPILE_WARNING if is_warning else FindingKind.COMPILE_ERROR,
        severity=Severity.WARNING if is_warning else Severity.ERROR,
        message=message,
        line=diagnostic.line,
        hint=hint_for(diagnostic.text),
    )


def _unlocated(log: str) -> Finding:
    """Return the finding of a log without diagnostics, such as a kernel that is not there."""
    first = log.strip().split("\n", 1)[0].strip()
    # One line that is no diagnostic is our own or the runtime's, and quotes no file.
    message = first[:MAX_TEXT] if "\n" not in log.strip() else _NO_DETAILS
    return Finding(
        kind=FindingKind.COMPILE_ERROR,
        severity=Severity.ERROR,
        message=message,
        hint=hint_for(message),
    )

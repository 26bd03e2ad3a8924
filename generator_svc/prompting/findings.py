"""Findings as prompts print them: grouped by kind, with the lines of source that they point at.

What to do about a kind is in `prompts/repair/`.
"""

from dataclasses import dataclass
from typing import Final

from generator_svc.held_out import HeldOut
from generator_svc.markdown import clip, one_item
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.finding import (
    OF_THE_MOMENT,
    Finding,
    FindingKind,
    Severity,
    errors_first,
)

MAX_FINDINGS: Final = 12
MAX_FINDING_CHARS: Final = 1_200
MAX_FINDINGS_CHARS: Final = 6_000
"""Limit for all errors together."""
MAX_EXCERPTS: Final = 6
"""Pieces of source beside findings; the first errors matter, the rest often follows from them."""
_LINES_AROUND: Final = 3
_MAX_LINE_CHARS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingView:
    """One finding."""

    severity: str
    text: str
    excerpt: str = ""
    """Numbered lines of the source, the one meant marked; empty when it points at none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All findings of one kind that a failure is put down to."""

    kind: str
    """`FindingKind` as text; the template of this name says what it comes from."""
    findings: tuple[FindingView, ...]


def finding_views(
    source: KernelSource, evaluation: Evaluation, held_out: HeldOut
) -> tuple[FindingView, ...]:
    """Return the findings, errors first, each with the line of source that it points at."""
    return tuple(
        _view(finding, line_text=_line_text(source, finding))
        for finding in _told(evaluation, held_out)
    )


def diagnoses(
    source: KernelSource, evaluation: Evaluation, held_out: HeldOut
) -> tuple[Diagnosis, ...]:
    """Return the diagnosis of a failure: its errors by kind, the first one first.

    A failure without errors is put down to its outcome alone.
    """
    found = [f for f in _told(evaluation, held_out) if f.severity is Severity.ERROR]
    if not found:
        return (Diagnosis(kind=evaluation.outcome.value, findings=()),)
    room = min(MAX_FINDING_CHARS, MAX_FINDINGS_CHARS // len(found))
    groups: dict[FindingKind, list[FindingView]] = {}
    excerpts: set[str] = set()
    for finding in found:
        excerpt = _excerpt(source, finding) if len(excerpts) < MAX_EXCERPTS else ""
        # Two errors of one line share the excerpt.
        view = _view(finding, room, excerpt="" if excerpt in excerpts else excerpt)
        excerpts |= {excerpt} - {""}
        groups.setdefault(finding.kind, []).append(view)
    return tuple(
        Diagnosis(kind=kind.value, findings=tuple(views)) for kind, views in groups.items()
    )


def side_findings(evaluation: Evaluation, held_out: HeldOut) -> tuple[FindingView, ...]:
    """Return the other findings of a failure, beside its errors."""
    return tuple(_view(f) for f in _told(evaluation, held_out) if f.severity is not Severity.ERROR)


def _told(evaluation: Evaluation, held_out: HeldOut) -> tuple[Finding, ...]:
    about_it = [f for f in evaluation.findings if f.kind not in OF_THE_MOMENT]
    return held_out.redacted(errors_first(about_it)[:MAX_FINDINGS], evaluation)


def _view(
    finding: Finding,
    max_chars: int = MAX_FINDING_CHARS,
    *,
    excerpt: str = "",
    line_text: str = "",
) -> FindingView:
    # An excerpt shows the line that a compiler's message quotes.
    message = finding.message.partition("\n")[0] if excerpt else finding.message
    quoted = f": `{line_text}`" if line_text else ""
    where = f" (line {finding.line}{quoted})" if finding.line is not None else ""
    numbers = ", ".join(f"{e.name} = {e.value:.6g}" for e in finding.evidence)
    text = f"{finding.kind.value}{where}: {message}"
    text += f" [{numbers}]" if numbers else ""
    text += f" Hint: {finding.hint}" if finding.hint else ""
    return FindingView(
        severity=finding.severity.value, text=clip(one_item(text), max_chars), excerpt=excerpt
    )


def _lines(source: KernelSource, finding: Finding) -> list[str]:
    """Return the lines of the text that `finding.line` counts."""
    text = source.plan if finding.kind is FindingKind.PLAN else source.device_code
    return text.splitlines()


def _line_text(source: KernelSource, finding: Finding) -> str:
    lines = _lines(source, finding)
    if finding.line is None or not 1 <= finding.line <= len(lines):
        return ""
    return lines[finding.line - 1].strip().replace("`", "'")[:_MAX_LINE_CHARS]


def _excerpt(source: KernelSource, finding: Finding) -> str:
    lines = _lines(source, finding)
    if finding.line is None or not 1 <= finding.line <= len(lines):
        return ""
    first = max(1, finding.line - _LINES_AROUND)
    last = min(len(lines), finding.line + _LINES_AROUND)
    width = len(str(last))
    return "\n".join(
        f"{'>' if number == finding.line else ' '} {number:{width}} | "
        f"{lines[number - 1][:_MAX_LINE_CHARS]}".rstrip()
        for number in range(first, last + 1)
    )

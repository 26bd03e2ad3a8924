"""Records: what became of proposals made under a prompt, as far as an editor may see it.

Names and sizes of held-out workloads are taken out here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from generator_svc.held_out import HeldOut, held_out_of
from kernel_foundry.domain.candidate import KernelSource, Operator
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding, Severity
from kernel_foundry.domain.request import ProposalOutcome, ProposalRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRecord:
    """One judged proposal."""

    prompt: int
    """Id of the guidance that its prompt showed."""
    operator: Operator
    outcome: EvaluationOutcome
    gain: float
    """As credited: fitness won over the parent, 0 when worse or failed."""
    findings: tuple[Finding, ...]
    source: KernelSource
    held_out: HeldOut
    """Names and sizes that guidance must not reveal."""


def prompt_record(
    prompt: int, request: ProposalRequest, outcome: ProposalOutcome, *, gain: float
) -> PromptRecord:
    """Return the record of a proposal that was evaluated."""
    held_out = held_out_of(request.task, request.admission)
    evaluation = outcome.evaluation
    return PromptRecord(
        prompt=prompt,
        operator=outcome.candidate.operator,
        outcome=evaluation.outcome,
        gain=gain,
        findings=held_out.redacted(evaluation.findings, evaluation),
        source=outcome.candidate.source,
        held_out=held_out,
    )


def best(records: Sequence[PromptRecord]) -> PromptRecord | None:
    """Return the record with the greatest gain; None when nothing was gained."""
    gained = [r for r in records if r.gain > 0.0]
    return max(gained, key=lambda r: r.gain) if gained else None


def typical_failures(records: Sequence[PromptRecord], limit: int) -> tuple[PromptRecord, ...]:
    """Return the newest failure of each of the commonest kinds, the commonest first."""
    groups: dict[str, list[PromptRecord]] = {}
    for record in records:
        if record.outcome is not EvaluationOutcome.PASSED:
            groups.setdefault(failure_kind(record), []).append(record)
    commonest = sorted(groups.values(), key=len, reverse=True)
    return tuple(group[-1] for group in commonest[:limit])


def failure_kind(record: PromptRecord) -> str:
    """Return the kind of a failure: that of its first error, else its outcome."""
    errors = [f for f in record.findings if f.severity is Severity.ERROR]
    return errors[0].kind.value if errors else record.outcome.value

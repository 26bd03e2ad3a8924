"""A reply becomes a source, and a source a proposal: the same for a model's and a replayed one."""

from generator_svc.effective_operator import effective_operator
from generator_svc.replies.extraction import extract
from kernel_foundry.domain.archive import Elite, Selection
from kernel_foundry.domain.candidate import Candidate, KernelSource, Operator
from kernel_foundry.domain.exchange import ChatMessage, FinishReason, prompt_digest
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import Proposal, TokenUsage
from kernel_foundry.plan.used_trick import used_trick


def source_of(
    selection: Selection, language: Language, text: str, finish: FinishReason
) -> tuple[KernelSource | None, str]:
    """Return (source, "") or (None, why the reply to a selection holds none)."""
    if finish is FinishReason.REFUSED:
        return None, text
    is_edit = effective_operator(selection) is not Operator.COMBINE
    parent = selection.parent if is_edit else None
    extracted = extract(
        text,
        language=language,
        parent=parent.candidate.source if parent else None,
        is_cut=finish is FinishReason.LENGTH,
    )
    trick = used_trick(selection.banned_tricks, extracted.source) if extracted.source else ""
    if trick:
        return None, f"its code has {trick!r}, which the run's user does not allow"
    return extracted.source, extracted.failure


def proposal_of(
    selection: Selection,
    source: KernelSource,
    messages: tuple[ChatMessage, ...],
    usage: tuple[TokenUsage, ...],
) -> Proposal:
    """Return the proposal of `source`, which the last of `usage` wrote in answer to `messages`."""
    operator = effective_operator(selection)
    parents = _parents(selection, operator)
    candidate = Candidate(
        source=source,
        parents=tuple(p.candidate.digest for p in parents),
        operator=operator,
        generation=1 + max(p.candidate.generation for p in parents) if parents else 0,
        prompt_digest=prompt_digest(messages),
        model=usage[-1].model,
    )
    return Proposal(candidate=candidate, usage=usage)


def _parents(selection: Selection, operator: Operator) -> tuple[Elite, ...]:
    if selection.parent is None:
        return ()
    if operator is Operator.COMBINE:
        return (selection.parent, selection.inspirations[0])
    return (selection.parent,)

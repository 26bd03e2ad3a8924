"""The query by which an expert finds lessons for a request: its retrieval filter.

Lessons are found in `index.py` and ranked in `ranking.py`.
"""

from typing import Final

from generator_svc.experts.expert import GENERAL, Expert
from generator_svc.held_out import held_out_of
from kernel_foundry.domain.archive import Elite
from kernel_foundry.domain.finding import FindingKind, blamed
from kernel_foundry.domain.lesson import LessonQuery
from kernel_foundry.domain.request import ProposalRequest

_NO_OPERATORS: Final = ("placeholder", "output")
_OF_A_TIME: Final = (
    FindingKind.TRAFFIC_BOUND,
    FindingKind.ARITHMETIC_ESTIMATE,
    FindingKind.NOISY_TIMING,
)
"""Findings that only a timed kernel can have."""
_MAX_TEXT_CHARS: Final = 4_000
_MAX_CODE_CHARS: Final = 24_000


def lesson_query(request: ProposalRequest, expert: Expert) -> LessonQuery:
    """Return the query for lessons that would help with `request`.

    For a failed parent it asks for its errors, whichever expert repairs it. For a parent that
    passed it asks for those of its findings that are the expert's, or, without any, for all kinds
    of the expert. A first candidate has no times yet, so findings that need a time are left out.
    """
    selection, device = request.selection, request.admission.device
    parent = selection.parent
    is_repair = parent is not None and not parent.evaluation.passed
    return LessonQuery(
        language=device.language,
        findings=_kinds(parent, expert),
        text=_text(request),
        code=parent.candidate.source.device_code[:_MAX_CODE_CHARS] if parent else "",
        expert="" if is_repair or expert.role == GENERAL else expert.role,
        device=device.architecture,
        before=parent.measures if parent else None,
        target=None if is_repair else selection.target,
    )


def _kinds(parent: Elite | None, expert: Expert) -> tuple[FindingKind, ...]:
    if parent is None:
        return tuple(kind for kind in expert.finding_kinds if kind not in _OF_A_TIME)
    if not parent.evaluation.passed:
        return tuple(dict.fromkeys(finding.kind for finding in blamed(parent.evaluation.findings)))
    found = {finding.kind for finding in parent.evaluation.findings}
    own = tuple(kind for kind in expert.finding_kinds if kind in found)
    return own or expert.finding_kinds


def _text(request: ProposalRequest) -> str:
    """Return the words of the query: messages of findings, then the task's name and operators."""
    parent = request.selection.parent
    lines: list[str] = []
    if parent is not None:
        evaluation = parent.evaluation
        found = evaluation.findings if evaluation.passed else blamed(evaluation.findings)
        # The text may go to a provider of embeddings, which is to see no more than a writer.
        held_out = held_out_of(request.task, request.admission)
        lines += [finding.message for finding in held_out.redacted(found, evaluation)]
    lines.append(request.task.name.replace("_", " "))
    operators = (
        node.op.removeprefix("aten.").partition(".")[0]
        for workload in request.admission.workloads[:1]
        for node in workload.graph
        if node.op not in _NO_OPERATORS
    )
    lines += dict.fromkeys(operators)
    lines.append(request.selection.hint)
    return "\n".join(line for line in lines if line)[:_MAX_TEXT_CHARS]

"""What an expert asks the experience library for: its retrieval filter applied to a request.

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
"""What only a kernel that was timed can suffer from."""
_MAX_TEXT_CHARS: Final = 4_000
_MAX_CODE_CHARS: Final = 24_000


def lesson_query(request: ProposalRequest, expert: Expert) -> LessonQuery:
    """Return what lessons would help with `request`.

    A failed parent needs fixes for its own errors, whoever mends it. Of what a passed parent is
    found to suffer from, an expert asks for what is its own; without any for all its kinds. A first
    candidate has no times yet, so nobody asks what to do close to a limit.
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
    """Return words to search by: what was found, then what the task computes."""
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

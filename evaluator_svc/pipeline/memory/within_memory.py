"""One evaluation within its device's memory: what runs out of it is tried again, alone."""

from collections.abc import Callable
from typing import Final

from evaluator_svc.pipeline.memory.evaluation_memory import MemoryWish, MoreMemoryError
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.errors import DeviceMemoryError

_OF_THE_DEVICE: Final = (EvaluationOutcome.PLAN_ERROR, EvaluationOutcome.LAUNCH_ERROR)
"""Outcomes for want of device memory; a compiler's is of the host's."""


def within_memory(evaluate: Callable[[MemoryWish], Evaluation]) -> Evaluation:
    """Return the result of `evaluate`, whose last try has the device's memory to itself.

    Raises:
        DeviceMemoryError: that is too little even so.
    """
    try:
        evaluation = _with_own(evaluate)
    except (DeviceMemoryError, MoreMemoryError):
        # MoreMemoryError from the second attempt: its lease allowed every copy, and with every copy
        # the plan's own buffers take more than was leased for them.
        pass
    else:
        if not _is_short(evaluation):
            return evaluation
    return evaluate(MemoryWish(is_alone=True))


def _with_own(evaluate: Callable[[MemoryWish], Evaluation]) -> Evaluation:
    """Evaluate; once more where the plan's own memory was not free, with it leased beforehand."""
    try:
        return evaluate(MemoryWish())
    except MoreMemoryError as error:
        own_bytes = error.own_bytes
    return evaluate(MemoryWish(own_bytes=own_bytes))


def _is_short(evaluation: Evaluation) -> bool:
    return evaluation.outcome in _OF_THE_DEVICE and any(
        finding.kind is FindingKind.MEMORY_LIMIT for finding in evaluation.findings
    )

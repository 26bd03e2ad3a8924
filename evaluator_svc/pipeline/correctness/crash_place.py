"""What was running when a candidate's process died, as far as it is known from outside."""

import dataclasses
from collections.abc import Sequence
from typing import Final

from evaluator_svc.messages.draw import TensorSlot
from evaluator_svc.messages.locked import CandidateFailure
from kernel_foundry.domain.evaluation import EvaluationOutcome

_MOST_NAMED: Final = 12
"""Kernels, and tensors, in the text of a finding."""


def with_launches(
    failure: CandidateFailure,
    kernels: Sequence[str],
    tensors: Sequence[TensorSlot],
    *,
    shows_sizes: bool,
) -> CandidateFailure:
    """Return a crash whose first finding names kernels and tensors; other failures as they are.

    Args:
        failure: Of a run.
        kernels: Names of the kernels that the plan launches on the workload, in order.
        tensors: What the plan may pass to them.
        shows_sizes: False for a workload whose sizes models must not know.
    """
    if failure.outcome is not EvaluationOutcome.CRASHED or not kernels or not failure.findings:
        return failure
    named = [f"{t.name} {t.dtype} {t.shape}" if shows_sizes else t.name for t in tensors]
    first, *rest = failure.findings
    # Launches are queued, so the process itself could not tell which one it was.
    text = f"{first.message}. Kernels, in order: {_listed(kernels)}; tensors: {_listed(named)}"
    first = dataclasses.replace(first, message=text)
    return dataclasses.replace(failure, findings=(first, *rest))


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")

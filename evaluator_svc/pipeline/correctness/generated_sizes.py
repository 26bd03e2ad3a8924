"""Stage correctness on sizes that the task does not name: what a candidate makes of them.

A plan may say that it is not made for them (`require`), and its kernels may not compile or not
launch there: such a size is left out, which a check says. A kernel that runs there and gives wrong
results is wrong, for it does not say where it is right.
"""

import math
from collections.abc import Callable, Container, Sequence
from typing import Final

from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.pipeline.evaluation_draft import EvaluationDraft
from evaluator_svc.sizes.memory_needs import WorkloadSizes
from evaluator_svc.sizes.spare_use import is_spare_of_use
from kernel_foundry.domain.admission import NamedTensor, TensorRole, WorkloadAdmission
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome

_SMALL_BYTES: Final = 1 << 24
_LEAST_ELEMENTS: Final = 16
"""Errors of fewer are large or small by chance."""
_NOT_TAKEN: Final = (
    "the plan or its kernels do not take these sizes, or constants of the plan ask for more builds"
    " than a verdict makes"
)
_OWN_SIZES_ALONE: Final = (
    "no sizes but the task's own were tried: the candidate is known to be right for these alone"
)


def has_one_seed(workload: WorkloadAdmission) -> bool:
    """Return whether a generated workload is so large that one seed has to do."""
    set_bytes = WorkloadSizes.of(workload.tensors).set_bytes
    return workload.is_generated and set_bytes > _SMALL_BYTES


def is_audited(workload: WorkloadAdmission) -> bool:
    """Return whether a generated workload's outputs show how exactly they were computed.

    Where tolerances are wider a kernel may be inexact.
    """
    if workload.tolerance_factor > 1.0:
        return False
    outputs = (t for t in workload.tensors if t.role is TensorRole.OUTPUT)
    count = max((math.prod(output.shape) for output in outputs), default=0)
    return count >= _LEAST_ELEMENTS and not has_one_seed(workload)


class GeneratedTrials:
    """One candidate's trials on generated workloads.

    Args:
        workloads: The generated workloads, spare ones last: those are tried only if they show more
            than the others that were.
        draft: Takes the checks.
        bound: Names of the workloads that the plan was bound to.
        untried: What no workload tries, a sentence each.
        own: The task's own workloads.
    """

    def __init__(
        self,
        workloads: Sequence[WorkloadAdmission],
        draft: EvaluationDraft,
        bound: Container[str],
        untried: Sequence[str] = (),
        own: Sequence[WorkloadAdmission] = (),
    ) -> None:
        self._workloads = workloads
        self._draft = draft
        self._bound = bound
        self._untried = untried
        self._own = tuple(workload.tensors for workload in own)
        self.is_runner_lost = False
        """Whether a launch was refused, which ends a runner."""

    def run(
        self, try_one: Callable[[WorkloadAdmission], CandidateFailure | None]
    ) -> CandidateFailure | None:
        """Try the workloads one by one; return the first failure that is one."""
        for note in self._untried:
            self._add_skipped("", note)
        tried: list[Sequence[NamedTensor]] = []
        for workload in self._workloads:
            is_bound = workload.workload in self._bound
            is_of_use = is_spare_of_use(workload.tensors, tried, self._own)
            if workload.is_spare and not (is_bound and is_of_use):
                continue
            if self.is_runner_lost:
                self._add_skipped(workload.workload, "not tried: a launch was refused before")
            elif not is_bound:
                self._add_skipped(workload.workload, _NOT_TAKEN)
            else:
                failure = try_one(workload)
                if failure is not None and failure.outcome is EvaluationOutcome.LAUNCH_ERROR:
                    self.is_runner_lost = True
                    self._add_skipped(workload.workload, "the launch was refused at these sizes")
                elif failure is not None:
                    return failure
                elif not self._draft.has_silent_check(workload.workload):
                    tried.append(workload.tensors)
        if self._workloads and not tried:
            self._add_skipped("", _OWN_SIZES_ALONE)
        return None

    def _add_skipped(self, workload: str, note: str) -> None:
        check = Check(
            kind=CheckKind.COMPARISON,
            result=CheckResult.SKIPPED,
            workload=workload,
            note=note,
        )
        self._draft.add_checks((check,))

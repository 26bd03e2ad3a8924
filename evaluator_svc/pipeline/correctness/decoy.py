"""Checks that a plan's kernels do the work: with library calls, results may be right without them.

If the outputs stay right with copies in place of the kernels, the kernels did no work.
"""

from typing import Final

from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.runner import RunRequest, WithoutKernels
from evaluator_svc.pipeline.runner_calls import DrawnInputs
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.judge_client import JudgeClient
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity

_MOST_CHOICES: Final = 64
"""Beyond it a kernel takes more tensors that are alike than any honest one."""


def run_without_kernels(
    process: ChildProcess, judge: JudgeClient, drawn: DrawnInputs, *, seconds: float
) -> CandidateFailure | None:
    """Run the plan with copies for its launches; refuse it when the outputs are right all the same.

    They are poisoned again afterwards.
    """
    outputs = {slot.name for slot in drawn.draw.slots if slot.role == TensorRole.OUTPUT.value}
    right: set[str] = set()
    choice, choice_count = 0, 1
    while choice < min(choice_count, _MOST_CHOICES):
        answer = ask_candidate(
            process,
            RunRequest(draw=drawn.draw, without_kernels=True, choice=choice),
            WithoutKernels,
            seconds=seconds,
            doing=f"running the library calls on workload {drawn.draw.workload}",
            descriptors=drawn.descriptors,
        )
        if isinstance(answer, CandidateFailure):
            return answer
        right.update(judge.verify_decoy(drawn.draw.draw))
        if right >= outputs:
            return CandidateFailure(outcome=EvaluationOutcome.REJECTED, findings=(_finding(drawn),))
        choice, choice_count = choice + 1, answer.choice_count
    judge.poison(drawn.draw.draw)
    return None


def own_kernels_check(workload: str, failure: CandidateFailure | None) -> Check:
    """Return the check that outputs are wrong without the candidate's kernels."""
    return Check(
        kind=CheckKind.OWN_KERNELS,
        result=CheckResult.PASSED if failure is None else CheckResult.FAILED,
        workload=workload,
        note="with copies in place of the kernels the outputs are wrong" if failure is None else "",
    )


def _finding(drawn: DrawnInputs) -> Finding:
    return Finding(
        kind=FindingKind.DECOY,
        severity=Severity.ERROR,
        message=(
            f"the outputs of workload {drawn.draw.workload} are right with copies in place of the "
            "candidate's kernels: the library calls do all of the work"
        ),
        hint="let kernels of your own compute a part that the outputs depend on",
    )

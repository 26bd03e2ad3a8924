"""Whether a plan's kernels do anything: with library calls, results may be right without them.

Knows nothing of what the kernels are.
"""

from evaluator_svc.messages.locked import CandidateFailed, Done, RunRequest
from evaluator_svc.pipeline.run import DrawnInputs
from evaluator_svc.processes.answers import ask_candidate
from evaluator_svc.processes.judge_client import JudgeClient
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity


def run_without_kernels(
    process: ChildProcess, judge: JudgeClient, drawn: DrawnInputs, *, seconds: float
) -> CandidateFailed | None:
    """Run the plan with its launches left out; refuse it when the outputs are right all the same.

    The outputs are poisoned again afterwards.
    """
    answer = ask_candidate(
        process,
        RunRequest(draw=drawn.draw, without_kernels=True),
        Done,
        seconds=seconds,
        doing=f"running the library calls on workload {drawn.draw.workload}",
        descriptors=drawn.descriptors,
    )
    if isinstance(answer, CandidateFailed):
        return answer
    if judge.verify_decoy(drawn.draw.draw):
        return CandidateFailed(outcome=EvaluationOutcome.REJECTED, findings=(_finding(drawn),))
    judge.poison(drawn.draw.draw)
    return None


def own_kernels_check(workload: str, failure: CandidateFailed | None) -> Check:
    """Return the check that outputs are wrong without the candidate's kernels."""
    return Check(
        kind=CheckKind.OWN_KERNELS,
        result=CheckResult.PASSED if failure is None else CheckResult.FAILED,
        workload=workload,
        note="the library calls alone leave the outputs wrong" if failure is None else "",
    )


def _finding(drawn: DrawnInputs) -> Finding:
    return Finding(
        kind=FindingKind.DECOY,
        severity=Severity.ERROR,
        message=(
            f"the outputs of workload {drawn.draw.workload} are right without the candidate's "
            "kernels: the library calls do all of the work"
        ),
        hint="let kernels of your own compute a part that the outputs depend on",
    )

"""Stage schedule: the same results in another order of work-groups and work-items?

A missing barrier, or a group that relies on what another one wrote, is right as long as the runtime
happens to run things in order, and groups that wait for each other are as long as all of them run
at once. SYCL only: on a GPU the hardware shuffles anyway, and the vendor's sanitizers look.
"""

from dataclasses import dataclass

from evaluator_svc.messages.item_order import ItemOrder
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.measurement import KeptOutput
from evaluator_svc.messages.runner import ReorderReply, RunRequest
from evaluator_svc.pipeline.runner_calls import DrawnInputs, failure_of, run
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.judge_client import JudgeClient
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity

_UNREADABLE = "the object code reads the numbers of groups in a way of its own"
_ITEM_NOTES = {
    ItemOrder.REVERSED: "",
    ItemOrder.SUB_GROUPS: "sub-groups as wholes: the kernels exchange values by lane",
    ItemOrder.KEPT: "work-groups alone: whole groups exchange values in the order of their items",
}
_ONE_BY_ONE = "one work-group at a time"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """An order that a candidate is run in, as a failure names it."""

    where: str
    note: str
    hint: str


_REVERSE = _Order(
    where="in the reverse one",
    note="in reverse order the result is another one",
    hint="put a barrier between what one work-item writes and another reads; work-groups of "
    "one launch may not wait for each other: use two launches",
)
_ALONE = _Order(
    where="where they run one after the other",
    note="with one work-group at a time it does not end, or the result is another one",
    hint="work-groups of one launch may not wait for groups that begin later: use two launches, or "
    "number the groups by an atomic counter in the order in which they begin",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleResult:
    """The result of a run in reverse order."""

    check: Check
    failure: CandidateFailure | None = None


def run_in_reverse(
    process: ChildProcess, judge: JudgeClient, drawn: DrawnInputs, *, seconds: float
) -> ScheduleResult:
    """Run every loaded seed of a workload once in reverse order and compare.

    Args:
        process: The runner, which has run the workload before.
        judge: Poisons outputs and compares.
        drawn: The workload's inputs.
        seconds: What the run may take.
    """
    workload = drawn.draw.workload
    judge.poison(drawn.draw.draw)
    reply = ask_candidate(
        process,
        RunRequest(draw=drawn.draw, reordered=True),
        ReorderReply,
        seconds=seconds,
        doing=f"running the kernels of workload {workload} with work-groups in reverse order",
    )
    if isinstance(reply, CandidateFailure):
        return _failed(workload, reply.outcome, reply.findings, _REVERSE)
    if not reply.reverses_groups:
        return ScheduleResult(check=_check(CheckResult.SKIPPED, workload, _UNREADABLE))
    return _compared(judge, drawn, _ITEM_NOTES[reply.items], _REVERSE)


def run_one_by_one(
    process: ChildProcess, judge: JudgeClient, drawn: DrawnInputs, *, seconds: float
) -> ScheduleResult:
    """Run every loaded seed of a workload with one work-group at a time and compare.

    Args:
        process: A runner whose device has one thread; it has loaded the candidate.
        judge: Poisons outputs and compares.
        drawn: The workload's inputs.
        seconds: What the run may take.
    """
    judge.poison(drawn.draw.draw)
    ran = run(process, drawn, seconds=seconds)
    if isinstance(ran, CandidateFailure):
        return _failed(drawn.draw.workload, ran.outcome, ran.findings, _ALONE)
    return _compared(judge, drawn, _ONE_BY_ONE, _ALONE)


def _compared(judge: JudgeClient, drawn: DrawnInputs, note: str, order: _Order) -> ScheduleResult:
    workload = drawn.draw.workload
    kept = tuple(KeptOutput(slot=0, seed=seed) for seed in range(drawn.draw.seed_count))
    verdict = judge.verify_kept(drawn.draw.draw, kept).verdict
    failure = failure_of(verdict, workload)
    if failure is not None:
        return _failed(workload, EvaluationOutcome.NONDETERMINISTIC, failure.findings, order)
    return ScheduleResult(check=_check(CheckResult.PASSED, workload, note))


def _failed(
    workload: str, outcome: EvaluationOutcome, findings: tuple[Finding, ...], order: _Order
) -> ScheduleResult:
    finding = Finding(
        kind=FindingKind.SCHEDULE,
        severity=Severity.ERROR,
        message=f"workload {workload} comes out right in the usual order of work-groups and "
        f"work-items, and not {order.where}",
        hint=order.hint,
    )
    check = _check(CheckResult.FAILED, workload, order.note)
    failure = CandidateFailure(outcome=outcome, findings=(finding, *findings))
    return ScheduleResult(check=check, failure=failure)


def _check(result: CheckResult, workload: str, note: str) -> Check:
    return Check(kind=CheckKind.SCHEDULE, result=result, workload=workload, note=note)

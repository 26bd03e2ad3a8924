"""The task's own check of outputs: a function of its file, beside the comparison or in its place.

It is the user's code, as the reference is, and runs where the reference runs. What it says of a
candidate's outputs is data: a wrong result, with its words. What it says of the reference's own
outputs, or raises on them, is a reason to refuse the task.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from evaluator_svc.judge.comparison.call_outputs import CallOutputs
from evaluator_svc.judge.comparison.checks import figures
from evaluator_svc.judge.comparison.no_number import no_number_in
from evaluator_svc.judge.comparison.unwritten import unwritten_finding
from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.reference.check_call import LONGEST_SAID, shown_values
from evaluator_svc.messages.comparison import RunComparison
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.printable import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAnswer:
    """What the check says of some calls."""

    refusal: str = ""
    """What is wrong with one of them; empty: nothing."""
    is_no_number: bool = False
    """Whether that is NaN or infinity, which the check was not asked about."""
    own_refusal: str = ""
    """What it says of the reference's own outputs for a call, where it refuses these as well: then
    it tells nothing of that call."""
    call_count: int = 0
    """Calls that it told something of."""

    @property
    def result(self) -> CheckResult:
        """How the check came out."""
        if self.refusal:
            return CheckResult.FAILED
        return CheckResult.PASSED if self.call_count else CheckResult.SKIPPED

    @property
    def note(self) -> str:
        """What it said, for people."""
        if self.refusal or not self.own_refusal:
            return self.refusal
        return f"it refuses the reference's own outputs here: {self.own_refusal}"


def with_task_check(
    draw: SharedDraw, slots: Sequence[int], verdict: RunComparison
) -> RunComparison:
    """Return a verdict on runs with that of the task's check on the loaded seeds.

    Beside a comparison only on the task's own workloads, where outputs are right: nobody knows
    whether the check holds at sizes that were generated.

    Raises:
        TaskInvalidError: there is no comparison, and on a workload of the task it refuses the
            reference's own outputs too.
    """
    task = draw.prepared.task
    is_own = any(own.name == draw.workload for own in task.workloads)
    is_asked = bool(task.check) and (is_own or not task.compare)
    if not is_asked or verdict.is_wrong or verdict.is_nondeterministic:
        return verdict
    if not task.compare and (unwritten := unwritten_finding(draw, slots)):
        check = Check(
            kind=CheckKind.TASK_CHECK,
            result=CheckResult.FAILED,
            workload=draw.workload,
            note=f"not asked: {unwritten.message}",
        )
        return replace(
            verdict,
            is_wrong=True,
            findings=(*verdict.findings, unwritten),
            checks=(*verdict.checks, check),
        )
    answer = answer_on(_different_calls(draw, slots))
    if draw.is_lean:
        draw.drop_copies()
    if is_own and not task.compare and answer.result is CheckResult.SKIPPED:
        raise TaskInvalidError(
            f"{task.name}: {draw.workload}: {task.check}() tells nothing: {answer.note}",
            task=task.name,
        )
    check = Check(
        kind=CheckKind.TASK_CHECK,
        result=answer.result,
        workload=draw.workload,
        figures=figures(calls=answer.call_count),
        note=answer.note,
    )
    return replace(
        verdict,
        is_wrong=bool(answer.refusal),
        findings=(*verdict.findings, *refusal_findings(task, answer)),
        checks=(*verdict.checks, check),
    )


def answer_on(calls: Sequence[CallOutputs]) -> CheckAnswer:
    """Return what the task's check says of calls, up to the first that it refuses.

    What it says counts only where it says nothing of the reference's own outputs on the same
    inputs: admission saw those of other draws. Where it alone tells what is right, it is not asked
    about NaN and infinity in an output that the reference has finite numbers in.
    """
    own_refusal, count = "", 0
    for call in calls:
        expected = call.expected()
        written = [call.actual(output) for output in range(len(expected))]
        is_alone = not call.draw.prepared.task.compare
        if is_alone and (no_number := no_number_in(expected, written)):
            return CheckAnswer(refusal=no_number, is_no_number=True, call_count=count + 1)
        with call.inputs() as reference:
            refusal = _refusal_or_error(reference, expected, written)
            own = _refusal_or_error(reference, expected, expected) if refusal else ""
        if refusal and not own:
            return CheckAnswer(refusal=refusal, own_refusal=own_refusal, call_count=count + 1)
        own_refusal = own_refusal or own
        count += not refusal
    return CheckAnswer(own_refusal=own_refusal, call_count=count)


def with_answers(
    task: Task, verdict: RunComparison, answers: Sequence[CheckAnswer]
) -> RunComparison:
    """Return a verdict that is wrong where one of the answers is a refusal, with its words."""
    refused = next((answer for answer in answers if answer.refusal), None)
    if refused is None:
        return verdict
    findings = (*verdict.findings, *refusal_findings(task, refused))
    return replace(verdict, is_wrong=True, findings=findings)


def told(answers: Sequence[CheckAnswer]) -> str:
    """Return what answers come to, for people."""
    refusal = next((answer.refusal for answer in answers if answer.refusal), "")
    count = sum(answer.call_count for answer in answers)
    return refusal or f"{count} of {len(answers)} calls are told to be right"


def refusal_findings(task: Task, answer: CheckAnswer) -> tuple[Finding, ...]:
    """Return what the model is told of a refusal; empty where there is none."""
    if not answer.refusal:
        return ()
    kind, message = FindingKind.NOT_A_NUMBER, answer.refusal
    if not answer.is_no_number:
        kind = FindingKind.MISMATCH
        message = f"the task's check {task.check}() refuses the outputs: {answer.refusal}"
    return (Finding(kind=kind, severity=Severity.ERROR, message=message),)


def refusal_of(
    reference: InputSet,
    expected: Sequence[torch.Tensor],
    actual: Sequence[torch.Tensor],
    *,
    time_share: float = 1.0,
) -> str:
    """Return what the check finds wrong with `actual`; "" where it finds nothing.

    It is shown copies, see `shown_values`, and has a share of the time of `TaskModule.check`.

    Raises:
        TaskInvalidError: as `TaskModule.check`.
    """
    inputs = reference.arguments.values(reference.inputs)
    shown = shown_values(inputs, expected, actual)
    return reference.module.check(*shown, time_share=time_share)


def _refusal_or_error(
    reference: InputSet, expected: Sequence[torch.Tensor], actual: Sequence[torch.Tensor]
) -> str:
    try:
        return refusal_of(reference, expected, actual)
    except TaskInvalidError as error:
        return one_line(error.message[:LONGEST_SAID])[:LONGEST_SAID]


def _different_calls(draw: SharedDraw, slots: Sequence[int]) -> list[CallOutputs]:
    """Return the runs in these slots; of those that wrote the same, one."""
    calls = []
    for seed in draw.loaded:
        kept: list[int] = []
        for slot in slots:
            if not any(_is_same(draw, seed, slot, other) for other in kept):
                kept.append(slot)
                calls.append(CallOutputs(draw=draw, seed=seed, slot=slot))
    return calls


def _is_same(draw: SharedDraw, seed: int, slot: int, other: int) -> bool:
    return all(
        draw.memory.same_bytes(
            draw.address(seed, output, slot), draw.address(seed, output, other), output.size_bytes
        )
        for output in draw.output_slots
    )

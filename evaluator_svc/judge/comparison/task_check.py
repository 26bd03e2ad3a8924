"""The task's own check of outputs: a function of its file, beside the comparison or in its place.

It is the user's code, like the reference, and runs where the reference runs. A refusal of a
candidate's outputs is data: a wrong result, with the check's words. A refusal of the reference's
own outputs, or an error on them, is a reason to refuse the task.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import torch

from evaluator_svc.judge.comparison.call_outputs import CallOutputs
from evaluator_svc.judge.comparison.checks import figures
from evaluator_svc.judge.comparison.index_comparison import placed_outputs
from evaluator_svc.judge.comparison.no_number import no_number_in
from evaluator_svc.judge.comparison.unwritten import unwritten_finding
from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.reference.check_call import LONGEST_SAID, shown_values
from evaluator_svc.judge.reference.formats import same_values
from evaluator_svc.judge.tensors.rounding_noise import (
    COPYING,
    RoundingNoise,
    moved_by_units,
)
from evaluator_svc.messages.comparison import RunComparison
from evaluator_svc.messages.distribution_traits import Trait, has
from kernel_foundry.domain.admission import Distribution
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.printable import one_line

_TIME_SHARE: Final = 0.1
"""Share of a check's time limit, if it is asked for each kind of unusual values."""
_NOISE_SEEDS: Final = (1, 2)
_NOISE_UNITS: Final = 4.0
"""Units in the last place by which results are moved: as many times the effect of a reordering as a
tolerance allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAnswer:
    """The check's answer on some calls."""

    refusal: str = ""
    """Why it refuses one of them; empty if it refuses none."""
    is_no_number: bool = False
    """Whether the reason is NaN or infinity, about which the check was not asked."""
    own_refusal: str = ""
    """Why it refuses the reference's own outputs for a call: then its answer on that call does not
    count."""
    call_count: int = 0
    """Calls for which its answer counts."""

    @property
    def result(self) -> CheckResult:
        """The check's result."""
        if self.refusal:
            return CheckResult.FAILED
        return CheckResult.PASSED if self.call_count else CheckResult.SKIPPED

    @property
    def note(self) -> str:
        """The answer in words, for people."""
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
    """Return the answer of the task's check on calls, up to the first that it refuses.

    A refusal counts only if the check accepts the reference's own outputs on the same inputs, since
    admission tried others. If the check alone decides what is right, NaN and infinity in place of
    finite numbers of the reference are refused without asking it.
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


def accepts_reference(reference: InputSet, distribution: Distribution) -> bool:
    """Return whether the check accepts the reference's outputs here, whatever rounding makes them.

    If it refuses them or takes long, its answers on candidates do not count. The same holds if it
    refuses outputs of a run whose results and inputs are moved by some roundings, or whose indices
    name others among equal values. If the reference rounds nothing, nothing is moved.

    Args:
        reference: A reference with unusual inputs.
        distribution: The distribution of these.
    """
    module = reference.module

    def as_written(outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [o.to(dtype) for o, dtype in zip(outputs, module.output_dtypes, strict=True)]

    def is_accepted(outputs: Sequence[torch.Tensor]) -> bool:
        written = as_written(outputs)
        if no_number_in(expected, written):
            return False
        try:
            return not refusal_of(reference, expected, written, time_share=_TIME_SHARE)
        except TaskInvalidError:
            return False

    def run(seed: int, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        with RoundingNoise(seed=seed, device=module.device, units=_NOISE_UNITS, kept=COPYING):
            return tuple(reference.run(inputs=inputs))

    outputs = reference.expected()
    expected = as_written(outputs)
    if not is_accepted(outputs):
        return False
    if module.names_places and not is_accepted(_with_ties_broken(reference, outputs)):
        return False
    inputs: Sequence[torch.Tensor] = reference.inputs
    if all(map(same_values, run(_NOISE_SEEDS[0], inputs), reference.own())):
        return True
    for seed in _NOISE_SEEDS:
        if not has(distribution, Trait.AS_DRAWN):
            generator = torch.Generator(module.device).manual_seed(seed)
            inputs = [
                moved_by_units(t, generator=generator, units=_NOISE_UNITS) for t in reference.inputs
            ]
        if not is_accepted(run(seed, inputs)):
            return False
    return True


def _with_ties_broken(
    reference: InputSet, outputs: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    """Return outputs in which what indices have a part in is of others among equal values."""
    generator = torch.Generator(reference.module.device).manual_seed(_NOISE_SEEDS[0])
    inputs = [moved_by_units(t, generator=generator, breaks_ties=True) for t in reference.inputs]
    following = placed_outputs(reference).following
    broken = reference.run(inputs=inputs)
    return tuple(broken[i] if i in following else own for i, own in enumerate(outputs))


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
    """Return the sum of several answers in words, for people."""
    refusal = next((answer.refusal for answer in answers if answer.refusal), "")
    count = sum(answer.call_count for answer in answers)
    return refusal or f"it accepts {count} of {len(answers)} calls"


def refusal_findings(task: Task, answer: CheckAnswer, where: str = "") -> tuple[Finding, ...]:
    """Return the finding on a refusal; empty if there is none.

    Args:
        task: The task.
        answer: The answer of its check.
        where: Names inputs that are not ordinary.
    """
    if not answer.refusal:
        return ()
    kind, message = FindingKind.NOT_A_NUMBER, answer.refusal
    if not answer.is_no_number:
        kind = FindingKind.MISMATCH
        message = f"the task's check {task.check}() refuses the outputs: {answer.refusal}"
    if where:
        message = f"on {where}: {message}"
    return (Finding(kind=kind, severity=Severity.ERROR, message=message),)


def refusal_of(
    reference: InputSet,
    expected: Sequence[torch.Tensor],
    actual: Sequence[torch.Tensor],
    *,
    time_share: float = 1.0,
) -> str:
    """Return why the check refuses `actual`; "" if it accepts them.

    It gets copies, see `shown_values`, and a share of the time of `TaskModule.check`.

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

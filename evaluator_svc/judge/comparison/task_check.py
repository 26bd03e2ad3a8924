"""The task's own check of outputs: a function of its file, beside the comparison by elements.

It is the user's code, as the reference is, and runs where the reference runs. What it says of a
candidate's outputs is data: a wrong result, with its words. What it says of the reference's own
outputs, or raises on them, is a reason to refuse the task.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch

from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.messages.comparison import RunComparison
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import TaskInvalidError


def with_task_check(
    draw: SharedDraw, slots: Sequence[int], verdict: RunComparison
) -> RunComparison:
    """Return a verdict on right outputs with that of the task's check on the loaded seeds.

    Only on the task's own workloads: nobody knows whether the check holds at sizes that were
    generated. Outputs that are wrong already are not shown to it. What it says counts only where it
    says nothing of the reference's own outputs: admission saw those of other draws.
    """
    task = draw.prepared.task
    is_own = any(own.name == draw.workload for own in task.workloads)
    if not task.check or not is_own or verdict.is_wrong or verdict.is_nondeterministic:
        return verdict
    said = own = ""
    for seed in draw.loaded:
        found = next(filter(None, (_said_of(draw, seed, slot) for slot in slots)), "")
        refusal = _said_of(draw, seed, None) if found else ""
        said, own = said or ("" if refusal else found), own or refusal
    if draw.is_lean:
        draw.drop_copies()
    check = Check(
        kind=CheckKind.TASK_CHECK,
        result=_result(said, own),
        workload=draw.workload,
        note=said or (own and f"it refuses the reference's own outputs here: {own}"),
    )
    findings = (_finding(task, said),) if said else ()
    return replace(
        verdict,
        is_wrong=bool(said),
        findings=(*verdict.findings, *findings),
        checks=(*verdict.checks, check),
    )


def refusals_of_check(task: Task, prepared: Sequence[PreparedWorkload], seed: int) -> list[str]:
    """Return why the check is none: it raises on the reference's own outputs, or refuses them."""
    refusals = []
    for item in prepared if task.check else ():
        reference = item.shared_set(seed)
        formats = item.module.output_dtypes
        outputs = [
            value.to(dtype) for value, dtype in zip(reference.expected(), formats, strict=True)
        ]
        try:
            said = _said(reference, outputs, outputs)
        except TaskInvalidError as error:
            said = error.message
        if said:
            refusals.append(
                f"{item.workload.name}: the reference's own outputs fail {task.check}(): {said}"
            )
    return refusals


def _result(said: str, own: str) -> CheckResult:
    if said:
        return CheckResult.FAILED
    return CheckResult.SKIPPED if own else CheckResult.PASSED


def _said_of(draw: SharedDraw, seed: int, slot: int | None) -> str:
    """What it says of the outputs in a slot, or raises on them; None: of the reference's own."""
    expected = [output.tensor for output in draw.expected(seed)]
    actual = expected
    if slot is not None:
        actual = [draw.output_tensor(seed, output, slot) for output in range(len(expected))]
    try:
        return _said(draw.reference_set(seed), expected, actual)
    except TaskInvalidError as error:
        return error.message


def _said(
    reference: InputSet, expected: Sequence[torch.Tensor], actual: Sequence[torch.Tensor]
) -> str:
    """What the check says; nobody can change what it is shown, whatever it writes to."""
    inputs = reference.arguments.values([tensor.clone() for tensor in reference.inputs])
    try:
        return reference.module.check(
            inputs, [tensor.clone() for tensor in expected], [tensor.clone() for tensor in actual]
        )
    except TaskInvalidError as error:
        if isinstance(error.__cause__, MemoryError):
            raise error.__cause__ from None  # there may be memory for it next time
        raise


def _finding(task: Task, said: str) -> Finding:
    return Finding(
        kind=FindingKind.MISMATCH,
        severity=Severity.ERROR,
        message=f"the task's check {task.check}() refuses the outputs: {said}",
    )

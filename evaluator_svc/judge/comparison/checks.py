"""The checks of a comparison, with their figures.

Outputs are compared in `compare.py`.
"""

import math

from evaluator_svc.judge.draws.shared_draw import SharedDraw
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import Correctness
from kernel_foundry.domain.finding import Figure


def figures(**values: float) -> tuple[Figure, ...]:
    """Return named numbers; those that are no numbers are left out."""
    return tuple(
        Figure(name=name, value=float(value))
        for name, value in values.items()
        if math.isfinite(value)
    )


def comparison_check(
    draw: SharedDraw,
    correctness: Correctness,
    *,
    is_right: bool,
    kind: CheckKind = CheckKind.COMPARISON,
    differing: float = math.nan,
) -> Check:
    """Return the check that outputs are what the reference gives.

    `differing`: elements outside the tolerance, where some may be; NaN: none may.
    """
    task = draw.prepared.task
    if not task.compare and kind is CheckKind.COMPARISON:
        result, note = CheckResult.SKIPPED, f"{task.check}() of the task alone tells what is right"
    else:
        result, note = CheckResult.PASSED if is_right else CheckResult.FAILED, ""
    return Check(
        kind=kind,
        result=result,
        workload=draw.workload,
        figures=figures(
            seeds=correctness.seed_count,
            elements=correctness.element_count,
            mismatched_elements=correctness.mismatch_count,
            differing_elements=differing,
        ),
        note=note,
    )


def determinism_check(draw: SharedDraw, correctness: Correctness, *, is_stable: bool) -> Check:
    """Return the check that runs on the same inputs agree."""
    is_bitwise = correctness.bitwise_reproducible
    unlike = "runs differ in their last bits, as sums by atomics do"
    if not draw.prepared.task.compare:
        unlike = "runs differ, and the task's check looks at each"
    return Check(
        kind=CheckKind.DETERMINISM,
        result=CheckResult.PASSED if is_stable else CheckResult.FAILED,
        workload=draw.workload,
        figures=figures(runs=correctness.run_count, bitwise=is_bitwise),
        note="" if is_bitwise else unlike,
    )


def inputs_check(draw: SharedDraw, modified: tuple[str, ...]) -> Check:
    """Return the check that inputs and parameters are as they were drawn."""
    return Check(
        kind=CheckKind.INPUTS_INTACT,
        result=CheckResult.FAILED if modified else CheckResult.PASSED,
        workload=draw.workload,
        figures=figures(tensors=len(draw.source_slots), changed_tensors=len(modified)),
    )


def guards_check(draw: SharedDraw, touched: tuple[str, ...]) -> Check:
    """Return the check that nothing was written around the tensors."""
    return Check(
        kind=CheckKind.GUARDS_INTACT,
        result=CheckResult.FAILED if touched else CheckResult.PASSED,
        workload=draw.workload,
        figures=figures(guard_bytes=draw.guard_bytes, touched_tensors=len(touched)),
    )

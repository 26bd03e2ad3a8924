"""The verdict on what a runner wrote: every element of every output, run and seed.

Runs only after the candidate ran, so that no expected value exists before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import torch

from evaluator_svc.judge.comparison.call_outputs import CallOutputs
from evaluator_svc.judge.comparison.checks import (
    comparison_check,
    determinism_check,
    guards_check,
    inputs_check,
)
from evaluator_svc.judge.comparison.compare import allowed_mismatches, compare_output
from evaluator_svc.judge.comparison.few_elements import tolerance_of_few
from evaluator_svc.judge.comparison.index_comparison import count_misplaced
from evaluator_svc.judge.comparison.mismatch import (
    MAX_EXPLAINED_ELEMENTS,
    Mismatch,
    explain,
    modified_finding,
    stray_finding,
    unstable_finding,
)
from evaluator_svc.judge.comparison.rounded_codes import allowed_codes
from evaluator_svc.judge.comparison.task_check import answer_on
from evaluator_svc.judge.draws.expected_output import ExpectedOutput
from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.judge.timed_calls.call_inputs import CallValues
from evaluator_svc.messages.comparison import RunComparison
from evaluator_svc.messages.draw import OUTPUT_SLOTS
from kernel_foundry.domain.check import CheckResult
from kernel_foundry.domain.evaluation import Correctness
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.task import Tolerance
from kernel_foundry_native import _core as native

_MAX_EXPLAINED: Final = 2

_NEIGHBOUR: Final = 1.0
"""How far a whole number is from what is expected where rounding decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputCheck:
    """One output of one seed, compared in one or several slots."""

    seed: int
    output: int
    slots: tuple[int, ...]
    comparisons: tuple[native.Comparison, ...]
    """One for each slot."""
    is_reproducible: bool
    """All slots hold the same bytes."""
    element_count: int
    values: CallValues | None = None
    """Input values of the timed call; None: inputs were as drawn."""
    allowed_counts: tuple[int, ...] = ()
    """Elements of each slot that may differ: whole numbers that rounding or equal values decide.
    Empty: none."""

    @property
    def mismatch_counts(self) -> tuple[int, ...]:
        """Elements of each slot that are wrong; those that may differ are none."""
        counts = (int(comparison.mismatch_count) for comparison in self.comparisons)
        allowed = self.allowed_counts or (0,) * len(self.comparisons)
        return tuple(c if c > most else 0 for c, most in zip(counts, allowed, strict=True))

    @property
    def differs(self) -> bool:
        """True when elements of any run are outside the tolerance, whether that is wrong or not."""
        return any(comparison.mismatch_count for comparison in self.comparisons)

    @property
    def worst(self) -> int:
        """Index of the slot with most mismatches."""
        return self.mismatch_counts.index(max(self.mismatch_counts))

    @property
    def is_wrong(self) -> bool:
        """True when no run was right."""
        return all(self.mismatch_counts)

    @property
    def is_unstable(self) -> bool:
        """True when some runs were right and others wrong."""
        return any(self.mismatch_counts) and not all(self.mismatch_counts)

    @property
    def has_mismatch(self) -> bool:
        """True when any run was wrong."""
        return any(self.mismatch_counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrayWrites:
    """Tensors that a candidate wrote to and must not."""

    modified: tuple[str, ...] = ()
    """Inputs and parameters."""
    touched: tuple[str, ...] = ()
    """Tensors whose guards were written."""


def verify(draw: SharedDraw, slots: Sequence[int] = ()) -> RunComparison:
    """Return the verdict on output slots, all or some, on the inputs and the guards of `draw`."""
    runs = tuple(slots) or tuple(range(OUTPUT_SLOTS))
    modified: set[str] = set()
    checks: list[OutputCheck] = []
    for seed in range(len(draw.seeds)):
        modified.update(draw.modified_inputs(seed))
        checks += [
            check_output(draw, seed=seed, output=output, slots=runs)
            for output in range(len(draw.output_slots))
        ]
    stray = StrayWrites(modified=tuple(sorted(modified)), touched=draw.stray_writes())
    return verdict_on_runs(draw, checks, stray)


def verdict_on_runs(
    draw: SharedDraw, checks: Sequence[OutputCheck], stray: StrayWrites
) -> RunComparison:
    """Return the verdict on a candidate's runs, with what it rests on."""
    verdict = judge_outputs(draw, checks, stray)
    is_stable = not verdict.is_nondeterministic
    is_right = not any(check.is_wrong for check in checks)
    unchanged = draw.unchanged_inputs
    return replace(
        verdict,
        findings=(*verdict.findings, *([_unchanged_finding(unchanged)] if unchanged else [])),
        checks=(
            comparison_check(
                draw, verdict.correctness, is_right=is_right, differing=_differing(draw, checks)
            ),
            determinism_check(draw, verdict.correctness, is_stable=is_stable),
            inputs_check(draw, stray.modified),
            guards_check(draw, stray.touched),
        ),
    )


def _differing(draw: SharedDraw, checks: Sequence[OutputCheck]) -> float:
    """Elements outside the tolerance, where a share of them may be; else NaN."""
    if draw.tolerance.matched == 1.0 and draw.prepared.task.compare:
        return math.nan
    return float(sum(max(int(c.mismatch_count) for c in check.comparisons) for check in checks))


def _unchanged_finding(names: Sequence[str]) -> Finding:
    listed = ", ".join(names)
    return Finding(
        kind=FindingKind.DATA_FLOW,
        severity=Severity.WARNING,
        message=f"{listed} never changed: a kernel that ignores it goes unnoticed",
        hint=f"draw it from the seed in get_inputs(), or say `constants: [{listed}]` in the task's"
        " sidecar, where a kernel may rely on its values",
    )


def right_already(draw: SharedDraw) -> tuple[str, ...]:
    """Return the outputs whose first slots are right for every loaded seed, whoever wrote them."""
    if not draw.prepared.task.compare:
        answer = answer_on([CallOutputs(draw=draw, seed=seed) for seed in draw.loaded])
        is_right = answer.result is CheckResult.PASSED
        right = tuple(slot.name for slot in draw.output_slots if is_right)
    else:
        right = tuple(
            slot.name
            for output, slot in enumerate(draw.output_slots)
            if not any(
                check_output(draw, seed=seed, output=output, slots=(0,)).is_wrong
                for seed in draw.loaded
            )
        )
    if draw.is_lean:
        draw.drop_copies()  # nothing expected is there when a run begins
    return right


def check_output(
    draw: SharedDraw,
    *,
    seed: int,
    output: int,
    slots: tuple[int, ...],
    tolerance: Tolerance | None = None,
    values: CallValues | None = None,
) -> OutputCheck:
    """Compare one output in `slots`; slots that equal the first one are not compared again.

    `tolerance` takes the place of the draw's own; `values` are those of the inputs in a timed call.
    """
    place = draw.output_slots[output]
    expected = _expected(draw, seed, values)[output]
    addresses = [draw.address(seed, place, slot) for slot in slots]
    if tolerance is None and draw.prepared.task.compare:
        tolerance = tolerance_of_few(draw, addresses, seed=seed, output=output, values=values)
    tolerance = tolerance or draw.tolerance
    tolerance = tolerance.of(output)
    first = compare_output(addresses[0], expected, tolerance)
    same = [draw.memory.same_bytes(addresses[0], a, place.size_bytes) for a in addresses[1:]]
    others = [
        first if is_same else compare_output(address, expected, tolerance)
        for is_same, address in zip(same, addresses[1:], strict=True)
    ]
    return OutputCheck(
        seed=seed,
        output=output,
        slots=slots,
        comparisons=(first, *others),
        is_reproducible=all(same),
        element_count=expected.tensor.numel(),
        values=values,
        allowed_counts=allowed_counts(
            draw,
            (first, *others),
            seed=seed,
            output=output,
            slots=slots,
            values=values,
            matched=tolerance.matched,
        ),
    )


def allowed_counts(
    draw: SharedDraw,
    comparisons: Sequence[native.Comparison],
    *,
    seed: int,
    output: int,
    slots: Sequence[int],
    values: CallValues | None = None,
    matched: float = 1.0,
) -> tuple[int, ...]:
    """Return how many elements of each slot may differ; the reference is asked where any does.

    All of them where the task's check alone tells what is right.

    Of numbers that are `matched` decides, where all of them are finite.

    Raises:
        TaskInvalidError: the reference raises.
    """
    differ = [i for i, c in enumerate(comparisons) if c.mismatch_count]
    none = (0,) * len(comparisons)
    if not draw.prepared.task.compare:
        return (draw.element_count(output),) * len(comparisons)
    if not differ:
        return none
    if getattr(torch, draw.output_slots[output].dtype).is_floating_point:
        count = draw.element_count(output)
        return tuple(allowed_mismatches(count, matched, c.max_abs_error) for c in comparisons)
    if draw.prepared.module.names_places:
        expected = _expected(draw, seed, values)[output].tensor
        written = [draw.output_tensor(seed, output, slots[i]) for i in differ]
        with draw.call_set(seed, values) as reference:
            misplaced = count_misplaced(reference, output, expected, written)
        if misplaced is not None:
            found = dict(zip(differ, misplaced, strict=True))
            counts = enumerate(int(c.mismatch_count) for c in comparisons)
            return tuple(count - found.get(i, 0) for i, count in counts)
    if any(comparisons[i].max_abs_error > _NEIGHBOUR for i in differ):
        return none
    if draw.is_lean and draw.prepared.is_large:
        return none  # there is no memory for several runs of the reference
    most = allowed_codes(draw.prepared, output, draw.element_count(output))
    return (most,) * len(comparisons)


def _expected(draw: SharedDraw, seed: int, values: CallValues | None) -> tuple[ExpectedOutput, ...]:
    return draw.expected_of_call(seed, values)


def judge_outputs(
    draw: SharedDraw, checks: Sequence[OutputCheck], stray: StrayWrites
) -> RunComparison:
    """Return the verdict on comparisons, with findings and without checks."""
    modified, touched = stray.modified, stray.touched
    findings: list[Finding] = [modified_finding(modified)] if modified else []
    findings += [stray_finding(touched)] if touched else []
    failed = [check for check in checks if check.has_mismatch]
    explained: set[int] = set()
    for check in failed:
        if check.output not in explained and len(explained) < _MAX_EXPLAINED:
            explained.add(check.output)
            findings += explain(_mismatch(draw, check, failed))
    reproducible = all(check.is_reproducible for check in checks)
    # What nobody wrote differs from run to run, as it is filled with other bytes before each.
    is_written = all(f.kind is not FindingKind.OUTPUT_NOT_WRITTEN for f in findings)
    if not reproducible and is_written:
        is_compared = draw.prepared.task.compare
        findings.append(unstable_finding(is_wrong=bool(failed), is_compared=is_compared))
    return RunComparison(
        correctness=_correctness(checks, reproducible=reproducible),
        inputs_modified=modified,
        stray_writes=touched,
        is_wrong=any(check.is_wrong for check in checks) or bool(modified or touched),
        is_nondeterministic=any(check.is_unstable for check in checks),
        findings=tuple(findings),
    )


def _mismatch(draw: SharedDraw, check: OutputCheck, failed: Sequence[OutputCheck]) -> Mismatch:
    slot = check.slots[check.worst]
    actual = draw.output_tensor(check.seed, check.output, slot)
    if actual.numel() <= MAX_EXPLAINED_ELEMENTS:
        actual = actual.clone()  # nobody else may change it while it is looked at
    return Mismatch(
        name=draw.output_slots[check.output].name,
        comparison=check.comparisons[check.worst],
        actual=actual,
        expected=_expected(draw, check.seed, check.values)[check.output],
        tolerance=draw.tolerance.of(check.output),
        seed_count=len(draw.seeds),
        wrong_seed_count=len({c.seed for c in failed if c.output == check.output}),
        shows_values=not draw.prepared.workload.held_out,
    )


def _correctness(checks: Sequence[OutputCheck], *, reproducible: bool) -> Correctness:
    worst = [check.comparisons[check.worst] for check in checks]
    wrong = [check.comparisons[check.worst] for check in checks if check.has_mismatch]
    return Correctness(
        max_abs_error=_largest([c.max_abs_error for c in worst]),
        max_rel_error=_largest([c.max_rel_error for c in worst]),
        mismatch_count=sum(max(check.mismatch_counts) for check in checks),
        element_count=sum(check.element_count for check in checks),
        first_mismatch=wrong[0].first_mismatch if wrong else None,
        seed_count=len({check.seed for check in checks}),
        run_count=max((len(check.slots) for check in checks), default=0),
        bitwise_reproducible=reproducible,
    )


def _largest(errors: Sequence[float]) -> float:
    """Return the largest error; NaN when any is."""
    return math.nan if any(math.isnan(e) for e in errors) else max(errors, default=0.0)

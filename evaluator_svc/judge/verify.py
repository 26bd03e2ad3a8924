"""The verdict on what a runner wrote: every element of every output, run and seed.

Runs only after the candidate ran, so that no expected value exists before. Knows nothing of how
a mismatch is explained (`mismatch`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evaluator_svc.exchange import OUTPUT_SLOTS, KeptOutput, Verdict
from evaluator_svc.judge.compare import compare_output
from evaluator_svc.judge.mismatch import (
    MAX_EXPLAINED_ELEMENTS,
    Mismatch,
    explain,
    modified_finding,
    unstable_finding,
)
from evaluator_svc.judge.shared_draw import SharedDraw
from kernel_foundry.domain.evaluation import Correctness
from kernel_foundry.domain.finding import Finding
from kernel_foundry_native import _core as native

_MAX_EXPLAINED: Final = 2


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

    @property
    def worst(self) -> int:
        """Index of the slot with most mismatches."""
        counts = [comparison.mismatch_count for comparison in self.comparisons]
        return counts.index(max(counts))

    @property
    def is_wrong(self) -> bool:
        """True when no run was right."""
        return all(comparison.mismatch_count for comparison in self.comparisons)

    @property
    def is_unstable(self) -> bool:
        """True when some runs were right and others wrong."""
        wrong = [comparison.mismatch_count > 0 for comparison in self.comparisons]
        return any(wrong) and not all(wrong)


def verify(draw: SharedDraw) -> Verdict:
    """Return the verdict on every output slot, and on the inputs, of `draw`."""
    runs = tuple(range(OUTPUT_SLOTS))
    modified: set[str] = set()
    checks: list[OutputCheck] = []
    # All of one seed before the next: of a large workload only one seed's tensors are held.
    for seed in range(len(draw.seeds)):
        modified.update(draw.modified_inputs(seed))
        checks += [
            check_output(draw, seed=seed, output=output, slots=runs)
            for output in range(len(draw.output_slots))
        ]
    return _verdict(draw, checks, tuple(sorted(modified)))


def verify_kept(draw: SharedDraw, kept: Sequence[KeptOutput]) -> Verdict:
    """Return the verdict on outputs of timed calls that were copied back."""
    checks = [
        check_output(draw, seed=item.seed, output=output, slots=(item.slot,))
        for item in sorted(kept, key=lambda item: item.seed)
        for output in range(len(draw.output_slots))
    ]
    return _verdict(draw, checks, ())


def is_right_already(draw: SharedDraw) -> bool:
    """Return whether the first slot of every output and seed is right, whoever wrote it."""
    return not any(
        check_output(draw, seed=seed, output=output, slots=(0,)).is_wrong
        for seed in range(len(draw.seeds))
        for output in range(len(draw.output_slots))
    )


def check_output(
    draw: SharedDraw, *, seed: int, output: int, slots: tuple[int, ...]
) -> OutputCheck:
    """Compare one output in `slots`; slots that equal the first one are not compared again."""
    place = draw.output_slots[output]
    expected = draw.expected(seed)[output]
    base = draw.regions[seed].address
    addresses = [base + place.offsets[slot] for slot in slots]
    first = compare_output(addresses[0], expected, draw.tolerance)
    same = [draw.memory.same_bytes(addresses[0], a, place.size_bytes) for a in addresses[1:]]
    others = [
        first if is_same else compare_output(address, expected, draw.tolerance)
        for is_same, address in zip(same, addresses[1:], strict=True)
    ]
    return OutputCheck(
        seed=seed,
        output=output,
        slots=slots,
        comparisons=(first, *others),
        is_reproducible=all(same),
        element_count=expected.tensor.numel(),
    )


def _verdict(draw: SharedDraw, checks: Sequence[OutputCheck], modified: tuple[str, ...]) -> Verdict:
    findings: list[Finding] = [modified_finding(modified)] if modified else []
    failed = [check for check in checks if any(c.mismatch_count for c in check.comparisons)]
    explained: set[int] = set()
    for check in failed:
        if check.output not in explained and len(explained) < _MAX_EXPLAINED:
            explained.add(check.output)
            findings += explain(_mismatch(draw, check, failed))
    reproducible = all(check.is_reproducible for check in checks)
    if not reproducible:
        findings.append(unstable_finding(is_wrong=bool(failed)))
    return Verdict(
        correctness=_correctness(checks, reproducible=reproducible),
        inputs_modified=modified,
        is_wrong=any(check.is_wrong for check in checks) or bool(modified),
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
        expected=draw.expected(check.seed)[check.output],
        tolerance=draw.tolerance,
        seed_count=len(draw.seeds),
        wrong_seed_count=len({c.seed for c in failed if c.output == check.output}),
    )


def _correctness(checks: Sequence[OutputCheck], *, reproducible: bool) -> Correctness:
    worst = [check.comparisons[check.worst] for check in checks]
    wrong = [comparison for comparison in worst if comparison.mismatch_count]
    return Correctness(
        max_abs_error=_largest([c.max_abs_error for c in worst]),
        max_rel_error=_largest([c.max_rel_error for c in worst]),
        mismatch_count=sum(c.mismatch_count for c in worst),
        element_count=sum(check.element_count for check in checks),
        first_mismatch=wrong[0].first_mismatch if wrong else None,
        seed_count=len({check.seed for check in checks}),
        run_count=max((len(check.slots) for check in checks), default=0),
        bitwise_reproducible=reproducible,
    )


def _largest(errors: Sequence[float]) -> float:
    """Return the largest error; NaN when any is."""
    return math.nan if any(math.isnan(e) for e in errors) else max(errors, default=0.0)

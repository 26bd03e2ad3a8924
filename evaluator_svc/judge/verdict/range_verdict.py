"""The verdict on outputs that belong to inputs of unusual values.

Knows nothing of how the inputs were made (`value_ranges`).
"""

import dataclasses
from collections.abc import Sequence
from typing import Final

from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.judge.draws.value_ranges import needed_factor
from evaluator_svc.judge.verdict.checks import figures
from evaluator_svc.judge.verdict.mismatch import stray_finding
from evaluator_svc.judge.verdict.precision import audit_seed
from evaluator_svc.judge.verdict.verify import OutputCheck, check_output
from evaluator_svc.messages.exchange import RangeVerdict
from kernel_foundry.domain.admission import Distribution, ValueRange
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.errors import TaskInvalidError

_AUDITED: Final = (
    Distribution.SIGNS,
    Distribution.MAGNITUDES,
    Distribution.INTEGERS,
    Distribution.POWERS,
    Distribution.OUTLIERS,
    Distribution.FEW,
)
"""Distributions that show in which precision something was computed: sums cancel, few terms
dominate or are there, no term is exact in 16 bits, or every input is."""

_NO_REFERENCE = "the reference is not defined on what was drawn"
_ILL_CONDITIONED = "the reference is ill-conditioned on what was drawn"


def verify_ranges(draw: SharedDraw, ranges: Sequence[ValueRange]) -> tuple[RangeVerdict, ...]:
    """Return a verdict for each distribution that is loaded, on the first output slots.

    Args:
        draw: The draw; of a lean one the loaded seed alone is looked at.
        ranges: One for each of its seeds.
    """
    touched = draw.stray_writes()
    verdicts = [_verdict(draw, seed, ranges[seed]) for seed in draw.loaded]
    if draw.is_lean:
        draw.drop_copies()
    if touched and verdicts:
        first = verdicts[0]
        findings = (stray_finding(touched), *first.findings)
        verdicts[0] = dataclasses.replace(first, is_wrong=True, findings=findings)
    return tuple(verdicts)


def _verdict(draw: SharedDraw, seed: int, value_range: ValueRange) -> RangeVerdict:
    name = value_range.distribution.value
    try:
        is_defined = not value_range.is_binding or all(
            expected.is_finite() for expected in draw.expected(seed)
        )
    except TaskInvalidError:
        is_defined = False
    if not is_defined:
        return RangeVerdict(check=_check(draw, name, CheckResult.SKIPPED, note=_NO_REFERENCE))
    outputs = _compared(draw, seed, value_range.factor)
    if value_range.is_binding and any(output.is_wrong for output in outputs):
        factor = _factor_here(draw, seed, value_range)
        if factor is None:
            return RangeVerdict(
                check=_check(draw, name, CheckResult.SKIPPED, note=_ILL_CONDITIONED)
            )
        if factor > value_range.factor:
            value_range = dataclasses.replace(value_range, factor=factor)
            outputs = _compared(draw, seed, factor)
    wrong = [output for output in outputs if output.is_wrong]
    if not wrong:
        check = _check(draw, name, CheckResult.PASSED, outputs, factor=value_range.factor)
        is_audited = value_range.is_binding and value_range.distribution in _AUDITED
        return RangeVerdict(check=check, audit=audit_seed(draw, seed).audit if is_audited else None)
    is_binding = value_range.is_binding
    finding = _finding(draw, wrong[0], value_range)
    # Reported ranges are none to be suspicious of: kernels may do there as they like.
    result = CheckResult.FAILED if is_binding else CheckResult.PASSED
    note = "" if is_binding else "it differs there, which is reported and no reason to refuse"
    check = _check(draw, name, result, outputs, factor=value_range.factor, note=note)
    return RangeVerdict(check=check, is_wrong=is_binding, findings=(finding,))


def _compared(draw: SharedDraw, seed: int, factor: float) -> list[OutputCheck]:
    tolerance = Tolerance(rtol=factor * draw.tolerance.rtol, atol=factor * draw.tolerance.atol)
    return [
        check_output(draw, seed=seed, output=output, slots=(0,), tolerance=tolerance)
        for output in range(len(draw.output_slots))
    ]


def _factor_here(draw: SharedDraw, seed: int, value_range: ValueRange) -> float | None:
    """Return what the tolerance is to be multiplied by on this very draw; None: on no account.

    Before anybody is refused: admission asked of other values, and maybe of another workload. A
    lean draw leaves no room for the copies that this takes.
    """
    if draw.is_lean:
        return value_range.factor
    try:
        return needed_factor(draw.input_set(seed), value_range.distribution, draw.tolerance)
    except TaskInvalidError:
        return None


def _check(
    draw: SharedDraw,
    name: str,
    result: CheckResult,
    outputs: Sequence[OutputCheck] = (),
    *,
    factor: float = 1.0,
    note: str = "",
) -> Check:
    found = [comparison for output in outputs for comparison in output.comparisons]
    return Check(
        kind=CheckKind.VALUE_RANGE,
        result=result,
        workload=draw.workload,
        figures=figures(
            tolerance_factor=factor,
            mismatched_elements=sum(comparison.mismatch_count for comparison in found),
        ),
        note=f"{name}: {note}" if note else name,
    )


def _finding(draw: SharedDraw, output: OutputCheck, value_range: ValueRange) -> Finding:
    comparison = output.comparisons[0]
    name = draw.output_slots[output.output].name
    where = _WORDS[value_range.distribution.value]
    return Finding(
        kind=FindingKind.VALUE_RANGE,
        severity=Severity.ERROR if value_range.is_binding else Severity.WARNING,
        message=(
            f"{name} is wrong in {comparison.mismatch_count} of {output.element_count} elements on"
            f" {where}, workload {draw.workload}"
        ),
        evidence=figures(
            mismatched_elements=comparison.mismatch_count,
            nan_elements=comparison.nan_count,
            infinite_elements=comparison.inf_count,
            max_abs_error=comparison.max_abs_error,
            tolerance_factor=value_range.factor,
        ),
        hint=_HINTS.get(value_range.distribution.value, ""),
    )


_WORDS = {
    "large": "inputs of large magnitude",
    "offset": "inputs far from zero",
    "zeros": "inputs of zeros",
    "sparse": "inputs with stretches of zeros",
    "denormal": "denormal inputs",
    "non_finite": "inputs with NaN and infinity",
    "signs": "inputs of both signs",
    "magnitudes": "inputs of mixed magnitudes",
    "integers": "inputs of odd whole numbers",
    "powers": "inputs of powers of two",
    "outliers": "ordinary inputs with one large element in each row",
    "few": "inputs of which one has few elements that are not zero",
}
_HINTS = {
    "large": "Subtract the maximum before exp, and keep sums and squares from overflowing.",
    "offset": "Subtract the mean before squaring, and sum in float32 at least.",
    "zeros": "Guard divisions and logarithms as the reference does.",
    "sparse": "Leave out no work because inputs look like zeros.",
    "signs": "Keep all bits of each term: sums may cancel.",
    "magnitudes": "Keep the range of float32 and all bits of each term.",
    "integers": "Keep all 24 bits of each term.",
    "powers": "Compute in float32 whatever the inputs are.",
    "outliers": "Look at every element: a sample of a row does not tell its largest.",
    "few": "Leave out no work because inputs look like zeros.",
}

"""The verdict on outputs that belong to inputs of unusual values."""

import dataclasses
from collections.abc import Sequence
from typing import Final

from evaluator_svc.judge.comparison.batch_slice import batch_slice, is_independent
from evaluator_svc.judge.comparison.call_outputs import CallOutputs
from evaluator_svc.judge.comparison.checks import figures
from evaluator_svc.judge.comparison.mismatch import modified_finding, stray_finding
from evaluator_svc.judge.comparison.needed_factor import NeededFactor, needed_factor
from evaluator_svc.judge.comparison.non_finite import wrong_numbers
from evaluator_svc.judge.comparison.precision import audit_call
from evaluator_svc.judge.comparison.range_finding import range_finding
from evaluator_svc.judge.comparison.task_check import (
    CheckAnswer,
    accepts_reference,
    answer_on,
    refusal_findings,
)
from evaluator_svc.judge.comparison.verify import OutputCheck, check_output
from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.messages.comparison import RangeVerdict
from evaluator_svc.messages.distribution_traits import Trait, has
from kernel_foundry.domain.admission import Distribution, ValueRange
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.errors import TaskInvalidError

_OF_ALL_WEIGHTS: Final = (Distribution.WEIGHTS, Distribution.USUAL_WEIGHTS)

_TRIED_ELEMENTS: Final = 1 << 20
"""About as many, of some rows, tell whether they depend on others."""

_TIMED: Final = "among the timed calls"
_MIXED: Final = "rows of different distributions"

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


def verify_guests(
    draw: SharedDraw, ranges: Sequence[ValueRange], seeds: Sequence[int]
) -> tuple[RangeVerdict, ...]:
    """Return verdicts on calls among the timed ones that had the inputs of these seeds.

    What they wrote lies in the last output slots. Where it is what the run before wrote, to the
    bit, all that was found of that holds of it.
    """
    slot = draw.message()[0].slot_count - 1
    same = [seed for seed in seeds if slot and _is_as_before(draw, seed, slot)]
    verdicts = [_verdict(draw, s, ranges[s], slot, is_timed=True) for s in seeds if s not in same]
    if same:
        names = ", ".join(ranges[seed].distribution.value for seed in same)
        verdicts.append(
            RangeVerdict(check=_passed(draw, f"{_TIMED}: {names}: to the bit as before"))
        )
    touched = draw.stray_writes()
    modified = sorted({name for seed in seeds for name in draw.modified_inputs(seed)})
    if draw.is_lean:
        draw.drop_copies()
    if (touched or modified) and verdicts:
        first = verdicts[0]
        found = [stray_finding(touched)] if touched else []
        found += [modified_finding(tuple(modified))] if modified else []
        findings = (*found, *first.findings)
        verdicts[0] = dataclasses.replace(first, is_wrong=True, findings=findings)
    return tuple(verdicts)


def _is_as_before(draw: SharedDraw, seed: int, slot: int) -> bool:
    return all(
        draw.memory.same_bytes(
            draw.address(seed, output, 0), draw.address(seed, output, slot), output.size_bytes
        )
        for output in draw.output_slots
    )


def _verdict(
    draw: SharedDraw, seed: int, value_range: ValueRange, slot: int = 0, *, is_timed: bool = False
) -> RangeVerdict:
    where = f" {_TIMED}" if is_timed else ""
    # What is tried there is drawn: two verdicts have the check, not its ranges, in common.
    of_what = _MIXED if draw.has_mixed_rows(seed) else value_range.distribution.value
    name = f"{_TIMED}: {of_what}" if is_timed else of_what
    if not draw.prepared.task.compare:
        return _told(
            draw,
            seed,
            slot,
            value_range.distribution,
            name,
            where=f"{_WORDS.get(of_what, of_what)}{where}",
        )
    try:
        held = _held(draw, seed, value_range)
        if value_range.distribution is Distribution.ZEROS:
            draw.expect_without_inputs(seed)
    except TaskInvalidError:
        held = ()
    if not held:
        return RangeVerdict(check=_check(draw, name, CheckResult.SKIPPED, note=_NO_REFERENCE))
    outputs = _compared(draw, seed, slot, value_range.factor, held)
    if value_range.distribution is Distribution.LEVEL:
        outputs = [_of_numbers(output) for output in outputs]
    elif value_range.is_binding and any(output.is_wrong for output in outputs):
        needed = _needed_here(draw, seed, value_range)
        held = tuple(i for i in held if needed is not None and i not in needed.left_out)
        if needed is None or not held:
            return RangeVerdict(
                check=_check(draw, name, CheckResult.SKIPPED, note=_ILL_CONDITIONED)
            )
        factor = max(needed.factor, value_range.factor)
        value_range = dataclasses.replace(value_range, factor=factor)
        outputs = _compared(draw, seed, slot, factor, held)
    wrong = [output for output in outputs if output.is_wrong]
    if wrong and value_range.distribution is Distribution.NON_FINITE:
        numbers = wrong_numbers(draw, seed, wrong, slot=slot, factor=value_range.factor)
        if numbers:
            wrong, value_range = numbers, dataclasses.replace(value_range, is_binding=True)
    if not wrong:
        check = _check(
            draw,
            name,
            CheckResult.PASSED,
            outputs,
            factor=value_range.factor,
            note=_kept(draw, value_range, held),
        )
        is_audited = value_range.is_binding and has(value_range.distribution, Trait.AUDITED)
        # What cancels in some rows would hide the others.
        is_audited &= not draw.has_mixed_rows(seed)
        # Where nothing is added up, a few terms tell no more than ordinary values do.
        is_sum = not draw.prepared.traits.is_pointwise
        is_audited &= is_sum or not has(value_range.distribution, Trait.CANCELS)
        if not is_audited:
            return RangeVerdict(check=check)
        call = CallOutputs(draw=draw, seed=seed, slot=slot)
        audited = audit_call(call, with_elements=False, held=held, is_unusual=True)
        return RangeVerdict(check=check, audit=audited.audit, wide=audited.wide)
    is_binding = value_range.is_binding
    words = _WORDS.get(of_what, of_what)
    finding = range_finding(draw, wrong[0], value_range, f"{words}{where}")
    # Reported ranges are none to be suspicious of: kernels may do there as they like.
    result = CheckResult.FAILED if is_binding else CheckResult.PASSED
    note = "" if is_binding else "it differs there, which is reported and no reason to refuse"
    check = _check(draw, name, result, outputs, factor=value_range.factor, note=note)
    return RangeVerdict(check=check, is_wrong=is_binding, findings=(finding,))


def _told(
    draw: SharedDraw, seed: int, slot: int, distribution: Distribution, name: str, *, where: str
) -> RangeVerdict:
    """Return the verdict of the task's check, where it alone tells what is right."""
    task = draw.prepared.task
    try:
        answer = answer_on([CallOutputs(draw=draw, seed=seed, slot=slot)])
    except TaskInvalidError:
        return RangeVerdict(check=_check(draw, name, CheckResult.SKIPPED, note=_NO_REFERENCE))
    if answer.refusal and not _is_told_here(draw, seed, distribution, answer):
        check = _check(draw, name, CheckResult.SKIPPED, note=_ILL_CONDITIONED)
        return RangeVerdict(check=check)
    findings = refusal_findings(task, answer, where)
    check = _check(draw, name, answer.result, note=answer.note)
    return RangeVerdict(check=check, is_wrong=bool(answer.refusal), findings=findings)


def _is_told_here(
    draw: SharedDraw, seed: int, distribution: Distribution, answer: CheckAnswer
) -> bool:
    if draw.is_lean:
        # No memory for other runs of the reference; admission saw that rounding makes no NaN.
        return answer.is_no_number
    try:
        return accepts_reference(draw.input_set(seed), distribution)
    except TaskInvalidError:
        return False


def _held(draw: SharedDraw, seed: int, value_range: ValueRange) -> tuple[int, ...]:
    """Return which outputs are compared; of a range that binds those that are defined there."""
    outputs = range(len(draw.output_slots))
    if not value_range.is_binding:
        return tuple(outputs)
    may_be_endless = has(value_range.distribution, Trait.ENDLESS)
    is_defined = [
        output.has_no_nan() if may_be_endless else output.is_finite()
        for output in draw.expected(seed)
    ]
    return tuple(i for i in outputs if i not in value_range.left_out and is_defined[i])


def _kept(draw: SharedDraw, value_range: ValueRange, held: Sequence[int]) -> str:
    """Return a note on what the trial leaves open: outputs and parameters that are not checked."""
    free = [slot.name for i, slot in enumerate(draw.output_slots) if i not in held]
    notes = [f"but for {', '.join(free)}, which rounding or equal values decide there"]
    if not free:
        notes = []
    kept = draw.prepared.kept_weights
    if kept and value_range.distribution in _OF_ALL_WEIGHTS:
        notes.append(f"but for {', '.join(kept)}, which keeps its structure")
    return "; ".join(notes)


def _compared(
    draw: SharedDraw, seed: int, slot: int, factor: float, held: Sequence[int]
) -> list[OutputCheck]:
    tolerance = draw.tolerance.times(factor)
    return [
        check_output(draw, seed=seed, output=output, slots=(slot,), tolerance=tolerance)
        for output in held
    ]


def _needed_here(draw: SharedDraw, seed: int, value_range: ValueRange) -> NeededFactor | None:
    """Return the tolerance that the reference allows on this very draw; None: nothing is checked.

    It is asked before a candidate is refused, since admission asked on other values and maybe on
    another workload. A lean draw has no room for the copies that this takes. There rows of
    different distributions count if the reference computes some of them without the others.
    """
    if draw.is_lean:
        if draw.has_mixed_rows(seed) and not _has_independent_rows(draw, seed):
            return None
        return NeededFactor(factor=value_range.factor, left_out=value_range.left_out)
    try:
        return needed_factor(draw.input_set(seed), value_range.distribution, draw.tolerance)
    except TaskInvalidError:
        return None


def _has_independent_rows(draw: SharedDraw, seed: int) -> bool:
    outputs = [expected.tensor for expected in draw.expected(seed)]
    with draw.call_set(seed, None) as reference:
        largest = max(tensor.numel() for tensor in (*reference.inputs, *outputs))
        elements = min(_TRIED_ELEMENTS, largest // 4)  # never all of them
        rows = batch_slice(outputs, reference.inputs, elements=elements, seed=draw.seeds[seed])
        tolerance = draw.tolerance.rtol + draw.tolerance.atol
        try:
            return rows is not None and is_independent(
                rows, reference, outputs, tolerance=tolerance
            )
        except TaskInvalidError:
            return False


def _of_numbers(output: OutputCheck) -> OutputCheck:
    """Return the same check for which any number is right; all that is expected are numbers."""
    compared = output.comparisons
    counts = tuple(c.mismatch_count - c.nan_count - c.inf_count for c in compared)
    return dataclasses.replace(output, allowed_counts=counts)


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


def _passed(draw: SharedDraw, note: str) -> Check:
    return Check(
        kind=CheckKind.VALUE_RANGE, result=CheckResult.PASSED, workload=draw.workload, note=note
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
    "weights": "parameters of both signs, some zero, of up to 64 times the usual size",
    "usual_weights": "parameters of both signs, some zero",
    "weight_outliers": "ordinary parameters with one large element in each row",
    "large_integers": "whole numbers of large magnitude, or with fractions",
    "blocks": "matrices of two blocks with little between them",
    "negative": "inputs of which none is above zero, rows of different magnitudes",
    "alike": "inputs that are alike, some rows of them moved, negated or differing in a bit",
    "dense": "inputs without the zeros that lie alike in every draw",
    "extremes": (
        "masks that keep all, nothing, one or no run, with NaN where nothing is read, shares of"
        " zero or one, or labels and padding to be ignored"
    ),
    "near_one": "inputs around one",
    "beside_one": "inputs with rows that are close to one or zero, down to 2^-20",
    "near_zero": "inputs near zero",
    "absolute": "inputs of whole numbers, up to 240 or small beside negative ones",
    "close": "inputs whose rows are close to each other",
    "huge": "inputs so large that their squares overflow",
    "tiny": "inputs so small that their squares vanish",
    "lasting_weights": "parameters by which late outputs follow from early inputs",
    "far": "inputs with rows of large values of one sign, and with infinity in some rows",
    "places": (
        "places of which most are one or from the whole table, offsets with empty stretches, or"
        " lengths of zero, one and the whole row, with NaN behind them"
    ),
    "level": "inputs with rows, columns or channels of one value",
    "small": "inputs with rows that are small as a whole, or small variances",
    "bounds": (
        "inputs at the reference's own bounds, thresholds, padding or other marks, as large as"
        " what they are compared with, or up to the ends of what it takes"
    ),
    "ordered": "inputs with rows or columns in order or in turns, integers in runs",
    "columns": (
        "inputs with columns of large values of one sign or with infinity, and masks whose columns"
        " are all, nothing, one or a run"
    ),
}

"""Compares a record with a second evaluation of the same candidate on the same seeds.

On the same device and software, numbers that follow from the seeds are equal to the bit. On the
same device, times have to lie in the interval that is measured now. Signatures are
checked in `signature.py`.
"""

import math
from collections.abc import Iterator
from typing import Final

from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.evaluation import Correctness, Evaluation, Timing, WorkloadResult
from kernel_foundry.domain.finding import headline
from kernel_foundry.domain.fitness import fitness_bounds, suspect_fitness
from kernel_foundry.domain.language import Language
from kernel_foundry.evidence.record import EvidenceRecord
from kernel_foundry.sdk.verdict_text import duration, speedup_text
from kernel_foundry.sdk.verification.compare_checks import (
    TRUST_IN_TIMES,
    compare_checks,
    compare_trust,
)
from kernel_foundry.sdk.verification.statement import Agreement, Statement

_DEVICE: Final = ("device", "threads")
_SOFTWARE: Final = (
    "compiler", "torch", "float32 matmul precision", "TF32", "allocator", "Kernel Foundry",
)  # fmt: skip
"""Facts of a verdict's evidence that decide the bits of results."""

_SAME_TIME: Final = {Language.SYCL: 1.5, Language.CUDA: 1.15}
"""Ratio within which times of one device are the same: an interval covers the noise of its own
minute, and a host's other work differs between two of them."""

_SUM_DIGITS: Final = 1e-9
"""Relative; sums of many errors are added up in no fixed order."""

_TIME_OF: Final = "time of "
_SPEEDUP: Final = "speed-up"
_SPEEDUP_EAGER: Final = "speed-up over eager"
_TOO_WIDE: Final = "; the interval measured now is too wide to agree or to differ"
_NOT_CONFIRMED: Final = "not confirmed: another device, driver or number of threads than here"
_Speedup = tuple[float | None, tuple[float, float] | None]
"""Median and 95 % interval."""


def compare(record: EvidenceRecord, again: Evaluation) -> tuple[Statement, ...]:
    """Return a statement for each part of a record, compared with the second evaluation."""
    recorded = record.evaluation
    same_device = _differing(_DEVICE, recorded, again) == []
    same_software = _differing(_SOFTWARE, recorded, again) == []
    same = same_device and same_software
    return (
        _outcome(recorded, again),
        _environment(recorded, again),
        *compare_trust(recorded, again, same_device=same_device),
        *compare_checks(recorded, again, to_the_bit=same),
        *_results(record, again, to_the_bit=same),
        *_arithmetic(recorded, again, to_the_bit=same),
        *_fitness(recorded, again, same_software=same_software),
        *_times(record, again, same_device=same_device),
    )


def is_about_times(statement: Statement) -> bool:
    """Return whether a statement of `compare` is about times alone."""
    subjects = (_SPEEDUP, _SPEEDUP_EAGER, TRUST_IN_TIMES)
    return statement.subject in subjects or statement.subject.startswith(_TIME_OF)


def _outcome(recorded: Evaluation, again: Evaluation) -> Statement:
    agrees = recorded.outcome is again.outcome
    return Statement(
        subject="outcome",
        agreement=Agreement.AGREES if agrees else Agreement.DIFFERS,
        recorded=recorded.outcome.name,
        found=again.outcome.name,
        note="" if agrees else headline(again.findings),
    )


def _facts(evaluation: Evaluation) -> dict[str, str]:
    return {fact.name: fact.value for fact in evaluation.evidence}


def _differing(names: tuple[str, ...], recorded: Evaluation, again: Evaluation) -> list[str]:
    first, second = _facts(recorded), _facts(again)
    return [name for name in names if first.get(name) != second.get(name)]


def _environment(recorded: Evaluation, again: Evaluation) -> Statement:
    """Say what is different here; that decides what can be compared, and is no fault."""
    differing = _differing((*_DEVICE, *_SOFTWARE), recorded, again)
    if not differing:
        note = "same device, driver and versions: numbers must be the same to the bit"
        return Statement(subject="environment", agreement=Agreement.AGREES, note=note)
    first, second = _facts(recorded), _facts(again)
    return Statement(
        subject="environment",
        agreement=Agreement.NOT_COMPARABLE,
        recorded="; ".join(f"{name}: {first.get(name, '–')}" for name in differing),
        found="; ".join(f"{name}: {second.get(name, '–')}" for name in differing),
        note="another environment: numbers must be within the tolerance",
    )


def _results(record: EvidenceRecord, again: Evaluation, *, to_the_bit: bool) -> Iterator[Statement]:
    found = {result.workload: result for result in again.workloads}
    for result in record.evaluation.workloads:
        if result.correctness is None:
            continue
        other = found.get(result.workload)
        subject = f"errors on {result.workload}"
        if other is None or other.correctness is None:
            yield Statement(
                subject=subject, agreement=Agreement.DIFFERS, found="not reached", recorded="right"
            )
            continue
        yield _errors(subject, result.correctness, other.correctness, to_the_bit=to_the_bit)
    recorded = {result.workload for result in record.evaluation.workloads if result.correctness}
    asked = {workload.name for workload in record.task.workloads}
    for result in again.workloads:
        if result.correctness is None or result.workload in recorded:
            continue
        # Workloads that nobody named are generated, by other versions perhaps in other sizes.
        is_due = to_the_bit or result.workload in asked
        yield Statement(
            subject=f"errors on {result.workload}",
            agreement=Agreement.DIFFERS if is_due else Agreement.NOT_COMPARABLE,
            recorded="none",
            found=_error_text(result.correctness),
            note="the record leaves this workload out",
        )


def _errors(
    subject: str, recorded: Correctness, found: Correctness, *, to_the_bit: bool
) -> Statement:
    exact = to_the_bit and recorded.bitwise_reproducible and found.bitwise_reproducible
    if exact:
        agrees = _same_numbers(recorded, found)
        note = "to the bit" if agrees else "the same seeds give other numbers here"
    else:
        agrees = found.mismatch_count == 0 and found.element_count == recorded.element_count
        note = "within the tolerance" if agrees else "not within the tolerance"
    return Statement(
        subject=subject,
        agreement=Agreement.AGREES if agrees else Agreement.DIFFERS,
        recorded=_error_text(recorded),
        found=_error_text(found),
        note=note,
    )


def _same_numbers(recorded: Correctness, found: Correctness) -> bool:
    names = ("max_abs_error", "max_rel_error", "mismatch_count", "element_count", "first_mismatch")
    if any(getattr(recorded, name) != getattr(found, name) for name in names):
        return False
    first, second = recorded.precision, found.precision
    if first is None or second is None:
        return first is second
    audit = ("median_error", "p99_error", "max_error", "rms_error", "element_count")
    return all(
        math.isclose(getattr(first, name), getattr(second, name), rel_tol=_SUM_DIGITS)
        for name in audit
    )


def _error_text(correctness: Correctness) -> str:
    return (
        f"{correctness.mismatch_count} of {correctness.element_count} wrong, largest error "
        f"{correctness.max_abs_error:.9g}"
    )


def _arithmetic(
    recorded: Evaluation, again: Evaluation, *, to_the_bit: bool
) -> Iterator[Statement]:
    """Hold what object code and the bits of the same seeds show against the record."""
    is_exact = all(w.correctness.bitwise_reproducible for w in again.workloads if w.correctness)
    if not (to_the_bit and again.passed and is_exact) or recorded.arithmetic == again.arithmetic:
        return
    yield Statement(
        subject="arithmetic",
        agreement=Agreement.DIFFERS,
        recorded=recorded.arithmetic or "none",
        found=again.arithmetic or "none",
    )


def _fitness(
    recorded: Evaluation, again: Evaluation, *, same_software: bool
) -> Iterator[Statement]:
    """Say where a record's fitness does not follow from its own times by the formula of now."""
    timed = [w for w in recorded.workloads if not w.held_out and w.timing is not None]
    yardsticks = {w.workload: w.yardstick_ns for w in timed if w.yardstick_ns is not None}
    if not (same_software and recorded.passed and again.passed):
        return
    if len(yardsticks) < len(timed):
        found, agrees = "no yardstick", not any(w.yardstick_ns for w in again.workloads)
    else:
        certain, best = fitness_bounds(recorded, yardsticks)
        as_suspect = suspect_fitness(certain)
        due = {Trust.FULL: (certain,), Trust.SUSPECT: (as_suspect,)}
        found = f"{certain:.6g}"
        agrees = recorded.optimistic_fitness <= best * (1.0 + _SUM_DIGITS) and any(
            math.isclose(recorded.fitness, worth, rel_tol=_SUM_DIGITS)
            for worth in due.get(recorded.trust, (certain, as_suspect))
        )
    if not agrees:
        yield Statement(
            subject="fitness",
            agreement=Agreement.DIFFERS,
            recorded=f"{recorded.fitness:.6g}, at best {recorded.optimistic_fitness:.6g}",
            found=found,
            note="it does not follow from the record's own times",
        )


def _times(record: EvidenceRecord, again: Evaluation, *, same_device: bool) -> Iterator[Statement]:
    if not again.passed:
        return
    found = {result.workload: result for result in again.workloads}
    most = _SAME_TIME[record.source.language]
    for result in record.evaluation.workloads:
        if result.timing is None:
            continue
        other = found.get(result.workload)
        if other is None or other.timing is None:
            yield _untimed(result.workload, result.timing)
            continue
        yield _time(result, other.timing, most, same_device=same_device)
    first, second = record.evaluation, again
    yield _speedup(
        _SPEEDUP,
        (first.speedup, first.speedup_interval),
        (second.speedup, second.speedup_interval),
        most,
        same_device=same_device,
    )
    if (first.speedup_eager, second.speedup_eager) != (first.speedup, second.speedup):
        yield _speedup(
            _SPEEDUP_EAGER,
            (first.speedup_eager, first.speedup_eager_interval),
            (second.speedup_eager, second.speedup_eager_interval),
            most,
            same_device=same_device,
        )


def _untimed(workload: str, recorded: Timing) -> Statement:
    return Statement(
        subject=_TIME_OF + workload,
        agreement=Agreement.DIFFERS,
        recorded=_interval(recorded),
        found="not timed",
        note="a record claims times of timed workloads alone",
    )


def _time(result: WorkloadResult, found: Timing, most: float, *, same_device: bool) -> Statement:
    recorded = result.timing
    assert recorded is not None
    ratio = found.median_ns / recorded.median_ns
    agreement = _held_against(
        low=found.ci95_ns[0] / recorded.median_ns,
        high=found.ci95_ns[1] / recorded.median_ns,
        least_recorded=recorded.ci95_ns[0] / recorded.median_ns,
        most=most,
    )
    note = f"{ratio:.3f} times as long{_TOO_WIDE if agreement is Agreement.INCONCLUSIVE else ''}"
    return Statement(
        subject=_TIME_OF + result.workload,
        agreement=agreement if same_device else Agreement.NOT_COMPARABLE,
        recorded=_interval(recorded),
        found=_interval(found),
        note=note if same_device else _NOT_CONFIRMED,
    )


def _speedup(
    subject: str, recorded: _Speedup, found: _Speedup, most: float, *, same_device: bool
) -> Statement:
    (first, interval), (second, interval_again) = recorded, found
    agreement = Agreement.AGREES if first is second is None else Agreement.DIFFERS
    if first and second and interval and interval_again:
        # A speed-up is a time upside down.
        agreement = _held_against(
            low=first / interval_again[1],
            high=first / interval_again[0],
            least_recorded=first / interval[1],
            most=most,
        )
    note = _TOO_WIDE.removeprefix("; ") if agreement is Agreement.INCONCLUSIVE else ""
    return Statement(
        subject=subject,
        agreement=agreement if same_device else Agreement.NOT_COMPARABLE,
        recorded=speedup_text(first, interval),
        found=speedup_text(second, interval_again),
        note=note if same_device else _NOT_CONFIRMED,
    )


def _held_against(*, low: float, high: float, least_recorded: float, most: float) -> Agreement:
    """Whether a recorded time holds, by the 95 % interval that was measured now.

    Whoever makes a record up chooses its samples, and with them how far its interval reaches: that
    interval excuses a record that claims too little, never one that claims too much.

    Args:
        low: Lower end of the interval of now, over the recorded median.
        high: Its upper end, likewise.
        least_recorded: Lower end of the recorded interval, likewise.
        most: Ratio within which two times are the same.
    """
    if 1 / most <= low and high <= most:
        return Agreement.AGREES
    if low > most or high < min(1 / most, least_recorded):
        return Agreement.DIFFERS
    return Agreement.INCONCLUSIVE


def _interval(timing: Timing) -> str:
    low, high = timing.ci95_ns
    return f"{duration(timing.median_ns)} ({duration(low)} to {duration(high)})"

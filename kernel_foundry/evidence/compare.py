"""What agrees between a record and a second evaluation of the same candidate on the same seeds.

Numbers that the seeds decide are the same to the bit where device and software are; times are
held against each other's intervals where the device is the same. Knows nothing of signatures.
"""

import math
from collections import Counter
from collections.abc import Iterator
from typing import Final

from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import Correctness, Evaluation, Timing, WorkloadResult
from kernel_foundry.domain.finding import headline
from kernel_foundry.domain.language import Language
from kernel_foundry.evidence.record import EvidenceRecord
from kernel_foundry.evidence.statement import Agreement, Statement
from kernel_foundry.view import duration, speedup_text

_DEVICE: Final = ("device", "threads")
_SOFTWARE: Final = (
    "compiler", "torch", "float32 matmul precision", "TF32", "allocator", "Kernel Foundry",
)  # fmt: skip
"""Facts of a verdict's evidence that decide the bits of results."""

_SAME_TIME: Final = {Language.SYCL: 1.5, Language.CUDA: 1.15}
"""Ratio within which times of one device agree although their intervals are apart: an interval
covers the noise of its own minute, and a host's other work differs between two of them."""

_OF_THE_MOMENT: Final = (
    CheckKind.CLOCK,
    CheckKind.PHYSICAL_FLOOR,
    CheckKind.SECOND_MEASUREMENT,
)
"""Checks of times: what made one suspicious may not come again."""

_WORST: Final = tuple(CheckResult[n] for n in ("SKIPPED", "PASSED", "SUSPECT", "FAILED"))

_OF_THE_SEEDS: Final = (CheckKind.COMPARISON, CheckKind.PRECISION)
"""Checks whose figures the seeds decide, where a kernel gives the same result in every run."""

_SUM_DIGITS: Final = 1e-9
"""Relative; sums of many errors are added up in no fixed order."""

_TIME_OF: Final = "time of "
_SPEEDUP: Final = "speed-up"
_NOT_CONFIRMED: Final = "not confirmed: another device, driver or number of threads than here"

CheckName = tuple[CheckKind, str, str, int]


def compare(record: EvidenceRecord, again: Evaluation) -> tuple[Statement, ...]:
    """Return line by line what agrees between a record and the evaluation of now."""
    recorded = record.evaluation
    same_device = _differing(_DEVICE, recorded, again) == []
    same_software = _differing(_SOFTWARE, recorded, again) == []
    return (
        _outcome(recorded, again),
        _environment(recorded, again),
        *_checks(recorded, again, to_the_bit=same_device and same_software),
        *_results(record, again, to_the_bit=same_device and same_software),
        *_times(record, again, same_device=same_device),
    )


def is_about_times(statement: Statement) -> bool:
    """Return whether a statement of `compare` is about times alone."""
    return statement.subject == _SPEEDUP or statement.subject.startswith(_TIME_OF)


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


def _checks(recorded: Evaluation, again: Evaluation, *, to_the_bit: bool) -> Iterator[Statement]:
    found = _named(again.checks)
    exact = _exact_workloads(recorded) & _exact_workloads(again) if to_the_bit else set()
    for name, check in _named(recorded.checks).items():
        by_seeds = check.kind in _OF_THE_SEEDS and check.workload in exact
        yield _check(check, _counterpart(name, found), compares_figures=by_seeds)
    told = {check.kind for check in recorded.checks}
    for check in again.checks:
        is_worse = check.result in (CheckResult.SUSPECT, CheckResult.FAILED)
        if is_worse and check.kind not in told:
            yield _left_out(check)


def _exact_workloads(evaluation: Evaluation) -> set[str]:
    """Return the workloads whose results are the same in every run."""
    return {
        w.workload
        for w in evaluation.workloads
        if w.correctness is not None and w.correctness.bitwise_reproducible
    }


def _named(checks: tuple[Check, ...]) -> dict[CheckName, Check]:
    """Return checks by kind, workload, distribution and which one of its sort it is."""
    seen: Counter[tuple[CheckKind, str, str]] = Counter()
    named = {}
    for check in checks:
        key = (check.kind, check.workload, _distribution(check))
        named[*key, seen[key]] = check
        seen[key] += 1
    return named


def _counterpart(name: CheckName, found: dict[CheckName, Check]) -> Check | None:
    """Return the same check of now; how often some are made depends on how long things took."""
    if name in found:
        return found[name]
    others = [check for other, check in found.items() if other[:-1] == name[:-1]]
    return max(others, key=lambda check: _WORST.index(check.result), default=None)


def _distribution(check: Check) -> str:
    """Return the distribution that a check of value ranges is about; "" for other checks."""
    return check.note.partition(":")[0] if check.kind is CheckKind.VALUE_RANGE else ""


def _check(recorded: Check, found: Check | None, *, compares_figures: bool) -> Statement:
    agrees = found is not None and found.result is recorded.result
    agreement = Agreement.AGREES if agrees else Agreement.DIFFERS
    is_failed = found is not None and found.result is CheckResult.FAILED
    if not agrees and not is_failed and recorded.kind in _OF_THE_MOMENT:
        agreement = Agreement.NOT_COMPARABLE
    note = "" if found is None or agrees else found.note
    if agrees and compares_figures and (differing := _differing_figures(recorded, found)):
        agreement, note = Agreement.DIFFERS, f"the same seeds give other figures: {differing}"
    return Statement(
        subject=_check_subject(recorded),
        agreement=agreement,
        recorded=_check_text(recorded),
        found="not made" if found is None else _check_text(found),
        note=note,
    )


def _left_out(found: Check) -> Statement:
    """Say that a record is silent of a check that casts doubt on its candidate."""
    of_the_moment = found.kind in _OF_THE_MOMENT
    return Statement(
        subject=_check_subject(found),
        agreement=Agreement.NOT_COMPARABLE if of_the_moment else Agreement.DIFFERS,
        recorded="none",
        found=_check_text(found),
        note=found.note,
    )


def _check_subject(check: Check) -> str:
    place = f" on {check.workload}" if check.workload else ""
    which = f" ({name})" if (name := _distribution(check)) else ""
    return f"check {check.kind.value.replace('_', ' ')}{which}{place}"


def _check_text(check: Check) -> str:
    figures = ", ".join(f"{figure.name} {figure.value:.6g}" for figure in check.figures)
    return f"{check.result.value} ({figures})" if figures else check.result.value


def _differing_figures(recorded: Check, found: Check | None) -> str:
    first = {figure.name: figure.value for figure in recorded.figures}
    second = {figure.name: figure.value for figure in found.figures} if found else {}
    differing = [
        name
        for name in first.keys() | second.keys()
        if name not in first
        or name not in second
        or not math.isclose(first[name], second[name], rel_tol=_SUM_DIGITS)
    ]
    return ", ".join(sorted(differing))


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
    yield _speedup(record.evaluation, again, most, same_device=same_device)


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
    overlap = found.ci95_ns[0] <= recorded.ci95_ns[1] and recorded.ci95_ns[0] <= found.ci95_ns[1]
    note = f"{ratio:.3f} times as long; intervals {'overlap' if overlap else 'are apart'}"
    # A time that is shorter than now's must lie within what was measured now: whoever makes a
    # record up chooses its samples, and with them how far its interval reaches.
    is_borne_out = found.ci95_ns[0] <= most * recorded.median_ns if ratio > 1.0 else overlap
    agrees = is_borne_out or 1 / most <= ratio <= most
    return Statement(
        subject=_TIME_OF + result.workload,
        agreement=_measured(agrees=agrees, same_device=same_device),
        recorded=_interval(recorded),
        found=_interval(found),
        note=note if same_device else _NOT_CONFIRMED,
    )


def _speedup(
    recorded: Evaluation, again: Evaluation, most: float, *, same_device: bool
) -> Statement:
    first, second = recorded.speedup, again.speedup
    interval, interval_again = recorded.speedup_interval, again.speedup_interval
    agrees = first is None and second is None
    if first and second and interval and interval_again:
        overlap = interval[0] <= interval_again[1] and interval_again[0] <= interval[1]
        is_borne_out = first <= most * interval_again[1] if first > second else overlap
        agrees = is_borne_out or 1 / most <= second / first <= most
    return Statement(
        subject=_SPEEDUP,
        agreement=_measured(agrees=agrees, same_device=same_device),
        recorded=speedup_text(first, interval),
        found=speedup_text(second, interval_again),
        note="" if same_device else _NOT_CONFIRMED,
    )


def _measured(*, agrees: bool, same_device: bool) -> Agreement:
    if not same_device:
        return Agreement.NOT_COMPARABLE
    return Agreement.AGREES if agrees else Agreement.DIFFERS


def _interval(timing: Timing) -> str:
    low, high = timing.ci95_ns
    return f"{duration(timing.median_ns)} ({duration(low)} to {duration(high)})"

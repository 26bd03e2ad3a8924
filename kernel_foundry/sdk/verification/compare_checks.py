"""Whether the checks of a record and its trust come out again in a second evaluation.

Results and times are compared in `compare.py`.
"""

import math
from collections import Counter
from collections.abc import Iterator
from typing import Final

from kernel_foundry.domain.check import Check, CheckKind, CheckResult, Trust
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.sdk.verification.statement import Agreement, Statement

TRUST_IN_TIMES: Final = "trust in the times"
"""Subject of the statement on trust if only times are suspect now."""

_OF_THE_MOMENT: Final = (
    CheckKind.CLOCK,
    CheckKind.PHYSICAL_FLOOR,
    CheckKind.SECOND_MEASUREMENT,
)
"""Checks of times: what made one suspicious may not come again."""

_OPTIONAL: Final = (CheckKind.SECOND_MEASUREMENT, CheckKind.VALUE_RANGE)
"""Checks that are made for a suspect, or as far as time allows."""

_WORST: Final = tuple(CheckResult[n] for n in ("SKIPPED", "PASSED", "SUSPECT", "FAILED"))
_TRUST: Final = (Trust.FOREIGN, Trust.DEGENERATE, Trust.SUSPECT, Trust.FULL)
"""From the least on."""

_OF_THE_SEEDS: Final = (CheckKind.COMPARISON, CheckKind.PRECISION)
"""Checks whose figures the seeds decide, where a kernel gives the same result in every run."""

_SUM_DIGITS: Final = 1e-9
"""Relative; sums of many errors are added up in no fixed order."""

_LESS_TRUST: Final = {
    Trust.SUSPECT: "the record claims more trust than the candidate gets now; see its checks",
    Trust.DEGENERATE: "a trivial answer passes this task, and the record does not say so",
}

_CheckName = tuple[CheckKind, str, str, int]


def compare_trust(
    recorded: Evaluation, again: Evaluation, *, same_device: bool
) -> Iterator[Statement]:
    """Yield whether a record's trust is no better than what the evaluation of now gives.

    If only times are suspect now, that may be due to this device or this minute: the subject is
    then `TRUST_IN_TIMES`.
    """
    if not again.passed:
        return  # the outcome says so, and trust is of what passed
    is_borne_out = _TRUST.index(recorded.trust) <= _TRUST.index(again.trust)
    suspect = {check.kind for check in again.checks if check.result is CheckResult.SUSPECT}
    is_of_times = again.trust is Trust.SUSPECT and suspect and suspect <= set(_OF_THE_MOMENT)
    agreement = Agreement.AGREES if is_borne_out else Agreement.DIFFERS
    if is_of_times and not is_borne_out and not same_device:
        agreement = Agreement.NOT_COMPARABLE
    yield Statement(
        subject=TRUST_IN_TIMES if is_of_times else "trust",
        agreement=agreement,
        recorded=recorded.trust.value,
        found=again.trust.value,
        note="" if is_borne_out else _LESS_TRUST[again.trust],
    )


def compare_checks(
    recorded: Evaluation, again: Evaluation, *, to_the_bit: bool
) -> Iterator[Statement]:
    """Yield how each check of the record comes out now, and which it leaves out.

    Args:
        recorded: The record's evaluation.
        again: That of now.
        to_the_bit: Whether device and software are the same.
    """
    found = _named(again.checks)
    exact = _exact_workloads(recorded) & _exact_workloads(again) if to_the_bit else set()
    for name, check in _named(recorded.checks).items():
        by_seeds = check.kind in _OF_THE_SEEDS and check.workload in exact
        yield _check(check, _counterpart(name, found), compares_figures=by_seeds)
    yield from _left_out(recorded, again, to_the_bit=to_the_bit)


def _exact_workloads(evaluation: Evaluation) -> set[str]:
    return {
        w.workload
        for w in evaluation.workloads
        if w.correctness is not None and w.correctness.bitwise_reproducible
    }


def _named(checks: tuple[Check, ...]) -> dict[_CheckName, Check]:
    """Checks by kind, workload, distribution and which one of its sort it is."""
    seen: Counter[tuple[CheckKind, str, str]] = Counter()
    named = {}
    for check in checks:
        key = (check.kind, check.workload, _distribution(check))
        named[*key, seen[key]] = check
        seen[key] += 1
    return named


def _counterpart(name: _CheckName, found: dict[_CheckName, Check]) -> Check | None:
    """The same check of now; how often some are made depends on how long things took."""
    if name in found:
        return found[name]
    others = [check for other, check in found.items() if other[:-1] == name[:-1]]
    return max(others, key=lambda check: _WORST.index(check.result), default=None)


def _distribution(check: Check) -> str:
    """The distribution that a check of value ranges is about; "" for other checks."""
    return check.note.partition(":")[0] if check.kind is CheckKind.VALUE_RANGE else ""


def _check(recorded: Check, found: Check | None, *, compares_figures: bool) -> Statement:
    agrees = found is not None and found.result is recorded.result
    agreement = Agreement.AGREES if agrees else Agreement.DIFFERS
    is_failed = found is not None and found.result is CheckResult.FAILED
    is_absent = found is None or found.result is CheckResult.SKIPPED
    # A host may have no sanitizer, and no time for more value ranges.
    may_be_absent = recorded.kind in (*_OPTIONAL, CheckKind.SANITIZER) and is_absent
    if not agrees and not is_failed and (may_be_absent or recorded.kind in _OF_THE_MOMENT):
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


def _left_out(recorded: Evaluation, again: Evaluation, *, to_the_bit: bool) -> Iterator[Statement]:
    """Yield a line for each check of now that the record does not have.

    By kind and workload: how often one is made depends on how long things took. With other software
    only a check that is suspect or failed speaks against the record.
    """
    told, names = _worst(recorded.checks), _named(recorded.checks)
    for key, found in _worst(again.checks).items():
        is_worse = found.result in (CheckResult.SUSPECT, CheckResult.FAILED)
        if key in told and (not is_worse or _is_named(found, again, names)):
            continue
        if key in told and told[key].result in (found.result, CheckResult.FAILED):
            continue
        if found.kind in _OPTIONAL and not is_worse:
            continue
        may_come = found.kind in _OF_THE_MOMENT or not is_worse
        excused = may_come and (key in told or found.kind in _OPTIONAL or not to_the_bit)
        yield Statement(
            subject=_check_subject(found),
            agreement=Agreement.NOT_COMPARABLE if excused else Agreement.DIFFERS,
            recorded="none",
            found=_check_text(found),
            note=found.note or "the record leaves this check out",
        )


def _worst(checks: tuple[Check, ...]) -> dict[tuple[CheckKind, str], Check]:
    worst: dict[tuple[CheckKind, str], Check] = {}
    for check in checks:
        key = (check.kind, check.workload)
        if key not in worst or _WORST.index(check.result) > _WORST.index(worst[key].result):
            worst[key] = check
    return worst


def _is_named(wanted: Check, evaluation: Evaluation, names: dict[_CheckName, Check]) -> bool:
    """Whether a check of an evaluation has a name that is among `names`."""
    named = _named(evaluation.checks).items()
    return any(check is wanted and name in names for name, check in named)


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

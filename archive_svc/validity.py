"""What must hold for a run and for a verdict before they are stored.

Knows nothing of where they come from: a caller, or a file.
"""

import math
from collections.abc import Iterator
from typing import Final

from archive_svc.strategies import STRATEGIES
from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation, Timing, WorkloadResult
from kernel_foundry.domain.run_name import check_run_name
from kernel_foundry.errors import InvalidArgumentError

_LEAST_NS: Final = 1e-3
_MOST_NS: Final = 1e15
"""Eleven days. A time beyond these was never measured, and its speed-ups overflow."""

_YEAR_10000_UNIX_S: Final = 253_402_300_800.0


def check_spec(spec: RunSpec) -> None:
    """Refuse a run whose name or strategy cannot be.

    Raises:
        InvalidArgumentError: it says which field and what is allowed.
    """
    check_run_name(spec.name)
    if spec.strategy not in STRATEGIES:
        raise InvalidArgumentError(
            f"strategy {spec.strategy!r}: expected one of {', '.join(STRATEGIES)}",
            field="strategy",
        )


def check_verdict(candidate: Candidate, evaluation: Evaluation, cost_usd: float) -> None:
    """Refuse numbers that no verdict has, and a verdict on another candidate.

    Raises:
        InvalidArgumentError: it says which field and what is allowed.
    """
    if not (math.isfinite(cost_usd) and cost_usd >= 0):
        raise InvalidArgumentError(f"cost_usd is {cost_usd}, expected >= 0", field="cost_usd")
    for name in ("fitness", "optimistic_fitness"):
        value = getattr(evaluation, name)
        if not 0 <= value < math.inf:
            raise InvalidArgumentError(
                f"{name} is {value}, expected a number from 0", field=f"evaluation.{name}"
            )
    for result in evaluation.workloads:
        fault = next(_faults(result), "")
        if fault:
            raise InvalidArgumentError(
                f"{result.workload[:200]}: {fault}", field="evaluation.workloads"
            )
    signed = evaluation.attestation
    if signed is not None and not 0 <= signed.signed_unix_s < _YEAR_10000_UNIX_S:
        raise InvalidArgumentError(
            f"it was signed at {signed.signed_unix_s} s, expected the years 1970 to 9999",
            field="evaluation.attestation.signed_unix_s",
        )
    # A text that the evaluator could not read has a digest of its own there.
    if evaluation.passed and evaluation.candidate != candidate.digest:
        raise InvalidArgumentError(
            f"the verdict is on candidate {evaluation.candidate}, not on {candidate.digest}",
            field="evaluation.candidate",
        )


def _faults(result: WorkloadResult) -> Iterator[str]:
    """Iterate over what no measurement of a workload gives."""
    timings = [*(b.timing for b in result.baselines), result.timing, result.warm_timing]
    for timing in timings:
        if timing is not None:
            yield from _timing_faults(timing)
    for name in ("traffic_bound_ns", "arithmetic_estimate_ns", "prepare_ns", "prepare_limit_ns"):
        value = getattr(result, name)
        if value is not None and not 0 <= value <= _MOST_NS:
            yield f"{name} is {value}, expected 0 to {_MOST_NS:g}"
    if result.yardstick_ns is not None and not _is_time(result.yardstick_ns):
        yield f"yardstick_ns is {result.yardstick_ns}, {_EXPECTED}"


def _timing_faults(timing: Timing) -> Iterator[str]:
    lower, median, upper = timing.bounds_ns
    if not _is_time(median):
        yield f"a median is {median} ns, {_EXPECTED}"
    # A clock may say 0 for a single call.
    if not 0 <= lower <= median <= upper <= _MOST_NS:
        yield f"an interval is {lower} to {upper} ns about {median}, expected it in order"
    for samples in (timing.samples_ns, timing.device_ns, timing.host_ns):
        if not all(0 <= sample <= _MOST_NS for sample in samples):
            yield f"a time of a call is none, expected 0 to {_MOST_NS:g} ns"


_EXPECTED: Final = f"expected {_LEAST_NS:g} to {_MOST_NS:g}"


def _is_time(value: float) -> bool:
    return _LEAST_NS <= value <= _MOST_NS

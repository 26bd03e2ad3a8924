"""Checks of a verdict before anybody stores it, learns from it or goes on from it.

One check for every door: what is added to an archive, read from a file of a run, reported to a
generator, shown to it as a parent, or taken up by a loop.
"""

import math
from collections.abc import Iterator
from typing import Final

from kernel_foundry.domain.archive import Elite
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.evaluation import Evaluation, Timing, WorkloadResult
from kernel_foundry.domain.fitness import correct_fitness
from kernel_foundry.domain.name import LONGEST_WORKLOAD, check_name
from kernel_foundry.domain.profile import numbers_of
from kernel_foundry.domain.task import Task
from kernel_foundry.domain.task_limits import LARGEST_WEIGHT
from kernel_foundry.errors import InvalidArgumentError

LEAST_NS: Final = 1e-3
MOST_NS: Final = 1e15
"""Eleven days. A time beyond these was never measured, and its speed-ups overflow."""

MOST_FITNESS: Final = correct_fitness(MOST_NS / LEAST_NS)
"""Fitness of the longest baseline over the shortest call, about 44."""

MOST_CONFIGURATIONS: Final = 1 << 16
"""Configurations of one sweep."""

_YEAR_10000_UNIX_S: Final = 253_402_300_800.0


def check_verdict(candidate: Candidate, evaluation: Evaluation, task: Task | None = None) -> None:
    """Refuse numbers that no verdict has, and a verdict on another candidate or task.

    Args:
        candidate: What was judged.
        evaluation: The verdict.
        task: Of the run; None where it is not known.

    Raises:
        InvalidArgumentError: it says which field and what is allowed.
    """
    for name in ("fitness", "optimistic_fitness"):
        _check_fitness(f"evaluation.{name}", getattr(evaluation, name))
    if not 0 <= evaluation.swept_count <= MOST_CONFIGURATIONS:
        raise InvalidArgumentError(
            f"swept_count is {evaluation.swept_count}, expected 0 to {MOST_CONFIGURATIONS}",
            field="evaluation.swept_count",
        )
    for result in evaluation.workloads:
        check_name(result.workload, "evaluation.workloads.workload", LONGEST_WORKLOAD)
        fault = next(_faults(result), "")
        if fault:
            raise InvalidArgumentError(f"{result.workload}: {fault}", field="evaluation.workloads")
    if evaluation.profile is not None:
        odd = [n for n in numbers_of(evaluation.profile) if not 0 <= n <= MOST_NS]
        if odd:
            raise InvalidArgumentError(
                f"a number of the profile is {odd[0]}, expected 0 to {MOST_NS:g}",
                field="evaluation.profile",
            )
    if evaluation.trust is Trust.FOREIGN:
        raise InvalidArgumentError(
            "it is on a foreign kernel, which can be material of a run and no candidate",
            field="evaluation.trust",
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
    if task is not None:
        _check_task(evaluation, task)


def check_elite(elite: Elite, field: str) -> None:
    """Refuse an elite whose verdict `check_verdict` refuses, or whose fitness is none.

    Raises:
        InvalidArgumentError: it says which field and what is allowed.
    """
    _check_fitness(f"{field}.fitness", elite.fitness)
    check_verdict(elite.candidate, elite.evaluation)


def _check_task(evaluation: Evaluation, task: Task) -> None:
    """Refuse a verdict on another task; of this one it has every timed workload if it passed."""
    if evaluation.task != task.digest:
        raise InvalidArgumentError(
            f"the verdict is on task {evaluation.task[:80]}, not on the run's, {task.digest}",
            field="evaluation.task",
        )
    timed = sorted(w.workload for w in evaluation.workloads if not w.held_out)
    named = sorted(w.name for w in task.workloads if not w.held_out)
    if timed != named if evaluation.passed else not set(timed) <= set(named):
        raise InvalidArgumentError(
            f"the verdict is on workloads {', '.join(timed)[:200]}; the task has "
            f"{', '.join(named)[:200]}",
            field="evaluation.workloads",
        )
    for result in evaluation.workloads:
        if not result.held_out and result.weight != task.weight_of(result.workload):
            raise InvalidArgumentError(
                f"{result.workload}: its weight is {result.weight}; the task has"
                f" {task.weight_of(result.workload)}",
                field="evaluation.workloads.weight",
            )


def _check_fitness(field: str, value: float) -> None:
    if not (math.isfinite(value) and 0 <= value <= MOST_FITNESS):
        raise InvalidArgumentError(
            f"{field} is {value}, expected 0 to {MOST_FITNESS:.1f}", field=field
        )


def _faults(result: WorkloadResult) -> Iterator[str]:
    """Iterate over what no measurement of a workload gives."""
    timings = [*(b.timing for b in result.baselines), result.timing, result.warm_timing]
    for timing in timings:
        if timing is not None:
            yield from _timing_faults(timing)
    for name in ("traffic_bound_ns", "arithmetic_estimate_ns", "prepare_ns", "prepare_limit_ns"):
        value = getattr(result, name)
        if value is not None and not 0 <= value <= MOST_NS:
            yield f"{name} is {value}, expected 0 to {MOST_NS:g}"
    if not 1 / LARGEST_WEIGHT <= result.weight <= LARGEST_WEIGHT:
        yield f"a weight is {result.weight}, expected {1 / LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}"
    if result.yardstick_ns is not None and not _is_time(result.yardstick_ns):
        yield f"yardstick_ns is {result.yardstick_ns}, {_EXPECTED}"


def _timing_faults(timing: Timing) -> Iterator[str]:
    lower, median, upper = timing.bounds_ns
    if not _is_time(median):
        yield f"a median is {median} ns, {_EXPECTED}"
    # A clock may say 0 for a single call.
    if not 0 <= lower <= median <= upper <= MOST_NS:
        yield f"an interval is {lower} to {upper} ns about {median}, expected it in order"
    for samples in (timing.samples_ns, timing.device_ns, timing.host_ns):
        if not all(0 <= sample <= MOST_NS for sample in samples):
            yield f"a time of a call is out of range, expected 0 to {MOST_NS:g} ns"


_EXPECTED: Final = f"expected {LEAST_NS:g} to {MOST_NS:g}"


def _is_time(value: float) -> bool:
    return LEAST_NS <= value <= MOST_NS

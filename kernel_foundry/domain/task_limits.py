"""Limits on the lengths and figures of a task: one check for whoever judges, stores or is shown it.

Of a request for a verdict there are more: `evaluator_svc/requests/request_limits.py`.
"""

from typing import Final

from kernel_foundry.domain.bounds import check_count, check_length, check_number, out_of_bounds
from kernel_foundry.domain.name import LONGEST_WORKLOAD, check_name
from kernel_foundry.domain.task import Task, Tolerance

LONGEST_REFERENCE: Final = 1 << 18
"""Characters. It is read in the supervisor, at some hundred bytes of memory for each."""
LONGEST_INSTRUCTIONS: Final = 1 << 16
"""Characters."""
MOST_WORKLOADS: Final = 256
LARGEST_SIZE: Final = 1 << 40
"""Largest value of a constant that a workload overrides."""
LARGEST_WEIGHT: Final = 1e6
"""Largest weight of a workload; the smallest is one over it."""
LEAST_MATCHED: Final = 0.5
"""Share of an output's elements that have to be within the tolerance."""
MOST_BITS: Final = 24
"""Float32's mantissa: no output in float32 has more."""

_LONGEST_NAME: Final = 200
_MOST_OF_A_LIST: Final = 1024
_MOST_TOLERANCE: Final = 1e30


def check_task(task: Task) -> None:
    """Refuse a task that no task file gives.

    Raises:
        InvalidArgumentError: it says which field and what is allowed.
    """
    if task.name:  # without one it is only judged, and no table shows it
        check_name(task.name, "task.name")
    check_length("task.reference", task.reference, LONGEST_REFERENCE)
    check_length("task.check", task.check, _LONGEST_NAME)
    check_length("task.instructions", task.instructions, LONGEST_INSTRUCTIONS)
    _check_tolerance("task.tolerance", task.tolerance)
    check_number("task.least_bits", task.least_bits, 0.0, MOST_BITS, "bits")
    for field in ("library_ops", "constants"):
        names = getattr(task, field)
        check_count(f"task.{field}", len(names), _MOST_OF_A_LIST)
        for name in names:
            check_length(f"task.{field}", name, _LONGEST_NAME)
    check_count("task.workloads", len(task.workloads), MOST_WORKLOADS)
    for workload in task.workloads:
        check_name(workload.name, "task.workloads.name", LONGEST_WORKLOAD)
        check_count("task.workloads.sizes", len(workload.sizes), _MOST_OF_A_LIST)
        for size in workload.sizes:
            check_length("task.workloads.sizes.name", size.name, _LONGEST_NAME)
            if not 0 < size.value <= LARGEST_SIZE:
                raise out_of_bounds(
                    "task.workloads.sizes",
                    f"{size.name} is {size.value}, expected 1 to {LARGEST_SIZE}",
                )
        check_count("task.workloads.scalars", len(workload.scalars), _MOST_OF_A_LIST)
        for scalar in workload.scalars:
            check_length("task.workloads.scalars.name", scalar.name, _LONGEST_NAME)
        _check_tolerance("task.workloads.tolerance", workload.tolerance)
        check_number("task.workloads.weight", workload.weight, 1 / LARGEST_WEIGHT, LARGEST_WEIGHT)


def _check_tolerance(field: str, tolerance: Tolerance | None) -> None:
    if tolerance is None:
        return
    for name in ("rtol", "atol"):
        check_number(f"{field}.{name}", getattr(tolerance, name), 0.0, _MOST_TOLERANCE)
    check_number(f"{field}.matched", tolerance.matched, LEAST_MATCHED, 1.0)
    # Shares of outputs follow from an admission.
    check_count(f"{field}.output_shares", len(tolerance.output_shares), 0)

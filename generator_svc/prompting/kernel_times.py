"""The time of each kernel of a candidate that launches several, as prompts show it."""

from typing import Final

from generator_svc.prompting.units import time_text
from kernel_foundry.domain.evaluation import WorkloadResult
from kernel_foundry.domain.kernel_time import shares

_MOST: Final = 6
"""Kernels named, those that take longest first; together they fit into one line."""


def kernel_times_lines(result: WorkloadResult) -> list[str]:
    """Return one line with launches, mean time and share of each kernel; none for one kernel."""
    times = sorted(
        zip(result.kernel_times, shares(result.kernel_times), strict=True),
        key=lambda pair: -pair[1],
    )
    if not times:
        return []
    times_texts = ", ".join(
        f"{time.kernel} {time.launches} x {time_text(time.launch_ns)} ({share:.0%})"
        for time, share in times[:_MOST]
    )
    rest = f", and {len(times) - _MOST} others" if len(times) > _MOST else ""
    return [
        f"workload {result.workload}: time per kernel, launched one by one: {times_texts}{rest}"
    ]

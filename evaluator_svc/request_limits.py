"""Limits on the figures and lengths of a request, checked before anything is built.

What a client says may end in what is signed, or decide how long a device is held.
"""

import math
from collections.abc import Mapping
from typing import Final

from evaluator_svc.given_seeds import check_seeds
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE, KernelSource
from kernel_foundry.domain.evaluation import Setting
from kernel_foundry.domain.name import LONGEST_WORKLOAD, check_name
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.sweep import SweepRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.domain.verdict_limits import LEAST_NS, MOST_CONFIGURATIONS, MOST_NS
from kernel_foundry.errors import InvalidArgumentError

_LONGEST_REFERENCE: Final = 1 << 18
"""Characters. Read in the supervisor, as a candidate is, at some hundred bytes for each."""
_LONGEST_NAME: Final = 200
_LONGEST_INSTRUCTIONS: Final = 1 << 16

_LEAST_SECONDS: Final = 1e-3
_MOST_SECONDS: Final = 3600.0
"""Of one build, run or timing."""
_MOST_SWEEP_SECONDS: Final = 86_400.0
_MOST_WORKLOADS: Final = 256
_MOST_OF_OTHER_LISTS: Final = 1024
_MOST_BITS: Final = 24.0
_MOST_TOLERANCE: Final = 1e30
_LARGEST_SIZE: Final = 1 << 40


def check_evaluation(request: EvaluationRequest) -> None:
    """Refuse a request for a verdict that no caller can mean.

    Raises:
        InvalidArgumentError: it says which field and what is allowed.
    """
    check_task(request.task)
    _check_source(request.source)
    _check_length("request_id", request.request_id, _LONGEST_NAME)
    _check_settings("configuration", request.configuration)
    _check_limits(request.limits)
    known = {workload.name for workload in request.task.workloads}
    _check_count("stop_above_ns", len(request.stop_above_ns), len(known))
    for time_ns in request.stop_above_ns:
        # 0 stands for a workload without an incumbent.
        if time_ns:
            _check_number("stop_above_ns", time_ns, LEAST_NS, MOST_NS, "ns")
    for yardstick in request.yardsticks:
        if yardstick.workload not in known:
            raise _invalid("yardsticks", f"{yardstick.workload[:80]!r} is no workload of the task")
        _check_number("yardsticks.time_ns", yardstick.time_ns, LEAST_NS, MOST_NS, "ns")
    _check_count("yardsticks", len(request.yardsticks), len(known))
    check_seeds(request)


def check_sweep(request: SweepRequest) -> None:
    """Refuse a request for a sweep that no caller can mean; raises as `check_evaluation`."""
    check_task(request.task)
    _check_source(request.source)
    _check_length("request_id", request.request_id, _LONGEST_NAME)
    _check_limits(request.limits)
    _check_number("seconds", request.seconds, _LEAST_SECONDS, _MOST_SWEEP_SECONDS, "s")
    if not 1 <= request.max_configurations <= MOST_CONFIGURATIONS:
        raise _invalid(
            "max_configurations",
            f"is {request.max_configurations}, expected 1 to {MOST_CONFIGURATIONS}",
        )
    _check_count("order", len(request.order), MOST_CONFIGURATIONS)
    for configuration in request.order:
        _check_settings("order", configuration.settings)


def check_task(task: Task) -> None:
    """Refuse a task that no task file gives; raises as `check_evaluation`."""
    if task.name:  # without one it is only judged, and no table shows it
        check_name(task.name, "task.name")
    _check_length("task.reference", task.reference, _LONGEST_REFERENCE)
    _check_length("task.instructions", task.instructions, _LONGEST_INSTRUCTIONS)
    if task.tolerance is not None:
        for name in ("rtol", "atol"):
            value = getattr(task.tolerance, name)
            _check_number(f"task.tolerance.{name}", value, 0.0, _MOST_TOLERANCE)
        # Shares of outputs follow from an admission.
        _check_count("task.tolerance.output_shares", len(task.tolerance.output_shares), 0)
    _check_number("task.least_bits", task.least_bits, 0.0, _MOST_BITS, "bits")
    for field in ("library_ops", "constants"):
        names = getattr(task, field)
        _check_count(f"task.{field}", len(names), _MOST_OF_OTHER_LISTS)
        for name in names:
            _check_length(f"task.{field}", name, _LONGEST_NAME)
    _check_count("task.workloads", len(task.workloads), _MOST_WORKLOADS)
    for workload in task.workloads:
        check_name(workload.name, "task.workloads.name", LONGEST_WORKLOAD)
        _check_count("task.workloads.sizes", len(workload.sizes), _MOST_OF_OTHER_LISTS)
        for size in workload.sizes:
            _check_length("task.workloads.sizes.name", size.name, _LONGEST_NAME)
            if not 0 < size.value <= _LARGEST_SIZE:
                raise _invalid(
                    "task.workloads.sizes",
                    f"{size.name} is {size.value}, expected 1 to {_LARGEST_SIZE}",
                )


def _check_source(source: KernelSource) -> None:
    _check_length("source", source.device_code + source.plan, LONGEST_CANDIDATE)


def _check_limits(limits: EvaluationLimits) -> None:
    figures: Mapping[str, float] = {
        "build_seconds": limits.build_seconds,
        "run_seconds": limits.run_seconds,
        "timing_seconds": limits.timing_seconds,
    }
    for name, value in figures.items():
        _check_number(f"limits.{name}", value, _LEAST_SECONDS, _MOST_SECONDS, "s")


def _check_settings(field: str, settings: tuple[Setting, ...]) -> None:
    _check_count(field, len(settings), _MOST_OF_OTHER_LISTS)
    for setting in settings:
        _check_length(field, setting.name, _LONGEST_NAME)
        _check_length(field, setting.value, _LONGEST_NAME)


def _check_number(field: str, value: float, least: float, most: float, unit: str = "") -> None:
    if not (math.isfinite(value) and least <= value <= most):
        raise _invalid(field, f"is {value}, expected {least:g} to {most:g} {unit}".rstrip())


def _check_length(field: str, text: str, most: int) -> None:
    if len(text) > most:
        raise _invalid(field, f"{len(text)} characters, expected at most {most}")


def _check_count(field: str, count: int, most: int) -> None:
    if count > most:
        raise _invalid(field, f"{count} of them, expected at most {most}")


def _invalid(field: str, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{field}: {what}", field=field)

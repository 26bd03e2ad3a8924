"""Limits on the figures and lengths of a request, checked before anything is built.

What a client says may end in what is signed, or decide how long a device is held. Limits on a task
are in `kernel_foundry/domain/task_limits.py`.
"""

import re
from collections.abc import Mapping
from typing import Final

from evaluator_svc.requests.given_seeds import check_seeds
from kernel_foundry.domain.bounds import check_count, check_length, check_number, out_of_bounds
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE, KernelSource
from kernel_foundry.domain.evaluation import Setting
from kernel_foundry.domain.foreign import LONGEST_FOREIGN, MOST_FILES, ForeignRequest
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.sweep import SweepRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.domain.task_limits import check_task
from kernel_foundry.domain.verdict_limits import LEAST_NS, MOST_CONFIGURATIONS, MOST_NS
from kernel_foundry.plan import check_library_ops

_LONGEST_NAME: Final = 200

_PATH: Final = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")
"""Relative, without hidden parts."""
_LEAST_SECONDS: Final = 1e-3
_MOST_SECONDS: Final = 3600.0
"""Of one build, run or timing."""
_MOST_SWEEP_SECONDS: Final = 86_400.0
_MOST_OF_OTHER_LISTS: Final = 1024


def check_asked_task(task: Task) -> None:
    """Refuse a task that no caller can mean; raises as `check_evaluation`."""
    check_task(task)
    check_library_ops(task)


def check_evaluation(request: EvaluationRequest) -> None:
    """Refuse a request for a verdict that no caller can mean.

    Raises:
        InvalidArgumentError: it says which field and what is allowed.
    """
    check_asked_task(request.task)
    _check_source(request.source)
    check_length("request_id", request.request_id, _LONGEST_NAME)
    if request.architecture and not request.build_only:
        raise out_of_bounds(
            "architecture", "given without build_only; a verdict is on a device that is here"
        )
    _check_settings("configuration", request.configuration)
    _check_limits(request.limits)
    known = {workload.name for workload in request.task.workloads}
    check_count("stop_above_ns", len(request.stop_above_ns), len(known))
    for time_ns in request.stop_above_ns:
        # 0 stands for a workload without an incumbent.
        if time_ns:
            check_number("stop_above_ns", time_ns, LEAST_NS, MOST_NS, "ns")
    for yardstick in request.yardsticks:
        if yardstick.workload not in known:
            unknown = f"{yardstick.workload[:80]!r} is not a workload of the task"
            raise out_of_bounds("yardsticks", unknown)
        check_number("yardsticks.time_ns", yardstick.time_ns, LEAST_NS, MOST_NS, "ns")
    check_count("yardsticks", len(request.yardsticks), len(known))
    if request.profile_seconds is not None:
        check_number("profile_seconds", request.profile_seconds, 0.0, _MOST_SECONDS, "s")
    check_seeds(request)


def check_sweep(request: SweepRequest) -> None:
    """Refuse a request for a sweep that no caller can mean; raises as `check_evaluation`."""
    check_asked_task(request.task)
    _check_source(request.source)
    check_length("request_id", request.request_id, _LONGEST_NAME)
    _check_limits(request.limits)
    check_number("seconds", request.seconds, _LEAST_SECONDS, _MOST_SWEEP_SECONDS, "s")
    if not 1 <= request.max_configurations <= MOST_CONFIGURATIONS:
        raise out_of_bounds(
            "max_configurations",
            f"is {request.max_configurations}, expected 1 to {MOST_CONFIGURATIONS}",
        )
    check_count("order", len(request.order), MOST_CONFIGURATIONS)
    for configuration in request.order:
        _check_settings("order", configuration.settings)


def check_foreign(request: ForeignRequest) -> None:
    """Refuse a request on a foreign kernel that no caller can mean; as `check_evaluation`."""
    check_asked_task(request.task)
    _check_limits(request.limits)
    check_seeds(request)
    source = request.source
    check_count("source.files", len(source.files), MOST_FILES)
    check_length("source.files", "".join(file.text for file in source.files), LONGEST_FOREIGN)
    check_length("source.entry_name", source.entry_name, _LONGEST_NAME)
    if not source.entry_name.isidentifier():
        raise out_of_bounds("source.entry_name", f"{source.entry_name!r} is not a name")
    paths = [file.path for file in source.files]
    for path in paths:
        check_length("source.files.path", path, _LONGEST_NAME)
        if not _PATH.fullmatch(path):
            raise out_of_bounds("source.files.path", f"{path!r} is not a path below a folder")
    if len(set(paths)) != len(paths):
        raise out_of_bounds("source.files.path", "two files have one path")
    if source.entry_file not in paths:
        raise out_of_bounds(
            "source.entry_file", f"{source.entry_file[:80]!r} is not one of the files"
        )
    for flags in (source.compiler_flags, source.cuda_flags):
        check_count("source.flags", len(flags), MOST_FILES)
        for flag in flags:
            check_length("source.flags", flag, _LONGEST_NAME)


def _check_source(source: KernelSource) -> None:
    check_length("source", source.device_code + source.plan, LONGEST_CANDIDATE)


def _check_limits(limits: EvaluationLimits) -> None:
    figures: Mapping[str, float] = {
        "build_seconds": limits.build_seconds,
        "run_seconds": limits.run_seconds,
        "timing_seconds": limits.timing_seconds,
    }
    for name, value in figures.items():
        check_number(f"limits.{name}", value, _LEAST_SECONDS, _MOST_SECONDS, "s")


def _check_settings(field: str, settings: tuple[Setting, ...]) -> None:
    check_count(field, len(settings), _MOST_OF_OTHER_LISTS)
    for setting in settings:
        check_length(field, setting.name, _LONGEST_NAME)
        check_length(field, setting.value, _LONGEST_NAME)

"""Counters of the processor while a runner makes calls: what a CPU's profile is made of."""

from dataclasses import dataclass

from evaluator_svc.hardware.perf_events import open_counters
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.runner import StepTimes, StepTimesRequest
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.core_times import CoreTimes
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.finding import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorCounts:
    """The counters' values, or why there are none."""

    counters: tuple[Figure, ...] = ()
    """In one call."""
    reason: str = ""


def count_calls(
    process: ChildProcess, workload: str, kernels: tuple[str, ...], *, seconds: float
) -> ProcessorCounts:
    """Return the counters of a runner's threads in a few calls, one after the other.

    The caches are left as they are: what empties them would be counted. A runner that fails here
    has passed before, and is no candidate's fault any more.

    Args:
        process: The runner, which has timed the workload.
        workload: Its name.
        kernels: Those that its plan launches.
        seconds: Deadline of the calls.
    """
    opened = open_counters(CoreTimes.of(process.process_id).on_core)
    if isinstance(opened, str):
        return ProcessorCounts(reason=opened)
    with opened:
        before = opened.read()
        request = StepTimesRequest(workload=workload, kernels=kernels, flush_bytes=0)
        times = ask_candidate(
            process, request, StepTimes, seconds=seconds, doing="counting for the profile"
        )
        after = opened.read()
    if isinstance(times, CandidateFailure):
        return ProcessorCounts(reason="the kernels failed while they were counted")
    return ProcessorCounts(
        counters=tuple(
            Figure(name=name, value=(count - before[name]) / times.call_count)
            for name, count in after.items()
        )
    )

"""One candidate in a runner: its inputs, and the configurations that are loaded.

An evaluation loads one of them, a sweep one after the other; all run on the same inputs.
"""

import dataclasses
import time
from collections import defaultdict
from collections.abc import Iterator

from evaluator_svc.messages.locked import DoneReply
from evaluator_svc.messages.plan_findings import plan_finding
from evaluator_svc.messages.runner import (
    DropRequest,
    LoadReply,
    LoadRequest,
    PoolReady,
    PoolRequest,
    ReorderReply,
    RunAgainRequest,
    RunReply,
    RunRequest,
    StepTimes,
    StepTimesRequest,
    TimeReply,
    TimeRequest,
    WithoutKernels,
)
from evaluator_svc.processes.binding import describe
from evaluator_svc.processes.channel import close_descriptors
from evaluator_svc.processes.locked_process import OpenDevice
from evaluator_svc.runner.configuration import LoadedConfiguration
from evaluator_svc.runner.covered import CoveredRange
from evaluator_svc.runner.faults import CandidateFaultError
from evaluator_svc.runner.inputs import WorkloadInputs
from evaluator_svc.runner.loaded_workload import LoadedWorkload
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.plan.errors import PlanError
from kernel_foundry.plan.parse import parse
from kernel_foundry.plan.tree import Plan


class Session:
    """A candidate from load to last sample.

    Every method raises `CandidateFaultError` for what the candidate is at fault for.
    """

    def __init__(self, opened: OpenDevice) -> None:
        self._opened = opened
        self._plans: dict[str, Plan] = {}
        """Parsed, by text."""
        self._inputs: defaultdict[str, WorkloadInputs] = defaultdict(
            lambda: WorkloadInputs(opened.device)
        )
        self._configurations: dict[int, LoadedConfiguration] = {}
        self._is_library_checked = False

    def load(
        self, request: LoadRequest, objects: tuple[bytes, ...], descriptors: tuple[int, ...]
    ) -> LoadReply:
        """Load every unit's object code, bind the plan to every workload and run what is asked.

        Raises:
            BackendUnavailableError: the plan makes library calls, and the library here does not
                tell where it leaves what.
        """
        left = list(descriptors)
        try:
            reply = self._load(request, objects)
            runs = tuple(self._run_first(run, left) for run in request.runs)
        finally:
            close_descriptors(tuple(left))
        return dataclasses.replace(reply, runs=runs)

    def _load(self, request: LoadRequest, objects: tuple[bytes, ...]) -> LoadReply:
        for number in request.forget:
            self._configurations.pop(number, None)
        started = time.perf_counter()
        configuration = LoadedConfiguration(self._opened, request, objects)
        loaded = time.perf_counter()
        try:
            configuration.bind(self._plan(request.source.plan), self._inputs, self._covered)
        except PlanError as error:
            raise CandidateFaultError(EvaluationOutcome.PLAN_ERROR, plan_finding(error)) from error
        self._check_library(configuration)
        self._configurations[request.number] = configuration
        return LoadReply(
            workloads=tuple(
                describe(name, w.sequence) for name, w in configuration.workloads.items()
            ),
            load_ms=1e3 * (loaded - started),
            bind_ms=1e3 * (time.perf_counter() - loaded),
        )

    def _run_first(self, request: RunRequest, left: list[int]) -> RunReply:
        """Run with as many of the descriptors that are left as the draw has."""
        count = 0 if request.draw.handles else request.draw.seed_count
        own = tuple(left[:count])
        del left[:count]
        ran = self.run(request, own)
        assert isinstance(ran, RunReply), "other runs come after the first"
        return ran

    def run(
        self, request: RunRequest, descriptors: tuple[int, ...]
    ) -> RunReply | DoneReply | ReorderReply | WithoutKernels:
        """Run every seed, or look what is right without the kernels."""
        name = request.draw.workload
        workload = self._workload(request.number, name)
        if request.reordered:
            return self._configurations[request.number].run_reordered(name)
        if request.once:
            workload.run_once(request.draw, descriptors)
            return DoneReply()
        workload.open(request.draw, descriptors, refilled=request.refilled)
        if request.without_kernels:
            return workload.run_without_kernels(request.choice)
        return workload.run(into_last=request.into_last)

    def run_again(self, request: RunAgainRequest) -> DoneReply:
        """Run seeds whose inputs have changed."""
        self._workload(request.number, request.workload).run_again(request.seeds)
        return DoneReply()

    def fill_pool(self, request: PoolRequest) -> PoolReady:
        """Make the sets that are timed."""
        return self._workload(request.number, request.workload).fill_pool(
            wanted_bytes=request.wanted_bytes, limit_bytes=request.limit_bytes
        )

    def time(self, request: TimeRequest, descriptors: tuple[int, ...]) -> TimeReply:
        """Take one measurement."""
        return self._workload(request.number, request.workload).time(request, descriptors)

    def step_times(self, request: StepTimesRequest) -> StepTimes:
        """Measure how a workload's time divides among its steps."""
        workload = self._workload(request.number, request.workload)
        return workload.step_times(flush_bytes=request.flush_bytes)

    def drop(self, request: DropRequest) -> DoneReply:
        """Forget a workload's pool and shared buffers."""
        for configuration in self._configurations.values():
            configuration.workloads[request.workload].drop()
        self._inputs[request.workload].close()
        return DoneReply()

    def _workload(self, number: int, name: str) -> LoadedWorkload:
        return self._configurations[number].workloads[name]

    def _plan(self, text: str) -> Plan:
        if text not in self._plans:
            self._plans[text] = parse(text)
        return self._plans[text]

    def _covered(self) -> Iterator[CoveredRange]:
        """Yield the inputs and outputs of all workloads."""
        for inputs in self._inputs.values():
            yield from inputs.covered()

    def _check_library(self, configuration: LoadedConfiguration) -> None:
        is_called = any(w.sequence.library_calls for w in configuration.workloads.values())
        if self._is_library_checked or not is_called or self._opened.device.is_host_memory:
            return
        # Only with such calls: it imports torch, which other runners never load.
        from evaluator_svc.runner.library_memory import check_listed

        check_listed(self._opened.index)
        self._is_library_checked = True

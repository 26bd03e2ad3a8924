"""One candidate in a runner: its programs and its workloads."""

import time
from typing import Any

from evaluator_svc.binding import bind_workload, describe
from evaluator_svc.messages.locked import (
    DoneReply,
    LoadReply,
    LoadRequest,
    PoolReady,
    PoolRequest,
    ReorderReply,
    RunAgainRequest,
    RunRequest,
    Share,
    ShareRequest,
    TimeReply,
    TimeRequest,
    WithoutKernels,
)
from evaluator_svc.plan_inputs import plan_finding
from evaluator_svc.processes.locked_process import OpenDevice
from evaluator_svc.runner.faults import CandidateFaultError
from evaluator_svc.runner.program import load_program
from evaluator_svc.runner.workload import Workload
from evaluator_svc.spirv.reordered import reordered
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.plan.errors import PlanError
from kernel_foundry.plan.parse import parse


class Session:
    """A candidate from load to last sample.

    Every method raises `CandidateFaultError` for what the candidate is at fault for.

    Args:
        opened: The device.
    """

    def __init__(self, opened: OpenDevice) -> None:
        self._opened = opened
        self._workloads: dict[str, Workload] = {}
        self._objects: list[tuple[bytes, tuple[str, ...]]] = []
        """Object code and kernels of each unit."""
        self._units: dict[str, int] = {}
        self._reordered: dict[int, tuple[Any, bool]] = {}
        """By unit: its program in reverse order, or None, and whether work-items are reversed."""

    def load(self, request: LoadRequest, objects: tuple[bytes, ...]) -> LoadReply:
        """Load every unit's object code and bind the plan to every workload.

        Raises:
            BackendUnavailableError: the plan makes library calls, and the library here does not
                tell where it leaves what.
        """
        started = time.perf_counter()
        programs = [
            load_program(self._opened.device, code, names)
            for code, names in zip(objects, request.kernels, strict=True)
        ]
        loaded = time.perf_counter()
        self._objects = list(zip(objects, request.kernels, strict=True))
        try:
            self._bind(request, programs)
        except PlanError as error:
            raise CandidateFaultError(EvaluationOutcome.PLAN_ERROR, plan_finding(error)) from error
        self._check_library()
        return LoadReply(
            workloads=tuple(describe(name, w.sequence) for name, w in self._workloads.items()),
            load_ms=1e3 * (loaded - started),
            bind_ms=1e3 * (time.perf_counter() - loaded),
        )

    def run(
        self, request: RunRequest, descriptors: tuple[int, ...]
    ) -> DoneReply | ReorderReply | WithoutKernels:
        """Run every seed, or look what is right without the kernels."""
        workload = self._workloads[request.draw.workload]
        if request.reordered:
            return self._run_reordered(request.draw.workload)
        if request.once:
            workload.run_once(request.draw, descriptors)
            return DoneReply()
        workload.open(request.draw, descriptors, refilled=request.refilled)
        if request.without_kernels:
            return workload.run_without_kernels(request.choice)
        workload.run()
        return DoneReply()

    def _run_reordered(self, name: str) -> ReorderReply:
        """Run every seed in reverse order, with a program that is made when it is first wanted."""
        unit = self._units[name]
        if unit not in self._reordered:
            code, kernels = self._objects[unit]
            made = reordered(code)
            program = (
                None if made is None else load_program(self._opened.device, made.code, kernels)
            )
            self._reordered[unit] = (program, made is not None and made.reverses_items)
        program, reverses_items = self._reordered[unit]
        if program is not None:
            self._workloads[name].run_reordered(program)
        return ReorderReply(reverses_groups=program is not None, reverses_items=reverses_items)

    def run_again(self, request: RunAgainRequest) -> DoneReply:
        """Run seeds whose inputs have changed."""
        self._workloads[request.workload].run_again(request.seeds)
        return DoneReply()

    def fill_pool(self, request: PoolRequest) -> PoolReady:
        """Make the sets that are timed."""
        return self._workloads[request.workload].fill_pool(
            wanted_bytes=request.wanted_bytes, limit_bytes=request.limit_bytes
        )

    def time(self, request: TimeRequest, descriptors: tuple[int, ...]) -> TimeReply:
        """Take one measurement."""
        return self._workloads[request.workload].time(request, descriptors)

    def share(self, request: ShareRequest) -> Share:
        """Measure how a workload's time divides among its steps."""
        return self._workloads[request.workload].share(flush_bytes=request.flush_bytes)

    def drop(self, workload: str) -> DoneReply:
        """Forget a workload's pool and shared buffers."""
        self._workloads[workload].drop()
        return DoneReply()

    def _check_library(self) -> None:
        is_called = any(w.sequence.library_calls for w in self._workloads.values())
        if is_called and not self._opened.device.is_host_memory:
            # Only with such calls: it imports torch, which other runners never load.
            from evaluator_svc.runner.library_memory import check_listed

            check_listed(self._opened.index)

    def _bind(self, request: LoadRequest, programs: list[Any]) -> None:
        plan = parse(request.source.plan)
        for names, unit in zip(request.workloads, request.unit_of_workload, strict=True):
            try:
                sequence = bind_workload(
                    plan,
                    names,
                    source=request.source,
                    device=request.device,
                    library_ops=request.library_ops,
                )
            except PlanError:
                if not names.is_optional:
                    raise
                continue
            self._units[names.workload] = unit
            self._workloads[names.workload] = Workload(
                self._opened, programs[unit], sequence, tf32=request.tf32
            )

"""Kernels of our own in a runner, timed the way candidates are: for peaks and for probes.

Each works on one input and one output tensor of float32. The policy's last part, which reads object
code, is not asked: these may look at a clock. What is measured with them is in `measure.py` and
`probing/timer.py`.
"""

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.messages.builder import ReadCandidateReply, ReadCandidateRequest
from evaluator_svc.messages.call_draws import call_draws_file
from evaluator_svc.messages.draw import ALIGNMENT_BYTES, Draw, TensorSlot
from evaluator_svc.messages.locked import CandidateFailure, DoneReply, WorkloadNames
from evaluator_svc.messages.measurement import MeasurementSettings
from evaluator_svc.messages.runner import (
    DropRequest,
    LoadRequest,
    PoolReady,
    PoolRequest,
    TimeReply,
    TimeRequest,
)
from evaluator_svc.pipeline.build.build import (
    BuildFailure,
    BuildResult,
    BuildSettings,
    build,
    read_candidate,
)
from evaluator_svc.pipeline.runner_calls import DrawnInputs, load, run
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.admission import NamedScalar, NamedTensor, TensorRole
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.errors import ProcessLostError

T = TypeVar("T")

_SECONDS = 60.0
"""Deadline of every step; none takes a tenth of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWorkload:
    """One way to launch the kernels; the plan sees its name as the scalar `probe`."""

    name: str
    floats: int
    """Elements of the input `x` and of the output `out`."""
    is_streamed: bool = False
    """Whether that is more than any cache holds: one set of both will do."""

    @property
    def size_bytes(self) -> int:
        """Of each of the two tensors."""
        return 4 * self.floats

    def names(self) -> WorkloadNames:
        """Return what the plan may name."""
        return WorkloadNames(
            workload=self.name,
            tensors=(
                self._tensor("x", TensorRole.INPUT),
                self._tensor("out", TensorRole.OUTPUT),
            ),
            scalars=(NamedScalar(name="probe", literal=repr(self.name)),),
        )

    def _tensor(self, name: str, role: TensorRole) -> NamedTensor:
        return NamedTensor(name=name, role=role, dtype="float32", shape=(self.floats,))


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTimes:
    """One measurement of one of our kernels."""

    samples_ns: tuple[float, ...]
    call_count: int
    """Samples and the calls that warmed up."""
    wall_ns: float
    """Between request and answer, on the supervisor's clock."""


class OwnKernels:
    """Loaded kernels of our own; made by `own_kernels`."""

    def __init__(self, site: DeviceSite, runner: ChildProcess) -> None:
        self._runner = runner
        self._is_shared = site.shares_cores
        self._files: dict[int, int] = {}
        """Descriptors of buffers by their size."""

    @contextmanager
    def opened(self, workload: OwnWorkload) -> Iterator[None]:
        """Hold a workload's buffers, of zero inputs, with one run done on them."""
        drawn = self._buffers(workload)
        try:
            ran = run(self._runner, drawn, seconds=_SECONDS)
        finally:
            drawn.close()
        if isinstance(ran, CandidateFailure):
            raise _lost(ran)
        limit_bytes = 0 if workload.is_streamed else 1 << 62
        pool = PoolRequest(workload=workload.name, wanted_bytes=0, limit_bytes=limit_bytes)
        self._ask(pool, PoolReady)
        yield
        self._ask(DropRequest(workload=workload.name), DoneReply)

    def times(self, workload: OwnWorkload, settings: MeasurementSettings) -> OwnTimes:
        """Take one measurement of an opened workload."""
        request = TimeRequest(workload=workload.name, settings=settings, poison=False, keep_count=0)
        with call_draws_file(secrets.randbits(63)) as call_draws:
            started_ns = time.perf_counter_ns()
            timed = self._ask(request, TimeReply, descriptors=(call_draws,))
            wall_ns = float(time.perf_counter_ns() - started_ns)
        return OwnTimes(
            samples_ns=timed.samples_ns,
            call_count=len(timed.samples_ns) + timed.warmup_count,
            wall_ns=wall_ns,
        )

    def close(self) -> None:
        """Give the buffers back."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()

    def _buffers(self, workload: OwnWorkload) -> DrawnInputs:
        """A buffer as the judge would share it: one seed, one slot for each run.

        Workloads of one size have the same, whose pages are there from the second one on. Device
        memory cannot be had here; a draw without any buffer is memory of the runner's own.
        """
        size = -(-workload.size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        places = (("x", TensorRole.INPUT, 0), ("out", TensorRole.OUTPUT, size))
        slots = tuple(
            TensorSlot(
                name=name,
                role=role.value,
                dtype="float32",
                shape=(workload.floats,),
                size_bytes=workload.size_bytes,
                offsets=(offset,),
            )
            for name, role, offset in places
        )
        draw = Draw(draw=0, workload=workload.name, size_bytes=2 * size, slots=slots, seed_count=1)
        if not self._is_shared:
            return DrawnInputs(draw=draw, descriptors=())
        if draw.size_bytes not in self._files:
            self._files[draw.size_bytes] = _zeros(draw.size_bytes)
        return DrawnInputs(draw=draw, descriptors=(os.dup(self._files[draw.size_bytes]),))

    def _ask(self, message: object, expected: type[T], *, descriptors: tuple[int, ...] = ()) -> T:
        answer = ask_candidate(
            self._runner,
            message,
            expected,
            seconds=_SECONDS,
            doing="running our own kernels",
            descriptors=descriptors,
        )
        if isinstance(answer, CandidateFailure):
            raise _lost(answer)
        return answer


@contextmanager
def own_kernels(
    site: DeviceSite, source: KernelSource, workloads: tuple[OwnWorkload, ...]
) -> Iterator[OwnKernels]:
    """Build and load a source as a candidate's; hold the device's lock alone meanwhile.

    Raises:
        ProcessLostError: it could not be built, loaded or run.
    """
    names = tuple(workload.names() for workload in workloads)
    with ExitStack() as stack:
        runner = stack.enter_context(site.runners.taken())
        parsed, built = _built(site, source, names)
        request = LoadRequest(
            source=source,
            configuration=parsed.configuration,
            device=site.spec,
            workloads=names,
            kernels=tuple(unit.kernels for unit in parsed.units),
            unit_of_workload=parsed.unit_of_workload,
        )
        loaded = load(runner, request, built.codes)
        if isinstance(loaded, CandidateFailure):
            raise _lost(loaded)
        kernels = OwnKernels(site, runner)
        stack.callback(kernels.close)
        yield kernels


def _built(
    site: DeviceSite, source: KernelSource, names: tuple[WorkloadNames, ...]
) -> tuple[ReadCandidateReply, BuildResult]:
    request = ReadCandidateRequest(
        source=source, configuration=(), device=site.spec, workloads=names
    )
    with site.builders.taken() as builder:
        parsed = read_candidate(builder, request)
        if isinstance(parsed, CandidateFailure):
            raise _lost(parsed)
        settings = BuildSettings(
            device=site.spec,
            compiler_version=site.compiler_version,
            seconds=_SECONDS,
            memory_bytes=site.settings.builder_memory_bytes,
        )
        built = build(builder, parsed, site.objects, settings)
    if isinstance(built, BuildFailure):
        raise _lost(built.failure)
    return parsed, built


def _zeros(size_bytes: int) -> int:
    descriptor = os.memfd_create("own-kernels", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size_bytes)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return descriptor


def _lost(failure: CandidateFailure) -> ProcessLostError:
    why = "; ".join(finding.message for finding in failure.findings)
    return ProcessLostError(f"kernels of our own could not be run: {why}", cause=why)

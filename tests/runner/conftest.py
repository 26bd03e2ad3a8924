"""A real builder and a real runner on buffers of the test's own: no judge, no evaluator."""

import dataclasses
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from evaluator_svc.messages.builder import (
    CompileReply,
    CompileRequest,
    ReadCandidateReply,
    ReadCandidateRequest,
)
from evaluator_svc.messages.call_draws import call_draws_file
from evaluator_svc.messages.draw import OUTPUT_SLOTS, Draw, TensorSlot
from evaluator_svc.messages.locked import CandidateFailure, Ready, WorkloadNames
from evaluator_svc.messages.measurement import KeptOutput, MeasurementSettings
from evaluator_svc.messages.placement import PAGE_BYTES, place
from evaluator_svc.messages.runner import (
    LoadReply,
    LoadRequest,
    PoolReady,
    PoolRequest,
    RunReply,
    RunRequest,
    StepTimes,
    StepTimesRequest,
    TimeReply,
    TimeRequest,
    WithoutKernels,
)
from evaluator_svc.processes.channel import ChannelError, close_descriptors
from evaluator_svc.processes.forking import BUILDER, RUNNER
from evaluator_svc.processes.locked_starter import LockedStarter
from evaluator_svc.processes.process import ChildProcess, ProcessLauncher
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.domain.admission import NamedTensor, TensorRole
from kernel_foundry.plan.candidate_text import split
from kernel_foundry_native import _core

SEEDS = 2
WORKLOAD = "default"


class HostDraw:
    """Inputs in memory shared by descriptors, one buffer for each seed.

    Args:
        tensors: Name to (role, values of each seed); outputs by their shape as zeros.
    """

    def __init__(self, tensors: dict[str, tuple[TensorRole, np.ndarray]]) -> None:
        slots, end = [], PAGE_BYTES
        for name, (role, values) in tensors.items():
            size = values[0].nbytes
            offsets = []
            for _ in range(OUTPUT_SLOTS if role is TensorRole.OUTPUT else 1):
                offset, end = place(size, end)
                offsets.append(offset)
            slots.append(
                TensorSlot(
                    name=name, role=role.value, dtype="float32", shape=values[0].shape,
                    size_bytes=size, offsets=tuple(offsets),
                )
            )  # fmt: skip
        self.buffers = [_core.SharedBuffer.create(end) for _ in range(SEEDS)]
        self.draw = Draw(
            draw=1, workload=WORKLOAD, size_bytes=end, slots=tuple(slots), seed_count=SEEDS
        )
        for seed in range(SEEDS):
            for name, (_, values) in tensors.items():
                for slot in range(len(self._slot(name).offsets)):
                    self.array(seed, name, slot)[:] = values[seed]

    def descriptors(self) -> tuple[int, ...]:
        """Return a descriptor of each buffer, for the runner to own."""
        return tuple(os.dup(buffer.fd) for buffer in self.buffers)

    def array(self, seed: int, name: str, slot: int = 0) -> np.ndarray:
        """Return a tensor's memory."""
        found = self._slot(name)
        start = found.offsets[slot]
        data = memoryview(self.buffers[seed])[start : start + found.size_bytes]
        return np.frombuffer(data, dtype=np.float32).reshape(found.shape)

    def _slot(self, name: str) -> TensorSlot:
        return next(slot for slot in self.draw.slots if slot.name == name)


@dataclass
class Candidate:
    """A candidate in a runner.

    Args:
        process: The runner.
        inputs: Its tensors.
        loaded: What binding said.
        isolation: What locks it in.
        request: What was loaded.
        codes: Object code of each unit.
    """

    process: ChildProcess
    inputs: HostDraw
    ready: Ready
    loaded: LoadReply | CandidateFailure
    request: LoadRequest
    codes: tuple[bytes, ...]

    def ask(self, message: object, expected: type, **others: object):
        """Return the answer, or the candidate's failure."""
        try:
            received = self.process.ask(
                message, expected, CandidateFailure, timeout_seconds=60.0, **others
            )
        except ChannelError as error:
            end = self.process.kill()
            pytest.fail(f"{error}: {end.describe()}: {end.last_words}")
        return received.message

    def load(self, **changed: object) -> LoadReply | CandidateFailure:
        """Load it once more, as another configuration."""
        request = dataclasses.replace(self.request, **changed)
        descriptors = self.inputs.descriptors() if request.runs else ()
        try:
            return self.ask(request, LoadReply, blobs=self.codes, descriptors=descriptors)
        finally:
            close_descriptors(descriptors)

    def run(
        self, *, without_kernels: bool = False, **others: object
    ) -> RunReply | WithoutKernels | CandidateFailure:
        """Run it on every seed."""
        descriptors = self.inputs.descriptors()
        request = RunRequest(draw=self.inputs.draw, without_kernels=without_kernels, **others)
        try:
            expected = WithoutKernels if without_kernels else RunReply
            return self.ask(request, expected, descriptors=descriptors)
        finally:
            close_descriptors(descriptors)

    def fill_pool(self, wanted_bytes: int = 1 << 20, *, number: int = 0) -> PoolReady:
        request = PoolRequest(
            workload=WORKLOAD, wanted_bytes=wanted_bytes, limit_bytes=1 << 28, number=number
        )
        return self.ask(request, PoolReady)

    def time(self, *, keep_count: int = 2, redraw_key: int = 0, number: int = 0) -> TimeReply:
        settings = MeasurementSettings(
            seconds=0.1, max_samples=30, flush_bytes=1 << 16, redraw_key=redraw_key
        )
        request = TimeRequest(
            workload=WORKLOAD, settings=settings, poison=True, keep_count=keep_count, number=number
        )
        with call_draws_file(1) as call_draws:
            return self.ask(request, TimeReply, descriptors=(call_draws,))

    def step_times(self) -> StepTimes:
        request = StepTimesRequest(
            workload=WORKLOAD, kernels=self.loaded.workloads[0].kernels, flush_bytes=1 << 16
        )
        return self.ask(request, StepTimes)

    def kept(self, kept: KeptOutput, name: str = "out") -> np.ndarray:
        """Return the output of a timed call."""
        return self.inputs.array(kept.seed, name, kept.slot)


@dataclass
class Bench:
    """Builds candidates and puts them into runners.

    Args:
        kind: Device kind.
        starter: Starts the processes.
        draw: Puts tensors where a runner can reach them.
    """

    kind: str
    starter: LockedStarter
    draw: Callable[[dict[str, tuple[TensorRole, np.ndarray]]], HostDraw] = HostDraw
    running: list[ChildProcess] = field(default_factory=list)

    def start(self, module: str, **others: object) -> tuple[ChildProcess, Ready]:
        """Start a process that ends with the test."""
        process, ready = self.starter.start(module, kind=self.kind, index=0, **others)
        self.running.append(process)
        return process, ready

    def load(
        self,
        text: str,
        tensors: dict[str, tuple[TensorRole, np.ndarray]],
        *,
        library_ops: tuple[str, ...] = (),
        tf32: bool = False,
    ) -> Candidate:
        """Build a candidate, load it in a runner and bind it."""
        with_library = "ops." in text
        runner, ready = self.start(RUNNER, with_library=with_library)
        assert ready.device is not None, ready.unavailable
        architecture = ready.device.architecture if self.kind == "cuda" else ""
        builder, _ = self.start(BUILDER, architecture=architecture)
        names = WorkloadNames(
            workload=WORKLOAD,
            tensors=tuple(
                NamedTensor(name=name, role=role, dtype="float32", shape=values[0].shape, path=name)
                for name, (role, values) in tensors.items()
            ),
            scalars=(),
        )
        source = split(text)
        parsed = builder.ask(
            ReadCandidateRequest(
                source=source, configuration=(), device=ready.device, workloads=(names,)
            ),
            ReadCandidateReply,
            timeout_seconds=60.0,
        ).message
        assert parsed.uses_library == with_library
        built = builder.ask(CompileRequest(unit=0), CompileReply, timeout_seconds=60.0)
        assert built.message.succeeded, built.message.log
        request = LoadRequest(
            source=source,
            configuration=parsed.configuration,
            device=ready.device,
            workloads=(names,),
            kernels=(parsed.units[0].kernels,),
            unit_of_workload=(0,),
            library_ops=library_ops,
            tf32=tf32,
        )
        codes = built.blobs[:1]
        loaded = runner.ask(
            request, LoadReply, CandidateFailure, timeout_seconds=60.0, blobs=codes
        ).message
        return Candidate(
            process=runner,
            inputs=self.draw(tensors),
            ready=ready,
            loaded=loaded,
            request=request,
            codes=codes,
        )


@pytest.fixture(scope="session")
def starter() -> Iterator[LockedStarter]:
    """One starter with its fork server for all tests."""
    launcher = ProcessLauncher()
    starter = LockedStarter(EvaluatorSettings.from_environment(os.environ), launcher)
    yield starter
    starter.close()
    launcher.close()


@pytest.fixture
def sycl(starter: LockedStarter) -> Iterator[Bench]:
    """Candidates on the CPU device."""
    bench = Bench(kind="sycl", starter=starter)
    yield bench
    for process in bench.running:
        process.kill()


def draw_inputs(**shapes: tuple[int, ...]) -> dict[str, tuple[TensorRole, np.ndarray]]:
    """Return random tensors of every seed; `out…` are outputs, `x…` inputs, others parameters."""
    generator = np.random.default_rng(0)
    tensors = {}
    for name, shape in shapes.items():
        if name.startswith("out"):
            tensors[name] = (TensorRole.OUTPUT, np.full((SEEDS, *shape), np.nan, np.float32))
            continue
        role = TensorRole.INPUT if name.startswith("x") else TensorRole.PARAMETER
        values = generator.standard_normal((SEEDS, *shape), dtype=np.float32)
        tensors[name] = (role, values)
    return tensors

"""What a device can do at most, measured with our own kernels the way candidates are.

Bandwidth from memory and from cache, float32 operations, the cost of a launch. Taken once for a
device and remembered. Knows nothing of tasks.
"""

import fcntl
import os
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from evaluator_svc.device_site import DeviceSite
from evaluator_svc.exchange import ALIGNMENT_BYTES, Draw, MeasurePlan, TensorSlot
from evaluator_svc.messages import (
    CandidateFailed,
    Done,
    DropRequest,
    LoadRequest,
    PoolReady,
    PoolRequest,
    PrepareRequest,
    Timed,
    TimeRequest,
    WorkloadNames,
)
from evaluator_svc.peak_kernels import PEAK_KERNELS
from evaluator_svc.pipeline.build import BuildFailed, BuildSettings, build, prepare
from evaluator_svc.pipeline.run import DrawnInputs, load, run
from evaluator_svc.process import ChildProcess
from evaluator_svc.process_answers import ask_candidate
from kernel_foundry.domain.admission import NamedScalar, NamedTensor, TensorRole
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.errors import ProcessLostError

T = TypeVar("T")

_LANES: Final = 32
_CACHES_OF_DATA: Final = 2
_CACHES_OF_DATA_ON_GPU: Final = 10
"""Size of the streamed tensors, in last-level caches."""
_FLOATS_OF_A_GROUP: Final = 64 * _LANES
_ACCUMULATORS: Final = 8
_ROUNDS: Final = 4096
_GROUPS_OF_A_UNIT: Final = 16
"""Enough work-groups for every compute unit to have its share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Probe:
    """One of the four measurements."""

    name: str
    floats: int
    """Elements of input and of output."""

    @property
    def size_bytes(self) -> int:
        return 4 * self.floats

    def names(self) -> WorkloadNames:
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


def measure_peaks(site: DeviceSite) -> Peaks:
    """Return the device's limits; call it while the device's gate is held alone.

    Raises:
        ProcessLostError: our own kernels could not be built or run.
    """
    probes = _probes(site.spec)
    runner = site.runners.take()
    try:
        _load(site, runner, probes)
        is_shared = site.shares_cores
        best_ns = {p.name: _best_ns(runner, p, is_shared=is_shared) for p in probes}
    finally:
        runner.kill()
    sizes = {probe.name: probe.floats for probe in probes}
    operations = 2 * _ACCUMULATORS * _ROUNDS * sizes["compute"]
    return Peaks(
        bandwidth_bytes_per_second=1e9 * 8 * sizes["memory"] / best_ns["memory"],
        cache_bandwidth_bytes_per_second=1e9 * 8 * sizes["cache"] / best_ns["cache"],
        flops_per_second=1e9 * operations / best_ns["compute"],
        launch_ns=best_ns["launch"],
    )


def _probes(device: DeviceSpec) -> tuple[_Probe, ...]:
    cache_floats = max(device.cache_bytes // 4, 1 << 18)
    limits = device.unit_limits
    unit_lanes = _LANES if limits is None else limits.work_items
    lanes = device.compute_units * _GROUPS_OF_A_UNIT * unit_lanes
    # A GPU needs more data before start and end of the kernel no longer count.
    caches = _CACHES_OF_DATA if limits is None else _CACHES_OF_DATA_ON_GPU
    return (
        _Probe(name="memory", floats=_whole(caches * cache_floats)),
        # Input and output of both sets together fill half of the cache.
        _Probe(name="cache", floats=_whole(cache_floats // 8)),
        _Probe(name="compute", floats=lanes),
        _Probe(name="launch", floats=_LANES),
    )


def _whole(floats: int) -> int:
    return max(floats // _FLOATS_OF_A_GROUP, 1) * _FLOATS_OF_A_GROUP


def _load(site: DeviceSite, runner: ChildProcess, probes: tuple[_Probe, ...]) -> None:
    names = tuple(probe.names() for probe in probes)
    builder = site.builders.take()
    try:
        request = PrepareRequest(
            text=PEAK_KERNELS[site.spec.language],
            configuration=(),
            device=site.spec,
            workloads=names,
        )
        prepared = prepare(builder, request)
        if isinstance(prepared, CandidateFailed):
            raise _lost(prepared)
        settings = BuildSettings(
            device=site.spec,
            compiler_version=site.compiler_version,
            seconds=60.0,
            memory_bytes=site.settings.builder_memory_bytes,
        )
        built = build(builder, prepared, site.objects, settings)
        if isinstance(built, BuildFailed):
            raise _lost(built.failure)
    finally:
        builder.kill()
    load_request = LoadRequest(
        source=prepared.source,
        device=site.spec,
        workloads=names,
        kernels=tuple(unit.kernels for unit in prepared.units),
        unit_of_workload=prepared.unit_of_workload,
    )
    loaded = load(runner, load_request, built.codes)
    if isinstance(loaded, CandidateFailed):
        raise _lost(loaded)


def _best_ns(runner: ChildProcess, probe: _Probe, *, is_shared: bool) -> float:
    """Return the shortest sample: a peak, and so the physical floor of others' times."""
    drawn = _buffer(probe, is_shared=is_shared)
    try:
        failed = run(runner, drawn, seconds=60.0)
    finally:
        drawn.close()
    if failed is not None:
        raise _lost(failed)
    _ask(runner, PoolRequest(workload=probe.name, wanted_bytes=0, limit_bytes=1 << 62), PoolReady)
    plan = MeasurePlan(seconds=0.4, max_samples=300, warmup_calls=5, order_seed=1)
    timed = _ask(
        runner,
        TimeRequest(workload=probe.name, plan=plan, poison=False, keep_count=0),
        Timed,
    )
    _ask(runner, DropRequest(workload=probe.name), Done)
    return max(min(timed.samples_ns), 1.0)


def _ask(runner: ChildProcess, message: object, expected: type[T]) -> T:
    answer = ask_candidate(runner, message, expected, seconds=60.0, doing="measuring the device")
    if isinstance(answer, CandidateFailed):
        raise _lost(answer)
    return cast("T", answer.message)


def _buffer(probe: _Probe, *, is_shared: bool) -> DrawnInputs:
    """Return a buffer of zeros as the judge would share it: one seed, one slot for each run.

    Device memory cannot be had here; a draw without any buffer is memory of the runner's own.
    """
    size = -(-probe.size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    slots = tuple(
        TensorSlot(
            name=name,
            role=role.value,
            dtype="float32",
            shape=(probe.floats,),
            size_bytes=probe.size_bytes,
            offsets=(offset,),
        )
        for name, role, offset in (
            ("x", TensorRole.INPUT, 0),
            ("out", TensorRole.OUTPUT, size),
        )
    )
    draw = Draw(draw=0, workload=probe.name, size_bytes=2 * size, slots=slots, seed_count=1)
    if not is_shared:
        return DrawnInputs(draw=draw, descriptors=())
    descriptor = os.memfd_create("peaks", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, 2 * size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return DrawnInputs(draw=draw, descriptors=(descriptor,))


def _lost(failure: CandidateFailed) -> ProcessLostError:
    why = "; ".join(finding.message for finding in failure.findings)
    return ProcessLostError(f"the device's limits could not be measured: {why}", cause=why)

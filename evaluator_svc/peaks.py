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
from evaluator_svc.pipeline.build import BuildFailed, BuildSettings, build, prepare
from evaluator_svc.pipeline.run import DrawnInputs, load, run
from evaluator_svc.process import ChildProcess
from evaluator_svc.process_answers import ask_candidate
from kernel_foundry.domain.admission import NamedScalar, NamedTensor, TensorRole
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.errors import ProcessLostError

T = TypeVar("T")

_LANES: Final = 32
_FLOATS_OF_A_GROUP: Final = 64 * _LANES
_ACCUMULATORS: Final = 8
_ROUNDS: Final = 4096
_GROUPS_OF_A_UNIT: Final = 16
"""Enough work-groups for every compute unit to have its share."""

_CANDIDATE: Final = """```sycl
typedef float line __attribute__((ext_vector_type(16)));
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void stream_lines(const float* __restrict__ x, float* __restrict__ out) {
  const size_t start = syclext::this_work_item::get_nd_item<1>().get_global_id(0) * 2048;
  const line* from = (const line*)(x + start);
  line* to = (line*)(out + start);
  // Around the caches: a plain store reads the line first, traffic that nobody asked for.
  for (int i = 0; i < 128; ++i) __builtin_nontemporal_store(from[i] + 1.0f, to + i);
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::sub_group_size<32>))
void stream(const float* __restrict__ x, float* __restrict__ out, int floats) {
  auto it = syclext::this_work_item::get_nd_item<1>();
  const int lane = it.get_local_id(0);
  const int start = it.get_group(0) * 2048;
  const int end = start + 2048 < floats ? start + 2048 : floats;
  for (int i = start; i < end; i += 32) out[i + lane] = x[i + lane] + 1.0f;
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::sub_group_size<32>))
void compute(const float* __restrict__ x, float* __restrict__ out, int rounds) {
  auto it = syclext::this_work_item::get_nd_item<1>();
  const int i = it.get_global_id(0);
  const float f = x[i] * 1e-9f + 0.999f;
  float a = f, b = f + 1, c = f + 2, d = f + 3, e = f + 4, g = f + 5, h = f + 6, k = f + 7;
  for (int r = 0; r < rounds; ++r) {
    a = sycl::fma(a, f, 1e-6f); b = sycl::fma(b, f, 1e-6f);
    c = sycl::fma(c, f, 1e-6f); d = sycl::fma(d, f, 1e-6f);
    e = sycl::fma(e, f, 1e-6f); g = sycl::fma(g, f, 1e-6f);
    h = sycl::fma(h, f, 1e-6f); k = sycl::fma(k, f, 1e-6f);
  }
  out[i] = a + b + c + d + e + g + h + k;
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void nothing(float* out) {}
```
```python
def launch(x, out, probe):
    floats = x.numel()
    if probe == "compute":
        compute[floats // 32, 32](x, out, 4096)
    elif probe == "launch":
        nothing[1, 1](out)
    elif probe == "memory":
        stream_lines[floats // 2048, 1](x, out)
    else:
        stream[cdiv(floats, 2048), 32](x, out, floats)
```
"""


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
        best_ns = {probe.name: _best_ns(runner, probe) for probe in probes}
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
    lanes = device.compute_units * _GROUPS_OF_A_UNIT * _LANES
    return (
        _Probe(name="memory", floats=_whole(2 * cache_floats)),
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
            text=_CANDIDATE, configuration=(), device=site.spec, workloads=names
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


def _best_ns(runner: ChildProcess, probe: _Probe) -> float:
    """Return the shortest sample: a peak, and so the physical floor of others' times."""
    drawn = _shared_buffer(probe)
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


def _shared_buffer(probe: _Probe) -> DrawnInputs:
    """Return a buffer of zeros as the judge would share it: one seed, one slot for each run."""
    size = -(-probe.size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    descriptor = os.memfd_create("peaks", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, 2 * size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
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
    return DrawnInputs(draw=draw, descriptors=(descriptor,))


def _lost(failure: CandidateFailed) -> ProcessLostError:
    why = "; ".join(finding.message for finding in failure.findings)
    return ProcessLostError(f"the device's limits could not be measured: {why}", cause=why)

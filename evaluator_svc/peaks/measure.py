"""Measures the peak rates of a device with our own kernels, timed as candidates are.

Bandwidth from memory (of a copy, and of reading alone) and from cache, float32 operations, rates of
matrix units, the cost of a launch. Taken once for a device and remembered.
"""

import statistics
from typing import Final

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.messages.measurement import MeasurementSettings
from evaluator_svc.peaks.matrix_kernels import (
    MATRIX_KERNELS,
    STEPS_OF_A_BLOCK,
    matrix_formats,
    step_flops,
)
from evaluator_svc.peaks.own_kernels import OwnKernels, OwnWorkload, own_kernels
from evaluator_svc.peaks.peak_kernels import PEAK_KERNELS
from kernel_foundry.domain.device import DeviceSpec, MatrixRate, Peaks

_LANES: Final = 32
_CACHES_OF_DATA: Final = 2
"""Size of the streamed tensors on a CPU, in last-level caches."""
_RUNNER_BYTES_A_FLOAT: Final = 32
"""Two sets of two tensors, in half of what the runner may use: some caches have half a gigabyte."""
_MEMORY_SHARE_ON_GPU: Final = 1 / 16
"""Size of the streamed tensors on a GPU, in its memory. Start and end of a kernel cost the more the
less it streams."""
_MOST_BYTES_ON_GPU: Final = 1 << 32
_FLOATS_OF_A_GROUP: Final = 64 * _LANES
_ACCUMULATORS: Final = 8
_ROUNDS: Final = 4096
_BLOCK: Final = 256
"""Work-items of a block of the matrix kernels."""
_MATRIX_SECONDS: Final = 0.6
"""Of load for each format; the clock settles within a tenth of it."""
_GROUPS_OF_A_UNIT: Final = 16
"""Enough work-groups for every compute unit to have its share."""


def measure_peaks(site: DeviceSite) -> Peaks:
    """Return the device's limits; call it while the device's lock is held alone.

    Raises:
        ProcessLostError: our own kernels could not be built or run.
    """
    workloads = _workloads(site.spec, site.settings.runner_bytes)
    with own_kernels(site, PEAK_KERNELS[site.spec.language], workloads) as kernels:
        best_ns = {workload.name: _best_ns(kernels, workload) for workload in workloads}
    sizes = {workload.name: workload.floats for workload in workloads}
    operations = 2 * _ACCUMULATORS * _ROUNDS * sizes["compute"]
    rates = _matrix_rates(site)
    return Peaks(
        # On an H200 four lines a thread around the caches go at 3.9 TB/s, a plain one at 4.3.
        bandwidth_bytes_per_second=1e9
        * 8
        * sizes["memory"]
        / min(best_ns["memory"], best_ns["plain"]),
        cache_bandwidth_bytes_per_second=1e9 * 8 * sizes["cache"] / best_ns["cache"],
        flops_per_second=1e9 * operations / best_ns["compute"],
        launch_ns=best_ns["launch"],
        read_bandwidth_bytes_per_second=1e9 * 4 * sizes["read"] / best_ns["read"],
        matrix_rates=rates,
    )


def _matrix_rates(site: DeviceSite) -> tuple[MatrixRate, ...]:
    """What the matrix units do under a load that lasts, one rate for each format."""
    units = site.spec.compute_units
    workloads = tuple(
        OwnWorkload(name=name, floats=units * _BLOCK) for name in matrix_formats(site.spec)
    )
    if not workloads:
        return ()
    with own_kernels(site, MATRIX_KERNELS, workloads) as kernels:
        return tuple(
            MatrixRate(
                format=workload.name,
                flops_per_second=1e9
                * units
                * STEPS_OF_A_BLOCK
                * step_flops(workload.name)
                / _lasting_ns(kernels, workload),
            )
            for workload in workloads
        )


def _lasting_ns(kernels: OwnKernels, workload: OwnWorkload) -> float:
    """The median of the later samples: by then the clock is the one that power allows."""
    settings = MeasurementSettings(seconds=_MATRIX_SECONDS, min_seconds=_MATRIX_SECONDS)
    with kernels.opened(workload):
        samples_ns = kernels.times(workload, settings).samples_ns
    return max(statistics.median(samples_ns[len(samples_ns) // 2 :]), 1.0)


def _workloads(device: DeviceSpec, runner_bytes: int) -> tuple[OwnWorkload, ...]:
    cache_floats = max(device.cache_bytes // 4, 1 << 18)
    limits = device.unit_limits
    unit_lanes = _LANES if limits is None else limits.work_items
    lanes = device.compute_units * _GROUPS_OF_A_UNIT * unit_lanes
    streamed = min(_CACHES_OF_DATA * cache_floats, runner_bytes // _RUNNER_BYTES_A_FLOAT)
    if limits is not None:
        most_bytes = min(int(_MEMORY_SHARE_ON_GPU * device.memory_bytes), _MOST_BYTES_ON_GPU)
        streamed = max(streamed, most_bytes // 4)
    return (
        OwnWorkload(name="memory", floats=_whole(streamed), is_streamed=True),
        OwnWorkload(name="plain", floats=_whole(streamed), is_streamed=True),
        OwnWorkload(name="read", floats=_whole(streamed), is_streamed=True),
        # Input and output of both sets together fill half of the cache.
        OwnWorkload(name="cache", floats=_whole(cache_floats // 8)),
        OwnWorkload(name="compute", floats=lanes),
        OwnWorkload(name="launch", floats=_LANES),
    )


def _whole(floats: int) -> int:
    return max(floats // _FLOATS_OF_A_GROUP, 1) * _FLOATS_OF_A_GROUP


def _best_ns(kernels: OwnKernels, workload: OwnWorkload) -> float:
    """The shortest sample: a peak, and so the physical floor of others' times."""
    settings = MeasurementSettings(seconds=0.4, max_samples=300, warmup_calls=5)
    with kernels.opened(workload):
        return max(min(kernels.times(workload, settings).samples_ns), 1.0)

"""Kernels of a profile where no counters are open: from times, object code and the launch."""

from collections.abc import Sequence
from typing import Final

from evaluator_svc.diagnosis.occupancy import occupancy
from evaluator_svc.pipeline.profile.instruction_mix import instruction_mix
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import KernelResources, WorkloadResult
from kernel_foundry.domain.kernel_time import KernelTime
from kernel_foundry.domain.launch_facts import LaunchFacts
from kernel_foundry.domain.profile import MOST_KERNELS, KernelProfile

_LIBRARY: Final = "library calls"


def object_kernels(
    result: WorkloadResult,
    kernels: Sequence[str],
    *,
    resources: Sequence[KernelResources],
    launches: LaunchFacts,
    device: DeviceSpec,
    assembly: str,
) -> tuple[KernelProfile, ...]:
    """Return the kernels that take longest, and library calls as one.

    Args:
        result: The workload's times.
        kernels: Names of those that its plan launches.
        resources: Of built kernels; empty where object code does not tell.
        launches: What the plan launches.
        device: Where it ran.
        assembly: PTX; empty where there is none.
    """
    call_ns = 0.0 if result.timing is None else result.timing.median_ns
    own_ns = call_ns if result.own_share is None else call_ns * result.own_share
    times = {time.kernel: time for time in result.kernel_times}
    taken = {one.kernel: one for one in resources}
    found = []
    for kernel in kernels:
        time = times.get(kernel) or KernelTime(
            kernel=kernel, launches=1, median_ns=own_ns if len(kernels) == 1 else 0.0
        )
        found.append(_kernel(time, taken.get(kernel), launches, device, assembly))
    if call_ns > own_ns:
        library = KernelProfile(kernel=_LIBRARY, time_ns=call_ns - own_ns, is_library=True)
        found.append(library)
    return tuple(sorted(found, key=lambda kernel: -kernel.time_ns)[:MOST_KERNELS])


def _kernel(
    time: KernelTime,
    taken: KernelResources | None,
    launches: LaunchFacts,
    device: DeviceSpec,
    assembly: str,
) -> KernelProfile:
    is_main = time.kernel == launches.kernel
    held = None
    if taken is not None and is_main:
        held = occupancy(
            taken,
            group_size=launches.group_size,
            dynamic_bytes=launches.shared_bytes,
            device=device,
        )
    static_bytes = 0 if taken is None else taken.shared_bytes
    return KernelProfile(
        kernel=time.kernel,
        time_ns=time.median_ns,
        launches=time.launches,
        possible_occupancy=None if held is None else held.share,
        occupancy_limit="" if held is None or held.share >= 1 else held.limit.value,
        registers=0 if taken is None else taken.registers,
        shared_bytes=static_bytes + (launches.shared_bytes if is_main else 0),
        instructions=instruction_mix(assembly, time.kernel) if assembly else (),
    )

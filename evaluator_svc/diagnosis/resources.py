"""Findings from what kernels take: occupancy, spilled registers, waves, groups that do not fit."""

from collections.abc import Iterator
from typing import Final

from evaluator_svc.behaviour import KernelFacts
from evaluator_svc.diagnosis.occupancy import Limit, Occupancy, occupancy
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import KernelResources
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity
from kernel_foundry.domain.kernel_time import KernelTime, shares
from kernel_foundry.domain.launch_facts import LaunchFacts

_LOW_SHARE: Final = 0.5
"""Share of a compute unit's work-items below which occupancy is reported."""
_TAIL_WASTE: Final = 0.2
"""Share of the kernel's time; a larger loss to the last wave is reported."""
_MAIN_SHARE: Final = 0.25
"""Share of the time of all kernels below which the largest launch's occupancy matters little."""

_OCCUPANCY_HINTS: Final = {
    Limit.REGISTERS: "fewer values alive at once: smaller register tiles, or "
    "__launch_bounds__(threads, blocks per multiprocessor)",
    Limit.SHARED_MEMORY: "smaller tiles or fewer stages in shared memory",
    Limit.GROUP_SIZE: "blocks of 128 or 256 threads fill a multiprocessor best",
    Limit.GROUPS: "larger blocks: 128 or 256 threads",
}


def resource_findings(
    resources: tuple[KernelResources, ...],
    launches: LaunchFacts | None,
    device: DeviceSpec,
    *,
    kernels: KernelFacts | None = None,
    times: tuple[KernelTime, ...] = (),
) -> tuple[Finding, ...]:
    """Return the findings on the kernels' resources.

    Args:
        resources: Of every kernel; those of several configurations may repeat a name.
        launches: What the plan launches; None: not known.
        device: Where it runs.
        kernels: What the kernels do; None: not known.
        times: Of the kernels of a plan with several; empty: not known.
    """
    spilled = (finding for one in dict.fromkeys(resources) for finding in _spills(one))
    main = None if launches is None else _main(resources, launches)
    if main is None or launches is None or _is_small(main, times):
        return tuple(spilled)
    held = occupancy(
        main,
        group_size=launches.group_size,
        dynamic_bytes=launches.shared_bytes,
        device=device,
    )
    if held is None:
        return tuple(spilled)
    return (
        *spilled,
        *_occupancy(main, held, launches, device, kernels),
        *_tail(main, held, launches, device),
    )


def launch_findings(
    resources: tuple[KernelResources, ...], launches: LaunchFacts | None, device: DeviceSpec
) -> tuple[Finding, ...]:
    """Return why a launch was refused for want of resources; empty when these are not why.

    Args:
        resources: Of every kernel.
        launches: What the plan launches; None: not known.
        device: Where it should run.
    """
    main = None if launches is None else _main(resources, launches)
    if main is None or launches is None:
        return ()
    held = occupancy(
        main, group_size=launches.group_size, dynamic_bytes=launches.shared_bytes, device=device
    )
    if held is None or held.groups > 0:
        return ()
    finding = Finding(
        kind=FindingKind.LAUNCH_RESOURCE,
        severity=Severity.ERROR,
        message=f"not even one group of {launches.group_size} work-items of {main.kernel} fits on "
        f"a compute unit: {held.limit} is the limit",
        evidence=_evidence(main, held, launches),
        hint=_OCCUPANCY_HINTS[held.limit],
    )
    return (finding,)


def _main(resources: tuple[KernelResources, ...], launches: LaunchFacts) -> KernelResources | None:
    """Return the resources of the largest launch's kernel, the worst configuration's of several."""
    own = [r for r in resources if r.kernel == launches.kernel or len(resources) == 1]
    return max(own, key=lambda r: (r.registers, r.shared_bytes), default=None)


def _is_small(main: KernelResources, times: tuple[KernelTime, ...]) -> bool:
    return any(
        time.kernel == main.kernel and share < _MAIN_SHARE
        for time, share in zip(times, shares(times), strict=True)
    )


def _spills(resources: KernelResources) -> Iterator[Finding]:
    evidence = (
        Figure(name="spill_bytes", value=float(resources.spill_bytes)),
        Figure(name="local_bytes", value=float(resources.local_bytes)),
        Figure(name="registers", value=float(resources.registers)),
    )
    if resources.spill_bytes > 0:
        yield Finding(
            kind=FindingKind.SPILL,
            severity=Severity.WARNING,
            message=f"{resources.kernel} stores and loads {resources.spill_bytes} bytes of "
            f"registers that did not fit in memory, at {resources.registers} registers a work-item",
            evidence=evidence,
            hint="smaller register tiles, less unrolling, or a larger limit by __launch_bounds__",
        )
    elif resources.local_bytes > 0:
        yield Finding(
            kind=FindingKind.REGISTER_PRESSURE,
            severity=Severity.WARNING,
            message=f"{resources.kernel} keeps {resources.local_bytes} bytes of each work-item in "
            "device memory",
            evidence=evidence,
            hint="an array stays in registers when every index is known at compile time: "
            "#pragma unroll all loops over it",
        )


def _occupancy(
    resources: KernelResources,
    held: Occupancy,
    launches: LaunchFacts,
    device: DeviceSpec,
    kernels: KernelFacts | None,
) -> Iterator[Finding]:
    if held.share >= _LOW_SHARE or held.groups == 0:
        return
    # Tiles in registers buy reuse with occupancy: for them a low one is no mistake.
    is_meant = kernels is not None and (kernels.has_register_tile or kernels.has_matrix_product)
    yield Finding(
        kind=FindingKind.OCCUPANCY,
        severity=Severity.INFO if is_meant else Severity.WARNING,
        message=f"a compute unit holds {held.groups} groups of {launches.group_size} work-items "
        f"of {resources.kernel}, {held.share:.0%} of what it could: {held.limit} is the limit",
        evidence=_evidence(resources, held, launches),
        hint="" if is_meant or _is_usual_block(held, launches) else _OCCUPANCY_HINTS[held.limit],
    )


def _is_usual_block(held: Occupancy, launches: LaunchFacts) -> bool:
    """Return whether the hint would be a block of the size that it has."""
    return held.limit is Limit.GROUP_SIZE and 128 <= launches.group_size <= 256


def _tail(
    main: KernelResources, held: Occupancy, launches: LaunchFacts, device: DeviceSpec
) -> Iterator[Finding]:
    at_once = held.groups * device.compute_units
    if launches.group_count <= at_once or at_once == 0:
        return
    waves = launches.group_count / at_once
    whole = -(-launches.group_count // at_once)
    waste = 1.0 - waves / whole
    if waste < _TAIL_WASTE:
        return
    yield Finding(
        kind=FindingKind.OCCUPANCY,
        severity=Severity.INFO,
        message=f"{launches.group_count} groups of {main.kernel} run in {whole} waves of "
        f"{at_once}; the last is mostly empty, and {waste:.0%} of this kernel's time with it",
        evidence=(
            Figure(name="waves", value=waves),
            Figure(name="groups_at_once", value=float(at_once)),
        ),
        hint="let a block do several tiles in a loop (a grid of as many blocks as run at once), or "
        "change the tile",
    )


def _evidence(
    resources: KernelResources, held: Occupancy, launches: LaunchFacts
) -> tuple[Figure, ...]:
    return (
        Figure(name="occupancy", value=held.share),
        Figure(name="groups_per_unit", value=float(held.groups)),
        Figure(name="group_size", value=float(launches.group_size)),
        Figure(name="registers", value=float(resources.registers)),
        Figure(name="shared_bytes", value=float(resources.shared_bytes + launches.shared_bytes)),
    )

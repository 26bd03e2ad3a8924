"""Occupancy by NVIDIA's rules, and what is told of it. The device's limits are an H200's."""

import dataclasses
from dataclasses import replace

import pytest

from evaluator_svc.behaviour import KernelFacts
from evaluator_svc.diagnosis import launch_findings
from evaluator_svc.diagnosis.occupancy import Limit, occupancy
from evaluator_svc.diagnosis.resources import resource_findings
from kernel_foundry.domain.device import UnitLimits
from kernel_foundry.domain.evaluation import KernelResources
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.kernel_time import KernelTime
from kernel_foundry.domain.launch_facts import LaunchFacts
from tests.domain_values import H200

DEVICE = replace(
    H200,
    unit_limits=UnitLimits(registers=65536, shared_bytes=228 << 10, work_items=2048, groups=32),
)


def kernel(*, registers: int = 32, shared: int = 0, local: int = 0, spill: int = 0):
    return KernelResources(
        kernel="k", registers=registers, shared_bytes=shared, local_bytes=local, spill_bytes=spill
    )


def launches(*, groups: int = 132 * 64, size: int = 256, shared: int = 0) -> LaunchFacts:
    return LaunchFacts(
        launch_count=1, group_count=groups, group_size=size, kernel="k", shared_bytes=shared
    )


def findings(
    resources: KernelResources,
    facts: LaunchFacts,
    kernels: KernelFacts | None = None,
    times: tuple[KernelTime, ...] = (),
) -> dict[FindingKind, Finding]:
    found = resource_findings((resources,), facts, DEVICE, kernels=kernels, times=times)
    return {f.kind: f for f in found}


@pytest.mark.parametrize(
    ("resources", "size", "dynamic", "groups", "limit"),
    [
        # By the rules of NVIDIA's occupancy calculator.
        (kernel(registers=16), 256, 0, 8, Limit.GROUP_SIZE),
        (kernel(registers=128), 256, 0, 2, Limit.REGISTERS),
        (kernel(registers=80), 256, 0, 3, Limit.REGISTERS),
        (kernel(registers=65), 1024, 0, 0, Limit.REGISTERS),
        (kernel(shared=16384), 128, 0, 13, Limit.SHARED_MEMORY),
        (kernel(), 256, 100 << 10, 2, Limit.SHARED_MEMORY),
        (kernel(), 32, 0, 32, Limit.GROUPS),
        (kernel(), 1000, 0, 2, Limit.REGISTERS),
    ],
)
def test_the_scarcest_resource_decides(
    resources: KernelResources, size: int, dynamic: int, groups: int, limit: Limit
) -> None:
    held = occupancy(resources, group_size=size, dynamic_bytes=dynamic, device=DEVICE)

    assert held is not None
    assert (held.groups, held.limit) == (groups, limit)


def test_a_device_that_does_not_tell_has_no_occupancy() -> None:
    device = dataclasses.replace(DEVICE, unit_limits=None)

    assert occupancy(kernel(), group_size=64, dynamic_bytes=0, device=device) is None


def test_low_occupancy_is_told_with_what_binds() -> None:
    found = findings(kernel(registers=128), launches())[FindingKind.OCCUPANCY]

    assert found.severity is Severity.WARNING
    assert "registers" in found.message
    assert {e.name: e.value for e in found.evidence}["occupancy"] == 0.25
    assert "__launch_bounds__" in found.hint


def test_low_occupancy_is_no_mistake_of_register_tiles() -> None:
    facts = KernelFacts(has_register_tile=True)

    found = findings(kernel(registers=128), launches(), facts)[FindingKind.OCCUPANCY]

    assert found.severity is Severity.INFO


def test_a_full_multiprocessor_is_not_told() -> None:
    assert findings(kernel(), launches()) == {}


@pytest.mark.parametrize(
    ("resources", "kind", "hint"),
    [
        (kernel(registers=255, local=200, spill=300), FindingKind.SPILL, "register tiles"),
        (kernel(local=256), FindingKind.REGISTER_PRESSURE, "unroll"),
    ],
)
def test_registers_in_memory_are_told(
    resources: KernelResources, kind: FindingKind, hint: str
) -> None:
    assert hint in findings(resources, launches())[kind].hint


def test_a_last_wave_that_is_mostly_empty_is_told() -> None:
    at_once = 132 * 8

    found = findings(kernel(), launches(groups=at_once + 10))[FindingKind.OCCUPANCY]

    assert "of k run in 2 waves" in found.message
    assert findings(kernel(), launches(groups=2 * at_once)) == {}
    assert findings(kernel(), launches(groups=at_once // 2)) == {}


@pytest.mark.parametrize(("others_ns", "is_told"), [(1e5, True), (9e5, False)])
def test_waves_of_a_kernel_that_takes_little_of_the_time_are_not_told(
    others_ns: float, is_told: bool
) -> None:
    times = tuple(
        KernelTime(kernel=name, launches=1, median_ns=ns)
        for name, ns in (("k", 1e5), ("others", others_ns))
    )

    found = findings(kernel(), launches(groups=132 * 8 + 10), times=times)

    assert (FindingKind.OCCUPANCY in found) == is_told


def test_a_group_that_does_not_fit_has_its_reason() -> None:
    (found,) = launch_findings((kernel(registers=80),), launches(size=1024), DEVICE)

    assert (found.kind, found.severity) == (FindingKind.LAUNCH_RESOURCE, Severity.ERROR)
    assert "registers" in found.message
    assert launch_findings((kernel(registers=32),), launches(size=1024), DEVICE) == ()

"""How many work-groups of a kernel a compute unit holds at once, and what keeps it from more.

NVIDIA's own rules of allocation.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kernel_foundry.domain.device import DeviceSpec, UnitLimits
from kernel_foundry.domain.evaluation import KernelResources

_REGISTER_UNIT: Final = 256
"""Registers are given to a warp in multiples of this."""
_SCHEDULERS: Final = 4
"""Parts of a multiprocessor; each has its own share of registers."""
_SHARED_UNIT: Final = 128
_RESERVED_SHARED: Final = 1024
"""Bytes that the system keeps for itself in each group's shared memory, since sm_80."""


class Limit(StrEnum):
    """The resource that keeps more groups from a compute unit."""

    REGISTERS = "registers"
    SHARED_MEMORY = "shared memory"
    GROUP_SIZE = "the size of the work-group"
    GROUPS = "the number of work-groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """The work-groups that a compute unit runs at once."""

    groups: int
    """0: not even one fits."""
    share: float
    """Share of the work-items that a compute unit could hold."""
    limit: Limit


def occupancy(
    resources: KernelResources, *, group_size: int, dynamic_bytes: int, device: DeviceSpec
) -> Occupancy | None:
    """Return what one compute unit holds; None where the device does not tell its limits.

    Args:
        resources: The kernel's.
        group_size: Work-items of a group.
        dynamic_bytes: Dynamic shared memory of a group.
        device: Where it runs.
    """
    limits = device.unit_limits
    if limits is None or group_size <= 0:
        return None
    warps = -(-group_size // device.sub_group_size)
    fitting = {
        Limit.GROUPS: limits.groups,
        Limit.GROUP_SIZE: limits.work_items // (warps * device.sub_group_size),
        Limit.REGISTERS: _by_registers(resources, warps, device.sub_group_size, limits),
        Limit.SHARED_MEMORY: _by_shared(resources.shared_bytes + dynamic_bytes, limits),
    }
    # Where two bind alike, the one that the candidate can change more easily is told.
    order = (Limit.SHARED_MEMORY, Limit.REGISTERS, Limit.GROUP_SIZE, Limit.GROUPS)
    limit = min(order, key=lambda which: fitting[which])
    groups = fitting[limit]
    held = groups * warps * device.sub_group_size
    return Occupancy(groups=groups, share=held / limits.work_items, limit=limit)


def _by_registers(
    resources: KernelResources, warps: int, warp_size: int, limits: UnitLimits
) -> int:
    per_warp = -(-resources.registers * warp_size // _REGISTER_UNIT) * _REGISTER_UNIT
    if per_warp == 0:
        return limits.groups
    held = limits.registers // _SCHEDULERS // per_warp * _SCHEDULERS
    return held // warps


def _by_shared(shared_bytes: int, limits: UnitLimits) -> int:
    per_group = -(-(shared_bytes + _RESERVED_SHARED) // _SHARED_UNIT) * _SHARED_UNIT
    return limits.shared_bytes // per_group

"""Checks grid, block and shared memory of a launch against the kernel and the device.

Errors carry no line; the interpreter adds it.
"""

from __future__ import annotations

import math
from typing import Final

from kernel_foundry.languages import Extent, KernelLanguage
from kernel_foundry.plan.arithmetic import whole
from kernel_foundry.plan.errors import bind_error
from kernel_foundry.plan.signature import KernelSignature
from kernel_foundry.plan.values import DeviceLimits, Value, describe

_MAX_CLUSTER: Final = 8
"""Blocks of a cluster, on every device that has clusters."""


def check_extent(value: Value, what: str, kernel: KernelSignature) -> Extent:
    """Return a grid or a block as three sizes in x, y, z.

    Raises:
        PlanError: `bind`, when it is no int or tuple of 1 to 3 positive ints, or has more
            dimensions than the kernel.
    """
    items = value if isinstance(value, tuple) else (value,)
    if not 1 <= len(items) <= 3:
        raise bind_error(f"{what} of {kernel.name} has 1 to 3 sizes, not {len(items)}")
    sizes = [whole(item, f"{what} of {kernel.name}") for item in items]
    for size in sizes:
        if size < 1:
            raise bind_error(f"{what} of {kernel.name} must be at least 1, not {size}")
    if any(size > 1 for size in sizes[kernel.dimensions :]):
        raise bind_error(
            f"{what} of {kernel.name} has {len(sizes)} dimensions {tuple(sizes)}, but the kernel "
            f"is nd_range_kernel<{kernel.dimensions}>"
        )
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def check_launch(
    kernel: KernelSignature,
    grid: Extent,
    block: Extent,
    device: DeviceLimits,
    language: KernelLanguage,
) -> None:
    """Refuse a grid or a block that the device cannot launch.

    Raises:
        PlanError: `bind`, naming the limit.
    """
    threads = math.prod(block)
    if threads > device.max_block:
        raise bind_error(
            f"the block {block} of {kernel.name} has {threads} threads; the device takes at most "
            f"{device.max_block}"
        )
    if kernel.max_threads is not None and threads > kernel.max_threads:
        raise bind_error(
            f"the block {block} of {kernel.name} has {threads} threads; its __launch_bounds__ says "
            f"at most {kernel.max_threads}"
        )
    for what, extent, limits in (
        ("grid", grid, language.max_grid),
        ("block", block, language.max_block),
    ):
        if limits is not None:
            _check_each(what, kernel, extent, limits, language)
    _check_cluster(kernel, grid)
    items = math.prod(grid) * threads
    if language.max_items is not None and items > language.max_items:
        raise bind_error(
            f"{kernel.name} is launched with {items} work-items; at most {language.max_items} are "
            "available: let each one handle several elements"
        )


def _check_cluster(kernel: KernelSignature, grid: Extent) -> None:
    if kernel.cluster is None:
        return
    if not 1 <= math.prod(kernel.cluster) <= _MAX_CLUSTER:
        raise bind_error(
            f"__cluster_dims__ of {kernel.name} is {kernel.cluster}: a cluster holds 1 to "
            f"{_MAX_CLUSTER} blocks"
        )
    if any(size % blocks for size, blocks in zip(grid, kernel.cluster, strict=True)):
        raise bind_error(
            f"the grid {grid} of {kernel.name} must be a multiple of its __cluster_dims__ "
            f"{kernel.cluster} in x, y and z"
        )


def check_shared_bytes(value: Value, device: DeviceLimits, language: KernelLanguage) -> int:
    """Return the dynamic shared memory of a launch in bytes.

    Raises:
        PlanError: `bind`, when it does not fit the device or the language has none.
    """
    size_bytes = whole(value, "shared_bytes")
    if language.without_shared_bytes and size_bytes != 0:
        raise bind_error(
            f"shared_bytes is not available in {language.title}: {language.without_shared_bytes}"
        )
    if not 0 <= size_bytes <= device.shared_bytes:
        raise bind_error(f"shared_bytes is {size_bytes}; the device has 0 to {device.shared_bytes}")
    return size_bytes


def check_cooperative(value: Value, language: KernelLanguage) -> bool:
    """Return True for the fourth part of a cooperative launch.

    Raises:
        PlanError: `bind`, for any other word, and in a language without such launches.
    """
    if value != "cooperative":
        raise bind_error(f'the fourth part of a launch is "cooperative", not {describe(value)}')
    if language.without_cooperative:
        raise bind_error(
            f"cooperative launches are not available in {language.title}: "
            f"{language.without_cooperative}"
        )
    return True


def _check_each(
    what: str, kernel: KernelSignature, extent: Extent, limits: Extent, language: KernelLanguage
) -> None:
    for axis, size, limit in zip("xyz", extent, limits, strict=True):
        if size > limit:
            raise bind_error(
                f"{what} {axis} of {kernel.name} is {size}; {language.title} takes at most {limit}"
            )

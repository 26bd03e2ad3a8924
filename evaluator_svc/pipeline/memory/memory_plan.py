"""Plans how much device memory an evaluation holds: with every copy, or as little as possible."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.messages.draw import SEED_COUNT
from evaluator_svc.messages.runner import BoundWorkload
from evaluator_svc.pipeline.correctness.generated_sizes import has_one_seed
from evaluator_svc.pipeline.correctness.range_choice import RangeChoice
from evaluator_svc.sizes.memory_needs import (
    MemoryNeed,
    WorkloadSizes,
    full_need,
    has_ranges_size,
    lean_need,
    pool_bytes,
)
from kernel_foundry.domain.admission import Admission, WorkloadAdmission

_SMALL_SHARE: Final = 1 / 16
"""A workload that takes no more of the memory with every copy has them in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """How the workloads of a task are judged, and what that takes."""

    needed_bytes: int
    """Without what the candidate's plan asks for."""
    lean: frozenset[str]
    """Names of the workloads that are judged seed by seed."""
    large_ranges: frozenset[str] = frozenset()
    """Names of the workloads that are tried on unusual values in a buffer of one seed."""
    without_ranges: frozenset[str] = frozenset()
    """Names of the workloads that are not tried on unusual values, for lack of memory."""


def memory_plans(
    admission: Admission, site: DeviceSite, *, seed_count: int = SEED_COUNT
) -> tuple[MemoryPlan, ...]:
    """Return the ways to judge a task that fit the device, largest first.

    With every copy where each of the evaluations that may be in progress could have as much.

    Args:
        admission: The task.
        site: The device.
        seed_count: Input sets of each workload.
    """
    choice = RangeChoice(admission, site)
    large = (w for w in admission.workloads if choice.count(w) and not has_ranges_size(sizes_of(w)))
    names = [w.workload for w in sorted(large, key=lambda w: sizes_of(w).set_bytes)]
    for count in range(len(names), -1, -1):
        plans = _plans(admission, site, seed_count, frozenset(names[:count]))
        if plans[-1].needed_bytes <= site.memory.capacity_bytes:
            break
    return tuple(replace(plan, without_ranges=frozenset(names[count:])) for plan in plans)


def _plans(
    admission: Admission, site: DeviceSite, seed_count: int, large_ranges: frozenset[str]
) -> tuple[MemoryPlan, ...]:
    """Return the ways to judge a task, with unusual values on `large_ranges` and small ones."""
    capacity = site.memory.capacity_bytes
    full = {
        w.workload: _lean(w, site) if has_one_seed(w) else _full(w, site, seed_count)
        for w in admission.workloads
    }
    lean = {
        w.workload: _lean(w, site)
        for w in admission.workloads
        if full[w.workload].bytes > _SMALL_SHARE * capacity
    }
    choice = RangeChoice(admission, site)
    ranges = sum(_ranges_bytes(w, choice.draws(w), large_ranges) for w in admission.workloads)
    plan = MemoryPlan(needed_bytes=0, lean=frozenset(), large_ranges=large_ranges)
    dear = replace(plan, needed_bytes=_sum(full.values()) + ranges)
    if not lean:
        return (dear,)
    needed = _sum({**full, **lean}.values()) + ranges
    least = replace(plan, needed_bytes=needed, lean=frozenset(lean))
    if least.needed_bytes > capacity:
        lean = {w.workload: _lean(w, site) for w in admission.workloads}
        needed = _sum(lean.values()) + ranges
        least = replace(plan, needed_bytes=needed, lean=frozenset(lean))
    is_affordable = dear.needed_bytes * site.settings.parallel_evaluations <= capacity
    return (dear, least) if is_affordable else (least,)


def own_bytes(bound: Iterable[BoundWorkload], plan: MemoryPlan) -> int:
    """Return the bytes that a candidate's plan allocates beside the tensors, on all workloads."""
    return sum(
        (workload.scratch_bytes + workload.result_bytes)
        * (2 if workload.workload in plan.large_ranges else 1)
        # With a copy, to see that nobody has changed it.
        + 2 * workload.prepared_bytes * (1 if workload.workload in plan.lean else SEED_COUNT)
        for workload in bound
    )


def pool_limit(workload: str, plan: MemoryPlan, site: DeviceSite) -> int:
    """Return the most bytes of a workload's timed input sets."""
    return 0 if workload in plan.lean else site.settings.pool_limit_bytes


def _sum(needs: Iterable[MemoryNeed]) -> int:
    needs = tuple(needs)
    return sum(need.held_bytes for need in needs) + max(need.passing_bytes for need in needs)


def _full(workload: WorkloadAdmission, site: DeviceSite, seed_count: int) -> MemoryNeed:
    sizes = sizes_of(workload)
    pool = _pool_bytes(workload, sizes, site, site.settings.pool_limit_bytes)
    return full_need(sizes, pool_bytes=pool, seed_count=seed_count)


def _lean(workload: WorkloadAdmission, site: DeviceSite) -> MemoryNeed:
    sizes = sizes_of(workload)
    return lean_need(sizes, pool_bytes=_pool_bytes(workload, sizes, site, 0))


def sizes_of(workload: WorkloadAdmission) -> WorkloadSizes:
    """Return the sizes of an admitted workload's tensors."""
    return WorkloadSizes.of(workload.tensors, reference_bytes=workload.reference_bytes)


def _pool_bytes(
    workload: WorkloadAdmission, sizes: WorkloadSizes, site: DeviceSite, limit_bytes: int
) -> int:
    if workload.held_out:
        return 0
    return pool_bytes(
        sizes,
        wanted_bytes=site.spec.flush_bytes,
        limit_bytes=limit_bytes,
        is_gpu=not site.shares_cores,
    )


def _ranges_bytes(workload: WorkloadAdmission, count: int, large: frozenset[str]) -> int:
    """Return the bytes of `count` draws of unusual values: buffer and copies of each, or a buffer.

    While a set that is timed has such inputs, its own are beside it.
    """
    sizes = sizes_of(workload)
    if not count or not (has_ranges_size(sizes) or workload.workload in large):
        return 0
    aside_bytes = 0 if workload.held_out else sizes.source_bytes
    if not has_ranges_size(sizes):
        return sizes.set_bytes + aside_bytes
    return full_need(sizes, pool_bytes=0, seed_count=count).held_bytes + aside_bytes

"""The levels of a candidate's three measures, each with its reason, from facts about its kernels.

`kernel_foundry.domain.measures.LEVEL_TEXTS` says what each level means.
"""

from dataclasses import dataclass

from evaluator_svc.behaviour.facts import KernelFacts, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A level from 0 to 3, and why."""

    level: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCounts:
    """Counts of the plan, beside the facts about kernels."""

    launch_count: int
    scratch_count: int
    """Buffers that the plan allocates."""
    reference_op_count: int
    """Operators of the reference; 0: unknown."""


def memory(facts: KernelFacts) -> Level:
    """Return how global and local memory are used."""
    good = max(facts.contiguous_weight, facts.vector_weight)
    if facts.stages_local:
        if facts.has_register_tile:
            return Level(level=3, reason="tiles in local memory, and register tiles of products")
        if facts.moves_ahead:
            return Level(level=3, reason="tiles in local memory, filled ahead of use")
        return Level(level=2, reason="global data is staged in local memory")
    if good > 0 and good >= facts.strided_weight:
        return Level(level=1, reason="neighbouring work-items touch neighbouring data")
    if facts.strided_weight > 0:
        return Level(level=0, reason="neighbouring work-items touch data that lie apart")
    return Level(level=0, reason="scalar accesses: work-items of a group do not share the data")


def algorithm(facts: KernelFacts, counts: PlanCounts) -> Level:
    """Return how the operator was restated."""
    passes = max(facts.pass_count, counts.launch_count)
    operators = counts.reference_op_count
    rules = (
        (3, facts.has_matrix_product, "products on matrix units"),
        (3, facts.has_register_tile, "register tiles of products: each load is used several times"),
        (2, facts.reduces_in_group, "work-items reduce or exchange values in their group"),
        (2, facts.shares_local, "work-items share values through local memory"),
        (2, facts.is_online, "an online recurrence: running values are corrected"),
        (1, passes < operators, f"fused: {passes} passes for {operators} operators"),
    )
    direct = Level(level=0, reason=f"direct: {passes} passes, each work-item on its own")
    met = (Level(level=level, reason=reason) for level, holds, reason in rules if holds)
    return next(met, direct)


def synchronization(facts: KernelFacts, counts: PlanCounts) -> Level:
    """Return how far work-items wait for each other."""
    scopes = {*facts.barrier_scopes, *facts.group_scopes}
    if facts.has_global_atomics:
        return Level(level=3, reason="atomics on global memory")
    if Scope.DEVICE in scopes:
        return Level(level=3, reason="barriers across work-groups")
    if counts.launch_count > 1 and counts.scratch_count > 0:
        text = f"{counts.launch_count} launches hand data on through scratch"
        return Level(level=3, reason=text)
    if Scope.SUB_GROUP in scopes:
        return Level(level=2, reason="sub-group operations")
    if Scope.WORK_GROUP in scopes or facts.has_local_atomics:
        return Level(level=1, reason="work-group barriers or group operations")
    return Level(level=0, reason="work-items never wait for each other")

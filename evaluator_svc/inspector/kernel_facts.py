"""From a program and its memory accesses to the facts that levels and diagnoses stand on."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from evaluator_svc.behaviour import KernelFacts
from evaluator_svc.inspector.access import Access, access_weight
from evaluator_svc.inspector.lowered_program import FAR, LoweredProgram, Space
from evaluator_svc.inspector.recurrence import Recurrences


def kernel_facts(
    program: LoweredProgram[Any],
    by_kernel: Sequence[Sequence[Access]],
    carried: Sequence[Recurrences],
) -> KernelFacts:
    """Return the facts about a program's kernels together.

    Args:
        program: The program.
        by_kernel: Memory accesses of each kernel.
        carried: What loops carry, of each function.
    """
    found = [access for several in by_kernel for access in several]
    operations = [o for body in program.functions.values() for o in body.operations]
    far = [a for a in found if a.space in FAR]
    strided = [a for a in far if not a.is_contiguous and not a.is_uniform]
    near = [a for a in found if a.space is Space.GROUP]
    reads_local = any(not a.is_store for a in near)
    atomics = {o.atomic for o in operations if o.atomic is not None}
    barriers = {o.barrier for o in operations if o.barrier is not None}
    groups = {o.group for o in operations if o.group is not None}
    heaviest = max(strided, key=lambda access: access.depth, default=None)
    return KernelFacts(
        contiguous_weight=access_weight(a for a in far if a.is_contiguous),
        strided_weight=access_weight(strided),
        strided_line=None if heaviest is None else heaviest.line,
        uniform_weight=access_weight(a for a in far if a.is_uniform),
        vector_weight=access_weight(a for a in far if a.lanes > 1),
        pass_count=sum(_pass_count(several) for several in by_kernel),
        stages_local=reads_local and any(a.is_store and a.is_copy for a in near),
        shares_local=reads_local and any(a.is_store for a in near) and bool(barriers),
        moves_ahead=any(o.moves_ahead for o in operations),
        has_register_tile=any(c.has_register_tile for c in carried),
        has_matrix_product=any(o.is_matrix_product for o in operations),
        is_online=any(c.is_online for c in carried),
        reduces_in_group=bool(groups),
        group_scopes=tuple(sorted(groups)),
        barrier_scopes=tuple(sorted(barriers)),
        has_global_atomics=bool(atomics - {Space.GROUP}),
        has_local_atomics=Space.GROUP in atomics,
    )


def _pass_count(found: Iterable[Access]) -> int:
    """Return how many loops walk global data: the parts of an unrolled loop are one."""
    firsts: dict[Hashable, Hashable] = {}
    for access in found:
        if access.space in FAR and access.outermost_loop is not None:
            firsts.setdefault(access.outermost_loop, access.place or access.outermost_loop)
    return max(1, len(set(firsts.values())))

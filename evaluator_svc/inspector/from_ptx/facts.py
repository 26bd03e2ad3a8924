"""The facts of kernels that came as PTX.

Knows nothing of levels.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from evaluator_svc.behaviour.facts import KernelFacts, Scope
from evaluator_svc.inspector.access import access_weight
from evaluator_svc.inspector.from_ptx.access import PtxAccess, accesses
from evaluator_svc.inspector.from_ptx.dataflow import dataflow
from evaluator_svc.inspector.from_ptx.values import space_of
from evaluator_svc.inspector.recurrence import recurrences
from evaluator_svc.ptx import Function, Instruction, Module
from evaluator_svc.spirv.opcodes import StorageClass

_GLOBAL: Final = (StorageClass.CROSS_WORKGROUP, StorageClass.GENERIC)
"""A generic address that nothing more is known of is taken for a global one."""
_MATRIX_PRODUCTS: Final = frozenset({("wgmma", "mma_async"), ("wmma", "mma"), ("tcgen05", "mma")})
_WARP: Final = frozenset({"shfl", "vote", "match", "redux"})


def kernel_facts(module: Module) -> KernelFacts:
    """Return what a module's kernels do."""
    by_kernel = [accesses(module, kernel) for kernel in module.kernels()]
    found = [access for several in by_kernel for access in several]
    functions = tuple(_reachable(module))
    instructions = [i for f in functions for i in f.body]
    carried = [recurrences(dataflow(f)) for f in functions]
    far = [a for a in found if a.storage in _GLOBAL]
    local = [a for a in found if a.storage == StorageClass.WORKGROUP]
    atomics = {_atomic_space(i) for i in instructions} - {None}
    group_scopes = tuple(sorted(set(_group_scopes(instructions))))
    barriers = tuple(sorted(set(_barrier_scopes(instructions))))
    # Matrix units read shared memory by descriptors, which are no addresses.
    has_descriptors = any(i.opcode in ("wgmma", "tcgen05") for i in instructions)
    reads_local = has_descriptors or any(not a.is_store for a in local)
    return KernelFacts(
        contiguous_weight=access_weight(a for a in far if a.is_contiguous),
        strided_weight=access_weight(a for a in far if not a.is_contiguous and not a.is_uniform),
        strided_line=_heaviest_strided_line(module, far),
        uniform_weight=access_weight(a for a in far if a.is_uniform),
        vector_weight=access_weight(a for a in far if a.lanes > 1),
        pass_count=sum(_pass_count(several) for several in by_kernel),
        stages_local=reads_local and any(a.is_store and a.is_copy for a in local),
        shares_local=reads_local and any(a.is_store for a in local) and bool(barriers),
        moves_ahead=any(_moves_ahead(i) for i in instructions),
        has_register_tile=any(c.has_register_tile for c in carried),
        has_matrix_product=any(
            i.opcode == "mma" or i.parts[:2] in _MATRIX_PRODUCTS for i in instructions
        ),
        is_online=any(c.is_online for c in carried),
        reduces_in_group=bool(group_scopes),
        group_scopes=group_scopes,
        barrier_scopes=barriers,
        has_global_atomics=bool(atomics - {"shared"}),
        has_local_atomics="shared" in atomics,
    )


def _heaviest_strided_line(module: Module, far: Iterable[PtxAccess]) -> int | None:
    strided = (a for a in far if not a.is_contiguous and not a.is_uniform)
    deepest = max(strided, key=lambda access: access.depth, default=None)
    return None if deepest is None else module.source_line(deepest.location)


def _pass_count(found: Iterable[PtxAccess]) -> int:
    """Return how many loops walk global data: the parts of an unrolled loop are one."""
    firsts: dict[tuple[int | str, int], object] = {}
    for access in found:
        if access.storage in _GLOBAL and access.outermost_loop is not None:
            firsts.setdefault(access.outermost_loop, access.location or access.outermost_loop)
    return max(1, len(set(firsts.values())))


def _reachable(module: Module) -> Iterator[Function]:
    pending = list(module.kernels())
    seen: set[str] = set()
    while pending:
        function = pending.pop()
        if function.name in seen:
            continue
        seen.add(function.name)
        yield function
        for instruction in function.body:
            if instruction.opcode == "call":
                called = (module.functions.get(operand) for operand in instruction.operands)
                pending.extend(callee for callee in called if callee is not None)


def _atomic_space(instruction: Instruction) -> str | None:
    """Return the memory that an atomic changes; empty: not told; None: it is no atomic."""
    is_bulk = instruction.parts[:2] == ("cp", "reduce")
    if instruction.opcode not in ("atom", "red") and not is_bulk:
        return "" if instruction.parts[:2] == ("multimem", "red") else None
    return space_of(instruction)


def _group_scopes(instructions: Iterable[Instruction]) -> Iterator[Scope]:
    for instruction in instructions:
        if instruction.opcode in _WARP:
            yield Scope.SUB_GROUP
        elif instruction.opcode in ("bar", "barrier") and "red" in instruction.parts:
            yield Scope.WORK_GROUP


def _barrier_scopes(instructions: Iterable[Instruction]) -> Iterator[Scope]:
    for instruction in instructions:
        parts = instruction.parts
        if parts[0] in ("bar", "barrier"):
            if "cluster" in parts:
                yield Scope.DEVICE
            else:
                yield Scope.SUB_GROUP if "warp" in parts else Scope.WORK_GROUP
        elif parts[0] == "mbarrier":
            yield Scope.WORK_GROUP
        elif _hands_over(instruction):
            yield Scope.DEVICE


def _hands_over(instruction: Instruction) -> bool:
    """Return whether an access orders others, for work-items of other groups."""
    parts = instruction.parts
    orders = parts[0] in ("ld", "st") and not {"acquire", "release"}.isdisjoint(parts)
    return orders and not {"gpu", "sys", "cluster"}.isdisjoint(parts)


def _moves_ahead(instruction: Instruction) -> bool:
    if instruction.opcode in ("prefetch", "prefetchu"):
        return True
    return instruction.opcode == "cp" and "async" in instruction.parts

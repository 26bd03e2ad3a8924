"""The facts of kernels that came as SPIR-V.

Knows nothing of levels.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from evaluator_svc.behaviour.facts import KernelFacts, Scope
from evaluator_svc.inspector.access import access_weight
from evaluator_svc.inspector.from_spirv.access import accesses
from evaluator_svc.inspector.from_spirv.dataflow import dataflow
from evaluator_svc.inspector.recurrence import recurrences
from evaluator_svc.spirv import Function, Instruction, Module
from evaluator_svc.spirv.opcodes import (
    ATOMICS,
    GROUP_EXCHANGES,
    GROUP_REDUCTIONS,
    MATRIX_PRODUCTS,
    OPENCL_PREFETCH,
    SUBGROUP_EXCHANGES,
    Op,
    StorageClass,
)


def kernel_facts(module: Module) -> KernelFacts:
    """Return what a module's kernels do."""
    found = [a for kernel in module.kernels() for a in accesses(module, kernel)]
    functions = tuple(_reachable(module))
    instructions = [i for f in functions for i in f.body]
    used = {i.opcode for i in instructions}
    carried = [recurrences(dataflow(module, f)) for f in functions]
    far = [a for a in found if a.storage in _GLOBAL]
    local = [a for a in found if a.storage == StorageClass.WORKGROUP]
    reads_local = any(not a.is_store for a in local)
    origins = _Origins(instructions, {a.value for a in far if not a.is_store})
    atomics = {_storage(module, functions, i) for i in instructions if i.opcode in ATOMICS}
    barriers = {_scope(module, i) for i in instructions if i.opcode == Op.CONTROL_BARRIER}
    return KernelFacts(
        contiguous_weight=access_weight(a for a in far if a.is_contiguous),
        strided_weight=access_weight(a for a in far if not a.is_contiguous and not a.is_uniform),
        uniform_weight=access_weight(a for a in far if a.is_uniform),
        vector_weight=access_weight(a for a in far if a.lanes > 1),
        pass_count=sum(_pass_count(module, kernel) for kernel in module.kernels()),
        stages_local=reads_local and any(a.is_store and origins.is_loaded(a.value) for a in local),
        shares_local=reads_local and any(a.is_store for a in local) and bool(barriers),
        moves_ahead=Op.GROUP_ASYNC_COPY in used or any(_is_prefetch(i) for i in instructions),
        has_register_tile=any(c.has_register_tile for c in carried),
        has_matrix_product=not used.isdisjoint(MATRIX_PRODUCTS),
        is_online=any(c.is_online for c in carried),
        reduces_in_group=not used.isdisjoint(_GROUP_OPCODES),
        group_scopes=tuple(sorted(set(_group_scopes(module, instructions)))),
        barrier_scopes=tuple(sorted(barriers)),
        has_global_atomics=bool(atomics - {StorageClass.WORKGROUP}),
        has_local_atomics=StorageClass.WORKGROUP in atomics,
    )


_GLOBAL: Final = (StorageClass.CROSS_WORKGROUP, StorageClass.GENERIC)
"""A generic pointer that nothing more is known of is taken for a global one."""
_SCOPES: Final = {0: Scope.DEVICE, 1: Scope.DEVICE, 2: Scope.WORK_GROUP, 3: Scope.SUB_GROUP}
"""Scopes by their numbers in SPIR-V; that of a single work-item is 4."""
_GROUP_OPCODES: Final = GROUP_REDUCTIONS | GROUP_EXCHANGES | SUBGROUP_EXCHANGES
_COPYING: Final = frozenset(
    {
        *(Op.PHI, Op.SELECT, Op.COPY_OBJECT, Op.BITCAST, Op.F_CONVERT, Op.S_CONVERT),
        *(Op.U_CONVERT, Op.COMPOSITE_EXTRACT, Op.COMPOSITE_CONSTRUCT),
    }
)


def _pass_count(module: Module, kernel: Function) -> int:
    found = (a for a in accesses(module, kernel) if a.storage in _GLOBAL)
    loops = {a.outermost_loop for a in found if a.outermost_loop is not None}
    return max(1, len(loops))


def _reachable(module: Module) -> Iterator[Function]:
    pending = [kernel.id for kernel in module.kernels()]
    seen: set[int] = set()
    while pending:
        function = module.functions.get(pending.pop())
        if function is None or function.id in seen:
            continue
        seen.add(function.id)
        yield function
        calls = (i for i in function.body if i.opcode == Op.FUNCTION_CALL and i.operands)
        pending.extend(i.operands[0] for i in calls)


def _scope(module: Module, instruction: Instruction) -> Scope:
    operands = instruction.operands
    number = module.constants.get(operands[0], -1) if operands else -1
    return _SCOPES.get(number, Scope.WORK_ITEM)


def _group_scopes(module: Module, instructions: Iterable[Instruction]) -> Iterator[Scope]:
    for instruction in instructions:
        if instruction.opcode in SUBGROUP_EXCHANGES:
            yield Scope.SUB_GROUP
        elif instruction.opcode in _GROUP_OPCODES:
            yield _scope(module, instruction)


def _is_prefetch(instruction: Instruction) -> bool:
    operands = instruction.operands
    is_extended = instruction.opcode == Op.EXT_INST and len(operands) > 1
    return is_extended and operands[1] == OPENCL_PREFETCH


def _storage(module: Module, functions: tuple[Function, ...], atomic: Instruction) -> int:
    """Return where an atomic's pointer points, as far as its type says."""
    wanted = atomic.operands[0] if atomic.operands else 0
    types = {v.id: v.type_id for v in module.globals}
    for function in functions:
        types |= {i.result_id: i.type_id for i in (*function.parameters, *function.body)}
    pointer = module.pointer(types.get(wanted, 0))
    return StorageClass.GENERIC if pointer is None else pointer.storage


class _Origins:
    """Where values come from, through copies only."""

    def __init__(self, instructions: Iterable[Instruction], loaded: set[int]) -> None:
        self._made = {i.result_id: i for i in instructions if i.opcode in _COPYING}
        self._loaded = loaded

    def is_loaded(self, value: int) -> bool:
        """Return whether a value may be one that was loaded from global memory."""
        pending, seen = [value], set()
        while pending:
            current = pending.pop()
            if current in self._loaded:
                return True
            if current not in seen and current in self._made:
                seen.add(current)
                pending.extend(self._made[current].operands)
        return False

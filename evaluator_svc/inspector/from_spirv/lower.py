"""A SPIR-V module as a `LoweredProgram`: its blocks, and what each instruction does."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

from evaluator_svc.behaviour import Scope
from evaluator_svc.inspector.control_flow import loops
from evaluator_svc.inspector.lowered_program import (
    EVERYWHERE,
    NOWHERE,
    Body,
    LoweredProgram,
    Operation,
    Space,
)
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

_SPACES: Final[Mapping[int, Space]] = {
    StorageClass.CROSS_WORKGROUP: Space.GLOBAL,
    StorageClass.WORKGROUP: Space.GROUP,
    StorageClass.FUNCTION: Space.PRIVATE,
    StorageClass.GENERIC: Space.GENERIC,
}
"""The memory of each storage class; the others are not a kernel's own memory."""
_SCOPES: Final = {0: Scope.DEVICE, 1: Scope.DEVICE, 2: Scope.WORK_GROUP, 3: Scope.SUB_GROUP}
"""Scopes by their numbers in SPIR-V; that of a single work-item is 4."""
_COPIES: Final = frozenset({Op.COPY_MEMORY, Op.COPY_MEMORY_SIZED})
_GROUP_OPCODES: Final = GROUP_REDUCTIONS | GROUP_EXCHANGES
_ATOMIC_STORE: Final = 228
_READERS: Final = (ATOMICS | {Op.LOAD}) - {_ATOMIC_STORE}
_WRITERS: Final = frozenset(
    {
        *(Op.STORE, Op.GROUP_ASYNC_COPY, Op.FUNCTION_CALL),
        *(4458, 5576, 6121),  # matrices and blocks of a sub-group
        *ATOMICS,
        *_COPIES,
    }
)


def lower(module: Module) -> LoweredProgram[Instruction]:
    """Return a module's kernels and what they reach."""
    lowering = _Lowering(module)
    functions: dict[Hashable, Body[Instruction]] = {}
    pending = list(module.kernels())
    while pending:
        function = pending.pop()
        if function.id not in functions:
            functions[function.id] = lowering.body(function)
            pending.extend(_called(module, function))
    kernels = tuple(functions[kernel.id] for kernel in module.kernels())
    mains = (_main(module, functions, kernel) for kernel in module.kernels())
    return LoweredProgram(
        kernels=kernels,
        mains=tuple(mains),
        functions=functions,
    )


def _called(module: Module, function: Function) -> list[Function]:
    calls = (i for i in function.body if i.opcode == Op.FUNCTION_CALL and i.operands)
    found = (module.functions.get(call.operands[0]) for call in calls)
    return [callee for callee in found if callee is not None]


def _main(
    module: Module, functions: Mapping[Hashable, Body[Instruction]], kernel: Function
) -> Body[Instruction]:
    """Return the kernel's own code: of a large kernel the compiler makes a function to call."""
    entry = functions[kernel.id]
    own = [function for function in _called(module, kernel) if function.body]
    is_bare = len(entry.blocks) == 1 and not any(
        o.instruction.opcode != Op.FUNCTION_CALL and Space.GROUP in (o.reads | o.writes)
        for o in entry.operations
    )
    return functions[own[0].id] if len(own) == 1 and is_bare else entry


def types_of(module: Module) -> dict[int, int]:
    """Return the number of the type of each value."""
    types = {v.id: v.type_id for v in module.globals}
    for function in module.functions.values():
        for instruction in (*function.parameters, *function.body):
            if instruction.result_id:
                types[instruction.result_id] = instruction.type_id
    return types


class _Lowering:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._types = types_of(module)

    def body(self, function: Function) -> Body[Instruction]:
        """Return blocks and loops; jumps to nowhere are left out."""
        operations: list[Operation[Instruction]] = []
        blocks: dict[int, list[Operation[Instruction]]] = {}
        current: list[Operation[Instruction]] = []
        for instruction in function.body:
            if instruction.opcode == Op.LABEL:
                current = blocks.setdefault(instruction.result_id, [])
                continue
            operations.append(self._operation(instruction))
            current.append(operations[-1])
        successors = {
            label: tuple(t for t in _targets(body) if t in blocks) for label, body in blocks.items()
        }
        return Body(
            name=function.id,
            operations=tuple(operations),
            blocks={label: tuple(body) for label, body in blocks.items()},
            successors=successors,
            loops=tuple(loops(successors)),
        )

    def _operation(self, instruction: Instruction) -> Operation[Instruction]:
        opcode = instruction.opcode
        space = self._space(instruction)
        is_atomic = opcode in ATOMICS
        return Operation(
            instruction,
            reads=self._read(instruction, space),
            writes=_written(space) if opcode in _WRITERS else NOWHERE,
            atomic=(space or Space.GENERIC) if is_atomic else None,
            barrier=self._scope(instruction) if opcode == Op.CONTROL_BARRIER else None,
            group=self._group(instruction),
            moves_ahead=opcode == Op.GROUP_ASYNC_COPY or _is_prefetch(instruction),
            is_matrix_product=opcode in MATRIX_PRODUCTS,
        )

    def _read(self, instruction: Instruction, space: Space | None) -> frozenset[Space]:
        if instruction.opcode in _COPIES:
            space = (
                self._pointed(instruction.operands[1]) if len(instruction.operands) > 1 else None
            )
        elif instruction.opcode not in _READERS:
            space = None
        return NOWHERE if space is None else frozenset({space})

    def _space(self, instruction: Instruction) -> Space | None:
        """Return where the first operand points; None when it is no pointer that is known."""
        if instruction.opcode == Op.FUNCTION_CALL or not instruction.operands:
            return None
        # The two of an asynchronous copy stand behind its scope.
        position = 1 if instruction.opcode == Op.GROUP_ASYNC_COPY else 0
        if position >= len(instruction.operands):
            return None
        return self._pointed(instruction.operands[position])

    def _pointed(self, value: int) -> Space | None:
        """Return where a value points; None when it is no pointer that is known."""
        pointer = self._module.pointer(self._types.get(value, 0))
        return None if pointer is None else space_of(pointer.storage)

    def _group(self, instruction: Instruction) -> Scope | None:
        if instruction.opcode in SUBGROUP_EXCHANGES:
            return Scope.SUB_GROUP
        return self._scope(instruction) if instruction.opcode in _GROUP_OPCODES else None

    def _scope(self, instruction: Instruction) -> Scope:
        operands = instruction.operands
        number = self._module.constants.get(operands[0], -1) if operands else -1
        return _SCOPES.get(number, Scope.WORK_ITEM)


def space_of(storage: int) -> Space:
    """Return the space of a storage class."""
    return _SPACES.get(storage, Space.OTHER)


def _written(space: Space | None) -> frozenset[Space]:
    return EVERYWHERE if space is None or space is Space.GENERIC else frozenset({space})


def _is_prefetch(instruction: Instruction) -> bool:
    operands = instruction.operands
    is_extended = instruction.opcode == Op.EXT_INST and len(operands) > 1
    return is_extended and operands[1] == OPENCL_PREFETCH


def _targets(block: Sequence[Operation[Instruction]]) -> Iterator[int]:
    if not block:
        return
    last = block[-1].instruction
    if last.opcode == Op.BRANCH:
        yield from last.operands[:1]
    elif last.opcode == Op.BRANCH_CONDITIONAL:
        yield from last.operands[1:3]
    elif last.opcode == Op.SWITCH:
        # Literals and labels alternate; a literal that equals a label costs a false edge only.
        yield from last.operands[1:]

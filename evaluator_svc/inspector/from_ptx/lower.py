"""A PTX module as a `LoweredProgram`: its blocks, and what each instruction does."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Final

from evaluator_svc.behaviour import Scope
from evaluator_svc.inspector.control_flow import loops
from evaluator_svc.inspector.from_ptx.split_products import is_matrix_product
from evaluator_svc.inspector.from_ptx.values import space_of
from evaluator_svc.inspector.lowered_program import (
    EVERYWHERE,
    NOWHERE,
    Body,
    LoweredProgram,
    Operation,
    Space,
)
from evaluator_svc.ptx import LABEL, Function, Instruction, Module

_MAX_BLOCKS: Final = 5_000
"""A function of more has no loops told."""
_JUMPS: Final = frozenset({"bra", "brx", "ret", "exit", "trap"})
_SPACES: Final = {
    "global": Space.GLOBAL,
    "shared": Space.GROUP,
    "local": Space.PRIVATE,
    "param": Space.OTHER,
    "const": Space.OTHER,
}
_READERS: Final = frozenset({"ld", "ldu", "ldmatrix", "atom"})
_WRITERS: Final = frozenset(
    {"st", "red", "atom", "stmatrix", "cp", "multimem", "wmma", "tcgen05", "mbarrier", "call"}
)
_WARP: Final = frozenset({"shfl", "vote", "match", "redux"})


def lower(module: Module) -> LoweredProgram[Instruction]:
    """Return a module's kernels and what they reach."""
    functions: dict[Hashable, Body[Instruction]] = {}
    pending = list(module.kernels())
    while pending:
        function = pending.pop()
        if function.name not in functions:
            functions[function.name] = _body(function)
            pending.extend(_called(module, function))
    kernels = tuple(functions[kernel.name] for kernel in module.kernels())
    return LoweredProgram(kernels=kernels, mains=kernels, functions=functions)


def _called(module: Module, function: Function) -> Iterator[Function]:
    for instruction in function.body:
        if instruction.opcode == "call":
            found = (module.functions.get(operand) for operand in instruction.operands)
            yield from (callee for callee in found if callee is not None)


def _body(function: Function) -> Body[Instruction]:
    """Return blocks and loops; jumps to nowhere are left out."""
    blocks: dict[int, list[Operation[Instruction]]] = {1: []}
    labels: dict[str, int] = {}
    tables: dict[str, tuple[str, ...]] = {}
    for instruction in function.body:
        if instruction.opcode == LABEL:
            if blocks[len(blocks)]:
                blocks[len(blocks) + 1] = []
            name, *targets = instruction.operands
            labels[name] = len(blocks)
            tables[name] = tuple(targets)
            continue
        blocks[len(blocks)].append(_operation(instruction))
        if instruction.opcode in _JUMPS:
            blocks[len(blocks) + 1] = []
    successors = {
        number: tuple(_successors(number, body, labels, tables, len(blocks)))
        for number, body in blocks.items()
    }
    return Body(
        name=function.name,
        operations=tuple(operation for body in blocks.values() for operation in body),
        blocks={number: tuple(body) for number, body in blocks.items()},
        successors=successors,
        loops=tuple(loops(successors)) if len(blocks) <= _MAX_BLOCKS else (),
    )


def _successors(
    number: int,
    block: list[Operation[Instruction]],
    labels: Mapping[str, int],
    tables: Mapping[str, tuple[str, ...]],
    count: int,
) -> Iterator[int]:
    last = block[-1].instruction if block else None
    if last is not None and last.opcode in ("bra", "brx"):
        targets = tables.get(last.operands[-1], ()) if last.opcode == "brx" else last.operands[:1]
        yield from (labels[target] for target in targets if target in labels)
    falls_through = last is None or last.opcode not in _JUMPS or bool(last.predicate)
    if falls_through and number < count:
        yield number + 1


def _operation(instruction: Instruction) -> Operation[Instruction]:
    opcode, parts = instruction.opcode, instruction.parts
    return Operation(
        instruction,
        reads=_named(instruction) if opcode in _READERS else NOWHERE,
        writes=_written(instruction) if opcode in _WRITERS else NOWHERE,
        atomic=_atomic(instruction),
        barrier=_barrier(instruction),
        group=_group(instruction),
        moves_ahead=opcode in ("prefetch", "prefetchu") or (opcode == "cp" and "async" in parts),
        is_matrix_product=is_matrix_product(instruction),
    )


def _named(instruction: Instruction) -> frozenset[Space]:
    """Return the memory that an instruction names."""
    words = {part.partition("::")[0] for part in instruction.parts}
    return frozenset(_SPACES[word] for word in words if word in _SPACES)


def _written(instruction: Instruction) -> frozenset[Space]:
    # An address that is not said to be elsewhere may be anywhere.
    is_named = any(part.startswith(tuple(_SPACES)) for part in instruction.parts)
    return _named(instruction) if is_named else EVERYWHERE


def _atomic(instruction: Instruction) -> Space | None:
    is_bulk = instruction.parts[:2] == ("cp", "reduce")
    if instruction.opcode in ("atom", "red") or is_bulk:
        return _SPACES.get(space_of(instruction), Space.GENERIC)
    return Space.GENERIC if instruction.parts[:2] == ("multimem", "red") else None


def _group(instruction: Instruction) -> Scope | None:
    if instruction.opcode in _WARP:
        return Scope.SUB_GROUP
    is_reduction = instruction.opcode in ("bar", "barrier") and "red" in instruction.parts
    return Scope.WORK_GROUP if is_reduction else None


def _barrier(instruction: Instruction) -> Scope | None:
    parts = instruction.parts
    if parts[0] in ("bar", "barrier"):
        if "cluster" in parts:
            return Scope.DEVICE
        return Scope.SUB_GROUP if "warp" in parts else Scope.WORK_GROUP
    if parts[0] == "mbarrier":
        return Scope.WORK_GROUP
    return Scope.DEVICE if _hands_over(instruction) else None


def _hands_over(instruction: Instruction) -> bool:
    """Return whether an access orders others, for work-items of other groups."""
    parts = instruction.parts
    orders = parts[0] in ("ld", "st") and not {"acquire", "release"}.isdisjoint(parts)
    return orders and not {"gpu", "sys", "cluster"}.isdisjoint(parts)

"""The dataflow of a PTX function.

A register that is assigned once is a value. One that is assigned more often is a choice between
its assignments, and is carried by a loop that has some of them and not all.
"""

from collections.abc import Iterator
from typing import Final

from evaluator_svc.inspector.control_flow import Loop
from evaluator_svc.inspector.dataflow import Dataflow, Kind, LoopValue, Node
from evaluator_svc.inspector.lowered_program import Body
from evaluator_svc.ptx import Instruction
from evaluator_svc.ptx.module import names_in

_KINDS: Final = {
    "add": Kind.ADD,
    "sub": Kind.SUBTRACT,
    "mul": Kind.MULTIPLY,
    "div": Kind.DIVIDE,
    "fma": Kind.MULTIPLY_ADD,
    "mad": Kind.MULTIPLY_ADD,
    "ex2": Kind.EXPONENTIAL,
    "ld": Kind.LOAD,
    "ldu": Kind.LOAD,
    "ldmatrix": Kind.LOAD,
    "mov": Kind.CHOICE,
    "selp": Kind.CHOICE,
}
_OPERANDS: Final = {
    Kind.ADD: 2,
    Kind.SUBTRACT: 2,
    Kind.MULTIPLY: 2,
    Kind.DIVIDE: 2,
    Kind.MULTIPLY_ADD: 3,
}
_MAX_INSTRUCTIONS: Final = 100_000


def dataflow(body: Body[Instruction]) -> Dataflow:
    """Return the operands of a function's values."""
    if len(body.operations) > _MAX_INSTRUCTIONS:
        return Dataflow(nodes={}, carried=(), heads=frozenset())
    return _Builder(body).dataflow()


class _Builder:
    """Numbers registers and their assignments."""

    def __init__(self, body: Body[Instruction]) -> None:
        self._body = body
        self._numbers: dict[str, int] = {}
        self._nodes: dict[int, Node] = {}
        self._assigned: dict[str, list[tuple[int, int, Instruction]]] = {}
        """Node, block and instruction of each assignment."""

    def dataflow(self) -> Dataflow:
        """Return the function's dataflow."""
        self._number()
        for name, assigned in self._assigned.items():
            for node, _, instruction in assigned:
                self._nodes[node] = self._node(node, instruction)
            if len(assigned) > 1:
                self._choose(self._numbers[name], tuple(node for node, _, _ in assigned))
        carried = [tuple(self._carried(loop)) for loop in self._body.loops]
        return Dataflow(
            nodes=self._nodes,
            carried=tuple(carried),
            heads=frozenset(one.value for several in carried for one in several),
        )

    def _number(self) -> None:
        for block in self._body.blocks:
            for instruction in self._body.instructions(block):
                for name in instruction.results:
                    self._assigned.setdefault(name, []).append((0, block, instruction))
        self._numbers = {name: number for number, name in enumerate(self._assigned, start=1)}
        number = len(self._numbers)
        for name, assigned in self._assigned.items():
            for index, (_, block, instruction) in enumerate(assigned):
                number += 1
                node = self._numbers[name] if len(assigned) == 1 else number
                assigned[index] = (node, block, instruction)

    def _node(self, number: int, instruction: Instruction) -> Node:
        kind = _KINDS.get(instruction.opcode, Kind.OTHER)
        count = _OPERANDS.get(kind, 0)
        # Where operands have places, constants keep theirs.
        names = instruction.inputs[:count] if count else _names(instruction)
        if len(names) < count:
            kind = Kind.OTHER
        operands = tuple(self._numbers.get(name, 0) for name in names)
        return Node(number, kind, operands)

    def _choose(self, number: int, nodes: tuple[int, ...]) -> None:
        # A guarded load, or one that is a turn ahead of its use, is a load to those who use it.
        is_load = any(self._nodes[node].kind is Kind.LOAD for node in nodes)
        self._nodes[number] = Node(number, Kind.LOAD if is_load else Kind.CHOICE, nodes)

    def _carried(self, loop: Loop) -> Iterator[LoopValue]:
        for name, assigned in self._assigned.items():
            if len(assigned) < 2 or all(block in loop.blocks for _, block, _ in assigned):
                continue
            for node, block, instruction in assigned:
                if block in loop.blocks and _is_float(instruction):
                    lanes = 2 if instruction.parts[-1].endswith("x2") else 1
                    yield LoopValue(self._numbers[name], node, lanes)


def _names(instruction: Instruction) -> tuple[str, ...]:
    """Return the names that are read, without the last operand of `selp`, which is a condition."""
    read = instruction.inputs[:2] if instruction.opcode == "selp" else instruction.inputs
    return tuple(name for operand in read for name in names_in(operand))


def _is_float(instruction: Instruction) -> bool:
    last = instruction.parts[-1]
    return last[:1] == "f" or last[:2] == "bf" or instruction.opcode == "mov"

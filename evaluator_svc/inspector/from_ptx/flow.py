"""The kernels of a PTX module as flows."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluator_svc.inspector.from_ptx.values import integer, space_of
from evaluator_svc.inspector.kernel_flow import (
    ANY_GROUP,
    MAX_CALLS,
    MAX_STEPS,
    Act,
    FlowDraft,
    KernelFlow,
    Source,
    Step,
)
from evaluator_svc.inspector.lowered_program import Body, LoweredProgram, Space
from evaluator_svc.ptx import Function, Instruction, Module
from evaluator_svc.ptx.module import names_in

_SPACES: Final[Mapping[str, Space]] = {
    "global": Space.GLOBAL,
    "shared": Space.GROUP,
    "local": Space.PRIVATE,
    "": Space.GENERIC,
}
_SPECIAL: Final = (
    (re.compile(r"%(?:ctaid|clusterid|cluster_ctaid)\.x"), Source.GROUP_X),
    (re.compile(r"%(?:ctaid|clusterid|cluster_ctaid)\.y"), Source.GROUP_Y),
    (re.compile(r"%(?:ctaid|clusterid|cluster_ctaid)\.z"), Source.GROUP_Z),
    (re.compile(r"%(?:ctaid|clusterid|cluster_ctaid|cluster_ctarank)"), ANY_GROUP),
    (re.compile(r"%n(?:ctaid|clusterid)(?:\.[xyz])?"), Source.COUNT),
    (re.compile(r"%(?:tid(?:\.x)?|laneid|lanemask_\w+)"), Source.LANE),
    (re.compile(r"%(?:tid\.[yz]|ntid|cluster_nctaid)(?:\.[xyz])?|%\w*smem\w*"), Source.NOTHING),
    (re.compile(r"%[a-z].*"), Source.ORDER),
)
"""Sources by which special registers differ; the first match counts, the last is for all others."""
_SEEN: Final = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
_ORDERING: Final = frozenset({"acquire", "release", "acq_rel", "sc"})
_WIDE: Final = frozenset({"gpu", "sys", "gl"})
_SHORT: Final = frozenset({"s32", "u32", "b32"})
_WARP: Final = frozenset({"shfl", "vote", "redux", "match"})
_OF_ALL: Final = frozenset({"bar", "barrier", "redux", "vote"})
"""Instructions whose result is the same in all lanes that take part."""
_ALL_LANES: Final = (-1, 0xFFFFFFFF)
_ENDS: Final = frozenset({"ret", "exit", "trap"})


def flows(module: Module, program: LoweredProgram[Instruction]) -> Iterator[KernelFlow]:
    """Iterate over the module's kernels, as long as they are not too large together."""
    left = MAX_STEPS
    for kernel in program.kernels:
        placement = _Placement(module, program, left)
        placement.kernel(kernel)
        left -= placement.draft.step_count
        if left >= 0:
            yield placement.draft.flow(str(kernel.name))


class _Placement:
    """Puts a kernel and what it calls into one draft."""

    def __init__(self, module: Module, program: LoweredProgram[Instruction], left: int) -> None:
        self.module = module
        self._program = program
        self._numbers: dict[tuple[int, str], int] = {}
        self._copies = 0
        self.draft = FlowDraft(left=left)

    def kernel(self, kernel: Body[Instruction]) -> None:
        """Put a kernel in place."""
        function = self.module.functions[str(kernel.name)]
        _Copy(self, function, 0, 0).place(kernel, self.draft.block(), None)

    def number(self, copy: int, name: str) -> int:
        """Return the number of a name in a copy of a function."""
        return self._numbers.setdefault((copy, name), len(self._numbers) + 1)

    def call(self, copy: "_Copy", block: int, call: Instruction) -> int:
        """Put what is called in place behind a block; return the block that follows it."""
        callee = next((f for o in call.operands if (f := self.module.functions.get(o))), None)
        lists = [o for o in call.operands if o.startswith("(")]
        gives = names_in(lists[0]) if call.operands[0].startswith("(") else ()
        given = names_in(lists[-1]) if len(lists) > bool(gives) else ()
        inputs = tuple(copy.number(name) for name in given)
        body = None if callee is None else self._program.functions.get(callee.name)
        is_beyond = copy.depth >= MAX_CALLS or self.draft.is_full
        if callee is None or body is None or callee.is_declaration or is_beyond:
            results = tuple(copy.number(name) for name in gives)
            source = ANY_GROUP | Source.ORDER | Source.DATA
            self.draft.add(block, Step(results=results, inputs=inputs, source=source))
            return block
        self._copies += 1
        inner = _Copy(self, callee, self._copies, copy.depth + 1)
        for parameter, value in zip(callee.parameters, inputs, strict=False):
            passed = Step(results=(inner.number(parameter),), inputs=(value,), pointed=(value,))
            self.draft.add(block, passed)
        behind = self.draft.block()
        inner.place(body, block, behind)
        for name, returned in zip(gives, callee.returned, strict=False):
            value = inner.number(returned)
            step = Step(results=(copy.number(name),), inputs=(value,), pointed=(value,))
            self.draft.add(behind, step)
        return behind


class _Copy:
    """One copy of a function in a kernel's flow.

    Args:
        placement: The kernel.
        function: The function.
        index: Number of the copy; its registers are told from others' by it.
        depth: Calls around it.
    """

    def __init__(self, placement: _Placement, function: Function, index: int, depth: int) -> None:
        self._placement = placement
        self._function = function
        self._index = index
        self.depth = depth
        self._given: dict[str, int | None] | None = None

    def number(self, name: str) -> int:
        """Return the number of a register or parameter."""
        return self._placement.number(self._index, name)

    def place(self, body: Body[Instruction], first: int, behind: int | None) -> None:
        """Put the function in place.

        Args:
            body: The function.
            first: The block that leads to its beginning.
            behind: The block that follows it; None: it is the kernel.
        """
        draft = self._placement.draft
        blocks = {number: draft.block() for number in body.blocks}
        draft.successors[first].append(blocks[next(iter(body.blocks))])
        for number, operations in body.blocks.items():
            current, last = blocks[number], None
            for operation in operations:
                last = operation.instruction
                if last.opcode == "call":
                    current = self._placement.call(self, current, last)
                else:
                    for step in self._steps(last):
                        draft.add(current, step)
            draft.successors[current] += [blocks[n] for n in body.successors[number]]
            if last is not None:
                draft.decides[current] = self._decides(last)
                if last.opcode == "ret" and behind is not None:
                    draft.successors[current].append(behind)

    def _decides(self, last: Instruction) -> tuple[int, ...]:
        if last.opcode == "brx":
            return self._numbers((last.predicate, *last.operands[:1]))
        return self._numbers((last.predicate,)) if last.opcode in ("bra", *_ENDS) else ()

    def _numbers(self, operands: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.number(name) for operand in operands for name in names_in(operand))

    def _special(self, operands: tuple[str, ...]) -> Source:
        found = Source.NOTHING
        for operand in operands:
            if "%" in operand:
                for name in names_in(operand):
                    if name[0] == "%" and not self._function.declares(name):
                        found |= next(s for pattern, s in _SPECIAL if pattern.fullmatch(name))
        return found

    def _steps(self, instruction: Instruction) -> Iterator[Step]:
        opcode, parts, operands = instruction.opcode, instruction.parts, instruction.operands
        space = space_of(instruction)
        if opcode in ("ld", "ldu") and len(operands) > 1:
            yield self._load(instruction, space)
        elif opcode == "st" and len(operands) > 1:
            if space == "param":
                values = self._numbers(operands[1:])
                results = self._numbers(operands[:1])
                yield self._step(instruction, results=results, inputs=values, pointed=values)
            else:
                yield self._store(instruction, space)
        elif opcode in ("atom", "red") or parts[:2] in (("cp", "reduce"), ("multimem", "red")):
            place = next((o for o in operands if o.startswith("[")), "")
            others = tuple(o for o in instruction.inputs if o != place)
            yield self._access(
                instruction,
                Act.ATOMIC,
                space,
                place,
                results=tuple(map(self.number, instruction.results)),
                inputs=self._numbers(others),
                is_plain=False,
                is_narrow="cta" in parts,
                orders="cta" not in parts and not _ORDERING.isdisjoint(parts),
            )
        elif opcode in ("membar", "fence"):
            if not _WIDE.isdisjoint(parts):
                yield self._step(instruction, act=Act.FENCE, space=Space.GLOBAL, acquires=True)
        elif instruction.results or instruction.opcode in ("bar", "barrier"):
            yield self._computed(instruction)

    def _load(self, instruction: Instruction, space: str) -> Step:
        results = tuple(map(self.number, instruction.results))
        place = instruction.operands[1]
        if space == "param":
            values = self._numbers((place,))
            is_argument = self._index == 0
            return self._step(
                instruction,
                results=results,
                inputs=values,
                pointed=values,
                source=Source.ARGUMENT if is_argument else Source.NOTHING,
                root=self.number(place) if is_argument and instruction.size_bytes >= 8 else 0,
            )
        is_plain = _SEEN.isdisjoint(instruction.parts)
        is_told = not is_plain and space in ("", "global")
        return self._access(
            instruction,
            Act.LOAD,
            space,
            place,
            results=results,
            source=Source.ORDER if is_told else Source.NOTHING,
            is_float=_is_float(instruction),
            is_plain=is_plain,
            acquires=is_told and _orders_groups(instruction, "acquire"),
        )

    def _store(self, instruction: Instruction, space: str) -> Step:
        return self._access(
            instruction,
            Act.STORE,
            space,
            instruction.operands[0],
            inputs=self._numbers(instruction.operands[1:]),
            is_plain=_SEEN.isdisjoint(instruction.parts),
            orders=_orders_groups(instruction, "release"),
        )

    def _computed(self, instruction: Instruction) -> Step:
        operands = instruction.inputs
        is_float = _is_float(instruction)
        if instruction.opcode == "selp" and is_float:
            operands = operands[:2]
        inputs = self._numbers(operands)
        source = self._special(operands)
        if any(o.startswith("[") for o in operands):
            source |= Source.DATA
        return self._step(
            instruction,
            results=tuple(map(self.number, instruction.results)),
            inputs=inputs,
            source=source,
            is_float=is_float,
            pointed=inputs,
            is_copy=_is_copy(instruction),
            bound=self._bound(instruction),
            is_short_product=self._is_short_product(instruction),
            widens=_widens(instruction),
            quotient=_divisor(instruction),
            meets=self._meets(instruction),
            is_uniform=self._is_uniform(instruction),
        )

    def _meets(self, instruction: Instruction) -> bool:
        """Return whether all lanes of a warp are told to take part."""
        if instruction.opcode in ("bar", "barrier"):
            waits = "sync" in instruction.parts or "red" in instruction.parts
            return waits and "cluster" not in instruction.parts and len(instruction.inputs) == 1
        is_exchange = instruction.opcode in _WARP and "sync" in instruction.parts
        if not is_exchange or not instruction.inputs:
            return False
        return self._constant(instruction.inputs[-1]) in _ALL_LANES

    def _is_uniform(self, instruction: Instruction) -> bool:
        if instruction.opcode == "shfl":
            is_of_one_lane = "idx" in instruction.parts and len(instruction.inputs) > 1
            return is_of_one_lane and self._constant(instruction.inputs[1]) is not None
        return instruction.opcode in _OF_ALL

    def _bound(self, instruction: Instruction) -> int:
        if instruction.opcode != "setp" or min(len(instruction.parts), len(instruction.inputs)) < 2:
            return 0
        number = self._constant(instruction.inputs[1])
        if number is None:
            return 0
        way = instruction.parts[1].removesuffix("u")
        return {"lt": number, "ge": number, "lo": number, "hs": number}.get(way, number + 1)

    def _is_short_product(self, instruction: Instruction) -> bool:
        parts = instruction.parts
        is_product = parts[0] in ("mul", "mad") and "lo" in parts and parts[-1] in _SHORT
        return is_product and all(self._constant(o) is None for o in instruction.inputs[:2])

    def _constant(self, operand: str) -> int | None:
        """Return the number that an operand is, or that its register is given alone."""
        if self._given is None:
            assigned: dict[str, list[Instruction]] = {}
            for instruction in self._function.body:
                for name in instruction.results:
                    assigned.setdefault(name, []).append(instruction)
            self._given = {
                name: integer(several[0].inputs[0])
                for name, several in assigned.items()
                if len(several) == 1 and several[0].opcode == "mov" and several[0].inputs
            }
        return self._given.get(operand, integer(operand))

    def _access(
        self, instruction: Instruction, act: Act, space: str, place: str, **more: Any
    ) -> Step:
        names = names_in(place)
        return self._step(
            instruction,
            act=act,
            space=_SPACES.get(space, Space.OTHER),
            address=tuple(self.number(name) for name in names[:1]),
            offset=place.replace(names[0], "", 1) if names else place,
            **more,
        )

    def _step(self, instruction: Instruction, **more: Any) -> Step:
        return Step(
            condition=self._numbers((instruction.predicate,)),
            line=self._placement.module.source_line(instruction.location),
            **more,
        )


def _orders_groups(instruction: Instruction, order: str) -> bool:
    """Return whether an access has an order, and not within its block alone."""
    return order in instruction.parts and "cta" not in instruction.parts


def _is_float(instruction: Instruction) -> bool:
    name = instruction.parts[-1]
    return name[:1] == "f" or name[:2] == "bf"


def _is_copy(instruction: Instruction) -> bool:
    opcode, inputs = instruction.opcode, instruction.inputs
    if opcode in ("and", "rem") and len(inputs) > 1:
        return integer(inputs[1]) == (31 if opcode == "and" else 32)
    return opcode in ("mov", "cvt")


def _widens(instruction: Instruction) -> bool:
    parts = instruction.parts
    if parts[0] == "cvt":
        return parts[-2:-1] in (("s64",), ("u64",)) and parts[-1] in _SHORT
    return parts[0] in ("mul", "mad") and "wide" in parts and parts[-1] in _SHORT


def _divisor(instruction: Instruction) -> int:
    """Return the divisor of a quotient; 0 if the value is not a quotient, or it is not known."""
    if instruction.opcode not in ("div", "shr", "and") or len(instruction.inputs) < 2:
        return 0
    number = integer(instruction.inputs[1]) or 0
    if instruction.opcode == "div":
        return max(number, 0)
    if instruction.opcode == "shr":
        return 1 << min(max(number, 0), 62)
    return number & -number  # the remainder of a multiple is left out

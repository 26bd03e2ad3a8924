"""The kernels of a SPIR-V module as flows."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluator_svc.inspector.from_spirv.lower import space_of, types_of
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
from evaluator_svc.inspector.lowered_program import Space
from evaluator_svc.spirv import Function, Instruction, Module
from evaluator_svc.spirv.opcodes import (
    ATOMICS,
    GROUP_EXCHANGES,
    GROUP_REDUCTIONS,
    BuiltIn,
    Op,
)

_CHAINS: Final = frozenset(
    {
        *(Op.ACCESS_CHAIN, Op.IN_BOUNDS_ACCESS_CHAIN),
        *(Op.PTR_ACCESS_CHAIN, Op.IN_BOUNDS_PTR_ACCESS_CHAIN),
    }
)
_DIMENSIONS: Final = (Source.GROUP_X, Source.GROUP_Y, Source.GROUP_Z)
_PLACES: Final[Mapping[int, tuple[Source, ...]]] = {
    BuiltIn.NUM_WORKGROUPS: (Source.COUNT,) * 3,
    BuiltIn.GLOBAL_SIZE: (Source.COUNT,) * 3,
    BuiltIn.WORKGROUP_ID: _DIMENSIONS,
    BuiltIn.GLOBAL_INVOCATION_ID: (
        *(Source.GROUP_X | Source.LANE, Source.GROUP_Y, Source.GROUP_Z),
    ),
    BuiltIn.GLOBAL_LINEAR_ID: (ANY_GROUP | Source.LANE,) * 3,
    BuiltIn.LOCAL_INVOCATION_ID: (Source.LANE, Source.NOTHING, Source.NOTHING),
    BuiltIn.LOCAL_INVOCATION_INDEX: (Source.LANE,) * 3,
    BuiltIn.SUBGROUP_LOCAL_INVOCATION_ID: (Source.LANE,) * 3,
}
"""Sources by which a work-item query's components differ; other queries are the same everywhere."""
_UNKNOWN: Final = ANY_GROUP | Source.ORDER | Source.DATA
_COPIES: Final = frozenset({Op.U_CONVERT, Op.S_CONVERT, Op.BITCAST, Op.COPY_OBJECT})
_MEETINGS: Final = GROUP_REDUCTIONS | GROUP_EXCHANGES
_VOTES: Final = frozenset({*range(261, 264), *range(334, 340)})
"""All, any, equal, broadcasts and ballots."""
_SHUFFLES: Final = {345: 1, 5571: 0}
"""From one lane; its value is the operand of that number, and the lane the next one."""
_REDUCTION: Final = 0
"""Number of a reduction among group operations; the others are scans."""
_LEADING: Final = {Op.COMPOSITE_EXTRACT: 1, 82: 2, 79: 2}
"""Opcodes behind whose first operands come numbers; 82 inserts into a composite, 79 shuffles."""
_ORDERING: Final = 0x2 | 0x4 | 0x8 | 0x10
"""Memory semantics: acquire, release, both, sequentially consistent."""
_RELEASING: Final = 0x4 | 0x8 | 0x10
_ACQUIRING: Final = 0x2 | 0x8 | 0x10
_WIDE_SCOPES: Final = (0, 1)
"""Across devices, and the device."""
_NARROW_SCOPES: Final = (2, 3, 4)
"""The work-group, the sub-group, and the work-item."""
_OWN_FUNCTION: Final = re.compile(r"(?:_Z\d+)?(?:__spirv_(?!BuiltIn)|__devicelib_|llvm\.)")
"""Functions of the language that only compute from what they are given."""
_VOLATILE: Final = 1
_COMPARISONS: Final = {
    170: 1,
    171: 1,
    172: 1,
    173: 1,
    174: 0,
    175: 0,
    176: 0,
    177: 0,
    178: 1,
    179: 1,
}
"""Of integers: equal, not equal, greater, greater or equal, less, less or equal; what is added to
the second operand to be the first number for which it turns out otherwise."""
_SHORT_BYTES: Final = 4
_ATOMIC_ACTS: Final = {227: Act.LOAD, 228: Act.STORE}
"""Acts of atomics that do not read and change memory at once."""
_SEMANTICS: Final = {230: 2, 231: 2}
"""Number of memory semantics of atomics with several: for an exchange, and for none."""
_RETURN_VALUE: Final = 254


def flows(module: Module) -> Iterator[KernelFlow]:
    """Iterate over the module's kernels, as long as they are not too large together."""
    left = MAX_STEPS
    for kernel in module.kernels():
        placement = _Placement(module, left)
        placement.kernel(kernel)
        left -= placement.draft.step_count
        if left >= 0:
            name = module.entry_points[kernel.id].removeprefix("__sycl_kernel_")
            yield placement.draft.flow(name)


class _Placement:
    """Puts a kernel and what it calls into one draft."""

    def __init__(self, module: Module, left: int) -> None:
        self._module = module
        self._types = types_of(module)
        self._imports = {found.id: found.name for found in module.imports}
        self._copies = 0
        self.draft = FlowDraft(left=left)

    def kernel(self, kernel: Function) -> None:
        """Put a kernel in place."""
        first = self.draft.block()
        for parameter in kernel.parameters:
            pointer = self._module.pointer(parameter.type_id)
            is_buffer = pointer is not None and space_of(pointer.storage) is not Space.GROUP
            step = Step(
                results=(parameter.result_id,),
                source=Source.ARGUMENT if pointer is None else Source.NOTHING,
                root=parameter.result_id if is_buffer else 0,
            )
            self.draft.add(first, step)
        _Copy(self, 0, 0).place(kernel, first, None, 0)

    def call(self, copy: "_Copy", block: int, call: Instruction) -> int:
        """Put what is called in place behind a block; return the block that follows it."""
        function = self._module.functions.get(call.operands[0])
        given = tuple(copy.number(value) for value in call.operands[1:])
        result = copy.number(call.result_id)
        is_known = function is not None and bool(function.body)
        if function is None or not is_known or copy.depth >= MAX_CALLS or self.draft.is_full:
            is_own = _OWN_FUNCTION.search(self._imports.get(call.operands[0], "")) is not None
            source = Source.NOTHING if is_own else _UNKNOWN
            self.draft.add(block, Step(results=(result,), inputs=given, source=source))
            return block
        self._copies += 1
        inner = _Copy(self, self._copies, copy.depth + 1)
        for parameter, value in zip(function.parameters, given, strict=False):
            number = inner.number(parameter.result_id)
            step = Step(results=(number,), inputs=(value,), pointed=(value,))
            self.draft.add(block, step)
        behind = self.draft.block()
        inner.place(function, block, behind, result)
        return behind

    def space(self, pointer: int) -> Space:
        """Return where a pointer points, by its id in the module."""
        found = self._module.pointer(self._types.get(pointer, 0))
        return Space.OTHER if found is None else space_of(found.storage)

    def constant(self, value: int) -> int:
        """Return the number that the module states for a value; -1 where it states none."""
        return self._module.constants.get(value, -1)

    def size_bytes(self, type_id: int) -> int:
        """Return the size of a type."""
        return self._module.size_bytes(type_id)

    def type_of(self, value: int) -> int:
        """Return the type of a value, by its id in the module; 0: it is not known."""
        return self._types.get(value, 0)

    def is_float(self, type_id: int) -> bool:
        """Return whether a type is a floating-point number or several."""
        return self._module.is_float(type_id)

    def place_of(self, value: int) -> tuple[Source, ...] | None:
        """Return the sources of a work-item query's components; None for other values."""
        if value not in self._module.built_ins:
            return None
        return _PLACES.get(self._module.built_ins[value], (Source.NOTHING,) * 3)


class _Copy:
    """One copy of a function in a kernel's flow.

    Args:
        placement: The kernel.
        index: Number of the copy; its values are told from others' by it.
        depth: Calls around it.
    """

    def __init__(self, placement: _Placement, index: int, depth: int) -> None:
        self._placement = placement
        self._index = index
        self.depth = depth
        self._places: dict[int, tuple[Source, ...]] = {}

    def number(self, value: int) -> int:
        """Return a value's number in the flow."""
        return self._index << 32 | value

    def place(self, function: Function, first: int, behind: int | None, result: int) -> None:
        """Put the function in place.

        Args:
            function: The function.
            first: The block that leads to its beginning.
            behind: The block that follows it; None: it is the kernel.
            result: Number of the value that it gives back.
        """
        draft = self._placement.draft
        labels = [i.result_id for i in function.body if i.opcode == Op.LABEL]
        blocks = {label: draft.block() for label in labels}
        if labels:
            draft.successors[first].append(blocks[labels[0]])
        current = first
        for instruction in function.body:
            opcode, operands = instruction.opcode, instruction.operands
            if opcode == Op.LABEL:
                current = blocks[instruction.result_id]
            elif opcode == Op.FUNCTION_CALL and operands:
                current = self._placement.call(self, current, instruction)
            elif opcode in (Op.BRANCH, Op.BRANCH_CONDITIONAL, Op.SWITCH):
                targets = operands if opcode == Op.BRANCH else operands[1:]
                found = (blocks[target] for target in targets if target in blocks)
                draft.successors[current] += dict.fromkeys(found)
                if opcode != Op.BRANCH and operands:
                    draft.decides[current] = (self.number(operands[0]),)
            elif opcode in (Op.RETURN, _RETURN_VALUE):
                if opcode == _RETURN_VALUE and operands:
                    value = self.number(operands[0])
                    step = Step(results=(result,), inputs=(value,), pointed=(value,), is_merge=True)
                    draft.add(current, step)
                if behind is not None:
                    draft.successors[current].append(behind)
            else:
                for step in self._steps(instruction):
                    draft.add(current, step)

    def _steps(self, instruction: Instruction) -> Iterator[Step]:
        opcode, operands = instruction.opcode, instruction.operands
        if opcode == Op.LOAD and operands:
            yield self._load(instruction)
        elif opcode == Op.STORE and len(operands) > 1:
            is_volatile = bool(sum(operands[2:3]) & _VOLATILE)
            yield self._access(Act.STORE, operands[0], operands[1:2], is_plain=not is_volatile)
        elif opcode in (Op.COPY_MEMORY, Op.COPY_MEMORY_SIZED) and len(operands) > 1:
            moved = self.number(0)
            yield self._access(Act.LOAD, operands[1], (), results=(moved,))
            yield self._access(Act.STORE, operands[0], (0,))
        elif opcode in ATOMICS and len(operands) > 2:
            yield self._atomic(instruction)
        elif opcode in (Op.MEMORY_BARRIER, Op.CONTROL_BARRIER) and len(operands) > 1:
            scope, semantics = (self._placement.constant(v) for v in operands[-2:])
            is_wide = scope in _WIDE_SCOPES
            yield Step(
                act=Act.FENCE if is_wide and semantics & _RELEASING else None,
                acquires=is_wide and bool(semantics & _ACQUIRING),
                meets=opcode == Op.CONTROL_BARRIER,
            )
        elif instruction.result_id:
            yield self._computed(instruction)

    def _load(self, instruction: Instruction) -> Step:
        pointer = instruction.operands[0]
        place = self._places.get(pointer) or self._placement.place_of(pointer)
        result = self.number(instruction.result_id)
        if place is not None:
            self._places[instruction.result_id] = place
            source = Source.NOTHING
            for component in place:
                source |= component
            return Step(results=(result,), source=source)
        is_volatile = bool(sum(instruction.operands[1:2]) & _VOLATILE)
        return self._access(
            Act.LOAD,
            pointer,
            (),
            results=(result,),
            source=Source.ORDER if is_volatile else Source.NOTHING,
            is_float=self._placement.is_float(instruction.type_id),
            is_plain=not is_volatile,
        )

    def _atomic(self, instruction: Instruction) -> Step:
        operands = instruction.operands
        act = _ATOMIC_ACTS.get(instruction.opcode, Act.ATOMIC)
        count = _SEMANTICS.get(instruction.opcode, 1)
        semantics = (self._placement.constant(value) for value in operands[2 : 2 + count])
        is_narrow = self._placement.constant(operands[1]) in _NARROW_SCOPES
        orders = not is_narrow and any(s >= 0 and s & _ORDERING for s in semantics)
        results = (self.number(instruction.result_id),) if instruction.result_id else ()
        return self._access(
            act,
            operands[0],
            operands[3:],
            results=results,
            source=Source.ORDER if act is Act.LOAD else Source.NOTHING,
            is_plain=False,
            is_narrow=is_narrow,
            orders=orders and act is not Act.LOAD,
            acquires=orders and act is Act.LOAD,
        )

    def _access(self, act: Act, pointer: int, inputs: tuple[int, ...], **more: Any) -> Step:
        address = (self.number(pointer),)
        values = tuple(self.number(value) for value in inputs)
        return Step(
            act=act, space=self._placement.space(pointer), address=address, inputs=values, **more
        )

    def _computed(self, instruction: Instruction) -> Step:
        opcode, operands = instruction.opcode, instruction.operands
        if not operands:
            return Step(results=(self.number(instruction.result_id),))
        place = self._places.get(operands[0])
        if opcode == Op.COMPOSITE_EXTRACT and place is not None and len(operands) > 1:
            component = place[min(operands[1], len(place) - 1)]
            return Step(results=(self.number(instruction.result_id),), source=component)
        whole = self._placement.place_of(operands[0])
        if opcode in _CHAINS and whole is not None:
            index = self._placement.constant(operands[-1])
            chosen = whole[index : index + 1] if index >= 0 else whole
            self._places[instruction.result_id] = chosen or whole
        is_float = self._placement.is_float(instruction.type_id)
        if opcode == Op.PHI:
            used = operands[::2]
        elif opcode == Op.SELECT:
            used = operands[1:] if is_float else (*operands[1:], operands[0])
        elif opcode == Op.EXT_INST:
            used = operands[2:]
        else:
            used = operands[: _LEADING.get(opcode, len(operands))]
        inputs = tuple(self.number(value) for value in used)
        return Step(
            results=(self.number(instruction.result_id),),
            inputs=inputs,
            is_float=is_float,
            is_merge=opcode == Op.PHI,
            is_copy=opcode in _COPIES or (opcode == Op.SELECT and self._is_made(operands)),
            bound=self._bound(opcode, operands),
            is_short_product=self._is_short_product(instruction),
            widens=self._widens(instruction),
            quotient=self._divisor(opcode, operands),
            meets=opcode in _MEETINGS,
            is_uniform=self._is_uniform(opcode, operands),
            pointed=inputs[:1] if opcode in _CHAINS else inputs,
        )

    def _is_made(self, operands: tuple[int, ...]) -> bool:
        """Return whether a choice is made already, as the compiler has it around indices."""
        return self._placement.type_of(operands[0]) == 0

    def _is_uniform(self, opcode: int, operands: tuple[int, ...]) -> bool:
        if opcode in GROUP_REDUCTIONS:
            return operands[1:2] == (_REDUCTION,)
        if opcode in _SHUFFLES:
            lane = operands[_SHUFFLES[opcode] + 1 :]
            return bool(lane) and self._placement.constant(lane[0]) >= 0
        return opcode in _VOTES

    def _bound(self, opcode: int, operands: tuple[int, ...]) -> int:
        number = self._placement.constant(operands[1]) if len(operands) > 1 else -1
        if opcode not in _COMPARISONS or number < 0:
            return 0
        return number + _COMPARISONS[opcode]

    def _is_short_product(self, instruction: Instruction) -> bool:
        operands, size = instruction.operands, self._placement.size_bytes(instruction.type_id)
        is_product = instruction.opcode == Op.I_MUL and size == _SHORT_BYTES
        return is_product and all(self._placement.constant(value) < 0 for value in operands[:2])

    def _widens(self, instruction: Instruction) -> bool:
        if instruction.opcode not in (Op.U_CONVERT, Op.S_CONVERT) or not instruction.operands:
            return False
        place = self._placement
        given = place.size_bytes(place.type_of(instruction.operands[0]))
        return given == _SHORT_BYTES and place.size_bytes(instruction.type_id) > _SHORT_BYTES

    def _divisor(self, opcode: int, operands: tuple[int, ...]) -> int:
        """Return the divisor of a quotient; 0 if there is none, or it is not known."""
        number = self._placement.constant(operands[1]) if len(operands) > 1 else 0
        if number <= 0:
            return 0
        if opcode in (Op.U_DIV, Op.S_DIV):
            return number
        if opcode == Op.BITWISE_AND:
            return number & -number  # the remainder of a multiple is left out
        is_shift = opcode in (Op.SHIFT_RIGHT_LOGICAL, Op.SHIFT_RIGHT_ARITHMETIC)
        return 1 << min(number, 62) if is_shift else 0

"""The known facts about the registers of one PTX function, for one call of it.

Registers are assigned more than once where ways of control meet, so what is known of one is what
holds for all its assignments. Interprets the function until nothing changes any more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from evaluator_svc.inspector.stride import (
    SHORTEST_RUN,
    VARIES,
    Rule,
    Runs,
    Stride,
    left_shifted,
    merged,
    multiplied,
    subtracted,
    summed,
)
from evaluator_svc.ptx import LABEL, Function, Instruction, Module
from evaluator_svc.ptx.module import address_of, names_in

_MAX_ROUNDS: Final = 6
_LANES: Final = frozenset({"%tid.x", "%laneid"})
"""Special registers that go up by one from neighbour to neighbour."""
_SPACES: Final = frozenset({"global", "shared", "local", "param", "const"})
_BINARY: Final[Mapping[str, Rule]] = {
    "add": summed,
    "or": summed,
    "sub": subtracted,
    "shl": left_shifted,
}
_DIFFERS: Final = frozenset({"shfl", "atom", "match", "elect"})
"""Each work-item gets another result, whatever it gives."""
_COPIES: Final = frozenset({"mov", "cvt", "selp", "prmt"})
"""Keep it known that a value was loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractValue:
    """The known facts about a number or an address."""

    stride: Stride = 0
    """Between neighbours; in bytes for an address."""
    space: str = ""
    """Where an address points; empty: not known."""
    constant: int | None = None
    is_loaded: bool = False
    """Came from global memory, unchanged but for conversions."""


_UNIFORM: Final = AbstractValue()
_VARYING: Final = AbstractValue(stride=VARIES)


def space_of(instruction: Instruction) -> str:
    """Return the memory that an instruction names; empty: it leaves that to the address."""
    for part in instruction.parts[1:]:
        word = part.partition("::")[0]
        if word in _SPACES:
            return word
    return ""


class Values:
    """The registers of one function.

    Args:
        module: Where the function is from.
        function: The function.
        arguments: What is known of its parameters, by their names.
        shortest_run: Neighbours that a run must hold to count as all there is.
    """

    def __init__(
        self,
        module: Module,
        function: Function,
        arguments: Mapping[str, AbstractValue],
        *,
        shortest_run: int = SHORTEST_RUN,
    ) -> None:
        self._module = module
        self._function = function
        self._parameters = dict(arguments)
        self.runs = Runs(shortest_run)
        self._binary: dict[str, Rule] = {
            **_BINARY,
            "shr": self.runs.right_shifted,
            "div": self.runs.divided,
            "rem": self.runs.remainder,
            "and": self.runs.masked,
        }
        self._known: dict[str, AbstractValue] = {}
        self._assigned: dict[str, dict[int, AbstractValue]] = {}
        self._settle()

    def of(self, operand: str) -> AbstractValue:
        """Return the known facts about an operand; an unknown one is uniform."""
        known = self._known.get(operand)
        if known is not None:
            return known
        if operand in _LANES:
            return AbstractValue(stride=1)
        constant = integer(operand)
        if constant is not None:
            return AbstractValue(constant=constant)
        variable = self._module.variable(self._function, operand)
        return _UNIFORM if variable is None else AbstractValue(space=variable.space)

    def of_address(self, operand: str) -> AbstractValue:
        """Return the known facts about the address in brackets."""
        address = address_of(operand)
        return _UNIFORM if address is None else self.of(address.base)

    def argument(self, name: str) -> AbstractValue:
        """Return the known facts about a call's argument."""
        return self._parameters.get(name, _UNIFORM)

    def _settle(self) -> None:
        for _ in range(_MAX_ROUNDS):
            has_changed = False
            for index, instruction in enumerate(self._function.body):
                if instruction.opcode in ("call", "st", LABEL):
                    self._pass_arguments(instruction)
                    continue
                results = instruction.results
                if results:
                    value = self._result(instruction)
                    for name in results:
                        has_changed |= self._assign(index, name, value)
            if not has_changed:
                return

    def _assign(self, index: int, name: str, value: AbstractValue) -> bool:
        assigned = self._assigned.setdefault(name, {})
        if assigned.get(index) == value:
            return False
        assigned[index] = value
        self._known[name] = value if len(assigned) == 1 else _any_of(*assigned.values())
        return True

    def _pass_arguments(self, instruction: Instruction) -> None:
        operands = instruction.operands
        if instruction.opcode == "st" and "param" in instruction.parts and len(operands) > 1:
            address = address_of(operands[0])
            if address is not None:
                self._parameters[address.base] = self.of(operands[1])
        elif instruction.opcode == "call" and operands and operands[0].startswith("("):
            given = names_in(operands[-1]) if len(operands) > 2 else ()
            is_uniform = all(self.argument(name).stride == 0 for name in given)
            for name in names_in(operands[0]):
                self._parameters[name] = _UNIFORM if is_uniform else _VARYING

    def _result(self, instruction: Instruction) -> AbstractValue:
        opcode = instruction.opcode
        if opcode in ("ld", "ldu"):
            return self._loaded(instruction)
        inputs = [self.of(operand) for operand in instruction.inputs]
        rule = _RULES.get(opcode)
        if opcode in _DIFFERS:
            value = _VARYING
        elif not inputs or (opcode not in _COPIES and _is_float(instruction.parts[-1])):
            value = _UNIFORM
        elif opcode in self._binary and len(inputs) > 1:
            value = _combined(self._binary[opcode], inputs[0], inputs[1])
        elif rule is not None:
            value = rule(self, instruction, inputs)
        else:
            value = _anything(inputs)
        if opcode in _COPIES and any(one.is_loaded for one in self._parts(instruction)):
            value = replace(value, is_loaded=True)
        return value

    def _parts(self, instruction: Instruction) -> list[AbstractValue]:
        """Return the known facts about all that is read, members of vectors one by one."""
        return [self.of(name) for operand in instruction.inputs for name in names_in(operand)]

    def _loaded(self, instruction: Instruction) -> AbstractValue:
        if len(instruction.operands) < 2:
            return _UNIFORM
        source = self.of_address(instruction.operands[1])
        space = space_of(instruction) or source.space
        if space == "param":
            address = address_of(instruction.operands[1])
            return self._parameters.get(address.base, _UNIFORM) if address else _UNIFORM
        stride: Stride = 0 if source.stride == 0 else VARIES
        return AbstractValue(stride=stride, is_loaded=space in ("", "global"))

    def moved(self, instruction: Instruction, inputs: list[AbstractValue]) -> AbstractValue:
        """Return the result of a mov: a register, a symbol's address, or a vector of parts."""
        operand = instruction.inputs[0]
        is_split = operand.startswith("{") or instruction.operands[0].startswith("{")
        return _anything(self._parts(instruction)) if is_split else inputs[0]


def integer(text: str) -> int | None:
    """Return the number that an operand is; None when it is none."""
    if not text or not (text[0].isdigit() or text[0] == "-"):
        return None
    try:
        return int(text.rstrip("U"), 0)
    except ValueError:
        return None  # a float's bits, such as 0f3F800000


def _is_float(type_name: str) -> bool:
    return type_name[:1] == "f" or type_name[:2] == "bf"


def _any_of(*values: AbstractValue) -> AbstractValue:
    """Return the known facts about a value that is one of several."""
    stride: Stride = 0
    for value in values:
        stride = merged(stride, value.stride)
    constants = {value.constant for value in values}
    return AbstractValue(
        stride=stride,
        space=next((v.space for v in values if v.space), ""),
        constant=constants.pop() if len(constants) == 1 else None,
        is_loaded=any(v.is_loaded for v in values),
    )


def _anything(inputs: list[AbstractValue]) -> AbstractValue:
    """Return the known facts about the result of an operation without a rule."""
    return _UNIFORM if all(value.stride == 0 for value in inputs) else _VARYING


def _combined(rule: Rule, a: AbstractValue, b: AbstractValue) -> AbstractValue:
    stride = rule(a.stride, b.stride, (a.constant, b.constant))
    return AbstractValue(stride=stride, space=a.space or b.space)


def _product(
    values: Values, instruction: Instruction, inputs: list[AbstractValue]
) -> AbstractValue:
    if len(inputs) < 2:
        return _anything(inputs)
    a, b = inputs[:2]
    if "hi" in instruction.parts:
        # The upper half of a product with a constant is how compilers write a quotient.
        return AbstractValue(stride=values.runs.quotient(a.stride, b.stride, None))
    product = _combined(multiplied, a, b)
    return product if len(inputs) < 3 else _combined(summed, product, inputs[2])


def _converted(_: Values, instruction: Instruction, inputs: list[AbstractValue]) -> AbstractValue:
    if len(instruction.parts) < 2:
        return _anything(inputs)
    to, from_ = instruction.parts[-2:]
    if _is_float(to):
        return _UNIFORM
    return _VARYING if _is_float(from_) else inputs[0]


def _cast(_: Values, instruction: Instruction, inputs: list[AbstractValue]) -> AbstractValue:
    return replace(inputs[0], space=space_of(instruction) or inputs[0].space)


def _field(values: Values, instruction: Instruction, inputs: list[AbstractValue]) -> AbstractValue:
    value, position, length = inputs[:3]
    if position.constant is None or length.constant is None:
        return _anything(inputs)
    shifted = _combined(values.runs.right_shifted, value, position) if position.constant else value
    mask = AbstractValue(constant=(1 << min(length.constant, 63)) - 1)
    return _combined(values.runs.masked, shifted, mask)


def _negated(_: Values, instruction: Instruction, inputs: list[AbstractValue]) -> AbstractValue:
    stride = inputs[0].stride
    return AbstractValue(stride=None if stride is None else -stride)


def _chosen(_: Values, instruction: Instruction, inputs: list[AbstractValue]) -> AbstractValue:
    return replace(_any_of(*inputs[:2]), constant=None)


_RULES: Final[Mapping[str, Callable[[Values, Instruction, list[AbstractValue]], AbstractValue]]] = {
    "mov": Values.moved,
    "mul": _product,
    "mad": _product,
    "cvt": _converted,
    "cvta": _cast,
    "bfe": lambda v, i, n: _field(v, i, n) if len(n) > 2 else _anything(n),
    "neg": _negated,
    "not": _negated,
    "selp": _chosen,
    "min": _chosen,
    "max": _chosen,
}

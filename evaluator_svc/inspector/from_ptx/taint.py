"""Finds the variables that an address may belong to, through a whole PTX module.

It errs on the side of too many: whatever is computed from a variable's address may be an address of
that variable, and a load may return any stored value. Where an address decides a jump, or the place
of a load, it cannot be followed, so such uses are marked.
"""

from collections.abc import Iterator
from typing import Final

from evaluator_svc.ptx import Function, Instruction, Module
from evaluator_svc.ptx.module import LABEL, address_of, names_in

_WRITERS: Final = frozenset(
    {"st", "red", "atom", "cp", "stmatrix", "multimem", "wmma", "tcgen05", "tensormap"}
)
_ELSEWHERE: Final = frozenset({"load", "param"})
"""Modifiers of a writer that make it a read, or the passing of an argument."""
_OFFSETS: Final = frozenset({"mov", "cvta", "add", "sub", "mad", "selp"})
"""Instructions that pass an address on, or add an offset to it."""
_NO_ADDEND: Final = {"sub": slice(1, None), "mad": slice(2), "selp": slice(2, None)}
"""Operands of these instructions whose address does not go into the result."""
_READERS: Final = frozenset({"ld", "ldu", "ldmatrix"})
_SILENT: Final = frozenset({*_WRITERS, "call", "ret", "prefetch", "prefetchu"})
"""Instructions without a result whose use of an address is followed or harmless."""
_DECIDES: Final = frozenset({"bar", "barrier", "mbarrier", "tex", "tld4", "suld", "sured"})
_CHANGED: Final = "~"
"""Prefix of a variable whose address went into more than an address beside it."""
_MEMORY: Final = ("", "(memory)")
_MAX_ROUNDS: Final = 64
"""Most rounds of following addresses; compilers' code takes three or four."""
_NOTHING: Final[frozenset[str]] = frozenset()

_Key = tuple[str, str]
"""Function and register or parameter."""


class Addresses:
    """The variables that each register of a module may be the address of.

    Args:
        module: Where they are.
        variables: Names of the variables that are followed.
    """

    def __init__(self, module: Module, variables: frozenset[str]) -> None:
        self._module = module
        self._variables = variables & frozenset(mentioned(module))
        self._held: dict[_Key, frozenset[str]] = {}
        held = (name for v in module.variables.values() for name in v.references)
        self._add(_MEMORY, variables.intersection(held))
        self._is_settled = not self._variables
        for _ in range(_MAX_ROUNDS):
            self._is_settled = self._is_settled or not self._changes()

    def written(self, function: Function, instruction: Instruction) -> frozenset[str]:
        """Return the variables that an instruction may write to."""
        if not self._variables or instruction.opcode not in _WRITERS:
            return _NOTHING
        if not _ELSEWHERE.isdisjoint(instruction.parts):
            return _NOTHING
        if not self._is_settled:
            return self._variables  # too tangled to tell
        if instruction.opcode == "tensormap":
            # What is put into a map is where copies by it go to.
            return _plain(self._any(function, instruction.operands))
        target = next((o for o in instruction.operands if o.startswith("[")), "")
        return _plain(self._of(function, target))

    def deciding(self, function: Function, instruction: Instruction) -> frozenset[str]:
        """Return the variables whose addresses decide what an instruction does, or whether."""
        if not self._variables:
            return _NOTHING
        found = self._of(function, instruction.predicate)
        opcode, operands, parts = instruction.opcode, instruction.operands, instruction.parts
        if opcode in _DECIDES or (not instruction.results and opcode not in _SILENT):
            found |= self._any(function, operands)
        elif opcode == "call":
            found |= self._any(function, tuple(o for o in operands if not o.startswith("(")))
        elif opcode in _READERS:
            place = self._any(function, instruction.inputs)
            is_elsewhere = any(part.startswith(("shared", "local")) for part in parts)
            found |= frozenset(n for n in place if is_elsewhere or n.startswith(_CHANGED))
        return _plain(found)

    def _changes(self) -> bool:
        """Follow every instruction once; return whether anything was learnt."""
        has_changed = False
        for function, instruction in self._module.instructions():
            for key, names in self._effects(function, instruction):
                has_changed |= self._add(key, names)
        return has_changed

    def _add(self, key: _Key, names: frozenset[str]) -> bool:
        held = self._held.get(key, _NOTHING)
        if names <= held:
            return False
        self._held[key] = held | names
        return True

    def _effects(
        self, function: Function, instruction: Instruction
    ) -> Iterator[tuple[_Key, frozenset[str]]]:
        opcode, operands = instruction.opcode, instruction.operands
        if opcode == LABEL or not operands:
            return
        if opcode == "call":
            yield from self._call(function, instruction)
        elif opcode == "atom":
            yield _MEMORY, self._any(function, operands[2:])
            for name in instruction.results:
                yield (function.name, name), self._held.get(_MEMORY, _NOTHING)
        elif opcode in _WRITERS:
            value = self._any(function, operands[1:])
            address = address_of(operands[0])
            is_parameter = "param" in instruction.parts and address is not None
            yield (function.name, address.base) if is_parameter and address else _MEMORY, value
            for name in instruction.results:  # some of them load
                yield (function.name, name), self._held.get(_MEMORY, _NOTHING)
        else:
            if opcode in ("ld", "ldu"):
                found = self._held.get(_MEMORY, _NOTHING)
                if "param" in instruction.parts:
                    found |= self._any(function, operands[1:])
            else:
                found = self._any(function, instruction.inputs)
                found |= {
                    f"{_CHANGED}{name}" for name in _plain(self._changed(function, instruction))
                }
                if any(o.startswith("[") for o in instruction.inputs):
                    found |= self._held.get(_MEMORY, _NOTHING)
            for name in instruction.results:
                yield (function.name, name), found

    def _call(self, function: Function, call: Instruction) -> Iterator[tuple[_Key, frozenset[str]]]:
        lists = [o for o in call.operands if o.startswith("(")]
        callee = next((f for o in call.operands if (f := self._module.functions.get(o))), None)
        if callee is None:
            # A jump to an address: whatever is passed may be stored anywhere.
            yield _MEMORY, self._any(function, call.operands)
            return
        given = names_in(lists[-1]) if call.operands[-1].startswith("(") else ()
        for parameter, name in zip(callee.parameters, given, strict=False):
            yield (callee.name, parameter), self._held.get((function.name, name), _NOTHING)
        if call.operands[0].startswith("("):
            for name, returned in zip(names_in(lists[0]), callee.returned, strict=False):
                found = self._held.get((callee.name, returned), _NOTHING)
                yield (function.name, name), found

    def _changed(self, function: Function, instruction: Instruction) -> frozenset[str]:
        """Return the variables from whose addresses a result is more than some way off."""
        inputs, opcode = instruction.inputs, instruction.opcode
        is_split = any(operand.startswith("{") for operand in instruction.operands)
        if opcode not in _OFFSETS or is_split:
            return self._any(function, inputs)
        return self._any(function, inputs[_NO_ADDEND.get(opcode, slice(0))])

    def _any(self, function: Function, operands: tuple[str, ...]) -> frozenset[str]:
        found: frozenset[str] = _NOTHING
        for operand in operands:
            found |= self._of(function, operand)
        return found

    def _of(self, function: Function, operand: str) -> frozenset[str]:
        found: frozenset[str] = _NOTHING
        for name in names_in(operand):
            if name in self._variables:
                found |= {name}
            found |= self._held.get((function.name, name), _NOTHING)
        return found


def _plain(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name.removeprefix(_CHANGED) for name in names)


def mentioned(module: Module) -> Iterator[str]:
    """Iterate over all names that instructions and variables hold."""
    for variable in module.variables.values():
        yield from variable.references
    for _, instruction in module.instructions():
        for operand in instruction.operands:
            yield from names_in(operand)  # in assembly a variable may be called %x as well

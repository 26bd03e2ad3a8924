"""Reads the binary form of a SPIR-V module.

The words come from a compiler that was fed hostile text and through a cache on disk: sizes are
bounded and each instruction must lie inside the module. Ids are not resolved here.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from evaluator_svc.spirv.module import Function, GlobalVariable, Import, Instruction, Module
from evaluator_svc.spirv.opcodes import (
    DECORATION_BUILT_IN,
    DECORATION_CONSTANT,
    DECORATION_LINKAGE_ATTRIBUTES,
    LINKAGE_IMPORT,
    NO_RESULT,
    RESULT_ONLY,
    Op,
)

_MAGIC: Final = 0x07230203
_HEADER_WORDS: Final = 5
_MAX_BYTES: Final = 8 << 20
_MAX_ID: Final = 1 << 24
_TYPES: Final = range(19, 40)


class SpirvError(Exception):
    """The bytes are no SPIR-V module that can be judged."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def parse(code: bytes) -> Module:
    """Return the module that `code` holds.

    Raises:
        SpirvError: not a well-formed module.
    """
    builder = _Builder()
    for instruction in _instructions(_words(code)):
        builder.add(instruction)
    return builder.module()


def _words(code: bytes) -> tuple[int, ...]:
    if len(code) > _MAX_BYTES:
        raise SpirvError(f"{len(code)} bytes are more than the {_MAX_BYTES} that are looked at")
    if len(code) % 4 or len(code) < 4 * _HEADER_WORDS:
        raise SpirvError(f"{len(code)} bytes are not a whole number of words with a header")
    for order in "<>":
        words = struct.unpack(f"{order}{len(code) // 4}I", code)
        if words[0] == _MAGIC:
            break
    else:
        raise SpirvError("the first word is not SPIR-V's magic number")
    if words[3] > _MAX_ID:
        raise SpirvError(f"an id bound of {words[3]} is more than {_MAX_ID}")
    return words


def _instructions(words: tuple[int, ...]) -> Iterator[Instruction]:
    position = _HEADER_WORDS
    while position < len(words):
        count, opcode = words[position] >> 16, words[position] & 0xFFFF
        if count == 0 or position + count > len(words):
            raise SpirvError(f"the instruction at word {position} does not end inside the module")
        yield _decoded(opcode, words[position + 1 : position + count], position)
        position += count


def _decoded(opcode: int, operands: tuple[int, ...], position: int) -> Instruction:
    if opcode in NO_RESULT:
        return Instruction(opcode=opcode, operands=operands)
    ids = 1 if opcode in RESULT_ONLY else 2
    if len(operands) < ids:
        raise SpirvError(f"the instruction {opcode} at word {position} lacks its result")
    if ids == 1:
        return Instruction(opcode=opcode, result_id=operands[0], operands=operands[1:])
    return Instruction(
        opcode=opcode, type_id=operands[0], result_id=operands[1], operands=operands[2:]
    )


def text_of(words: tuple[int, ...]) -> tuple[str, int]:
    """Return the string literal that `words` start with, and how many words it takes.

    Raises:
        SpirvError: it does not end.
    """
    data = struct.pack(f"<{len(words)}I", *words)
    end = data.find(b"\0")
    if end < 0:
        raise SpirvError("a string does not end")
    return data[:end].decode("utf-8", errors="replace"), end // 4 + 1


@dataclass(slots=True)
class _OpenFunction:
    id: int
    parameters: list[Instruction] = field(default_factory=list)
    body: list[Instruction] = field(default_factory=list)


@dataclass(slots=True)
class _Builder:
    """Sorts instructions into a module; order is checked only where a function is concerned."""

    capabilities: set[int] = field(default_factory=set)
    extensions: list[str] = field(default_factory=list)
    entry_points: dict[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    imports: dict[int, str] = field(default_factory=dict)
    linkage_names: dict[int, str] = field(default_factory=dict)
    built_ins: dict[int, int] = field(default_factory=dict)
    never_written: set[int] = field(default_factory=set)
    variables: dict[int, Instruction] = field(default_factory=dict)
    types: dict[int, Instruction] = field(default_factory=dict)
    constants: dict[int, int] = field(default_factory=dict)
    functions: dict[int, _OpenFunction] = field(default_factory=dict)
    opcodes: set[int] = field(default_factory=set)
    current: _OpenFunction | None = None

    def add(self, instruction: Instruction) -> None:
        self.opcodes.add(instruction.opcode)
        if instruction.opcode == Op.FUNCTION:
            self._open(instruction)
        elif self.current is not None:
            self._add_to_function(self.current, instruction)
        elif instruction.opcode in _TYPES:
            self.types[instruction.result_id] = instruction
        else:
            self._add_to_module(instruction)

    def _open(self, instruction: Instruction) -> None:
        if self.current is not None:
            raise SpirvError("a function begins inside another")
        self.current = _OpenFunction(instruction.result_id)
        self.functions[instruction.result_id] = self.current

    def _add_to_function(self, function: _OpenFunction, instruction: Instruction) -> None:
        if instruction.opcode == Op.FUNCTION_END:
            self.current = None
        elif instruction.opcode == Op.FUNCTION_PARAMETER:
            function.parameters.append(instruction)
        else:
            function.body.append(instruction)

    def _add_to_module(self, instruction: Instruction) -> None:
        operands = instruction.operands
        match instruction.opcode:
            case Op.CAPABILITY:
                self.capabilities.update(operands)
            case Op.EXTENSION:
                self.extensions.append(text_of(operands)[0])
            case Op.ENTRY_POINT:
                if len(operands) < 3:
                    raise SpirvError("an entry point without a function")
                self.entry_points[operands[1]] = text_of(operands[2:])[0]
            case Op.NAME:
                if operands:
                    self.names[operands[0]] = text_of(operands[1:])[0]
            case Op.DECORATE:
                self._decorate(operands)
            case Op.CONSTANT:
                low_first = sum(word << (32 * i) for i, word in enumerate(operands))
                self.constants[instruction.result_id] = low_first
            case Op.CONSTANT_NULL:
                self.constants[instruction.result_id] = 0
            case Op.VARIABLE:
                self.variables[instruction.result_id] = instruction

    def _decorate(self, operands: tuple[int, ...]) -> None:
        if len(operands) < 2:
            raise SpirvError("a decoration without a target")
        target, decoration, values = operands[0], operands[1], operands[2:]
        if decoration == DECORATION_LINKAGE_ATTRIBUTES:
            name, size = text_of(values)
            self.linkage_names[target] = name
            if values[size : size + 1] == (LINKAGE_IMPORT,):
                self.imports[target] = name
        elif decoration == DECORATION_BUILT_IN and values:
            self.built_ins[target] = values[0]
        elif decoration == DECORATION_CONSTANT:
            self.never_written.add(target)

    def module(self) -> Module:
        if self.current is not None:
            raise SpirvError("the last function does not end")
        return Module(
            capabilities=frozenset(self.capabilities),
            extensions=tuple(self.extensions),
            entry_points=self.entry_points,
            imports=tuple(
                Import(id=i, name=name, is_function=i in self.functions)
                for i, name in self.imports.items()
            ),
            globals=tuple(self._global(v) for v in self.variables.values()),
            functions={i: self._function(f) for i, f in self.functions.items()},
            types=self.types,
            constants=self.constants,
            built_ins=self.built_ins,
            opcodes=frozenset(self.opcodes),
        )

    def _name(self, result_id: int) -> str:
        return self.linkage_names.get(result_id) or self.names.get(result_id, "")

    def _global(self, variable: Instruction) -> GlobalVariable:
        result_id = variable.result_id
        return GlobalVariable(
            id=result_id,
            type_id=variable.type_id,
            name=self._name(result_id),
            storage=variable.operands[0] if variable.operands else -1,
            is_constant=result_id in self.never_written,
            is_import=result_id in self.imports,
        )

    def _function(self, found: _OpenFunction) -> Function:
        return Function(
            id=found.id,
            name=self.entry_points.get(found.id) or self._name(found.id),
            parameters=tuple(found.parameters),
            body=tuple(found.body),
        )

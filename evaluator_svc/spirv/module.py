"""A SPIR-V module as data: entry points, imports, globals, functions, types and constants."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evaluator_svc.spirv.opcodes import Op, StorageClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction, its ids apart from the other operands."""

    opcode: int
    type_id: int = 0
    """Result type; 0: none."""
    result_id: int = 0
    """0: none."""
    operands: tuple[int, ...] = ()
    """The words after result type and result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """A symbol that the module expects from elsewhere."""

    id: int
    name: str
    is_function: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalVariable:
    """A variable at module scope."""

    id: int
    type_id: int
    """Type of the pointer to it."""
    name: str
    storage: int
    """A `StorageClass`, or a number that has no name there."""
    is_constant: bool
    """Decorated as never written."""
    is_import: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerType:
    """Type of a pointer."""

    storage: int
    pointee: int
    """Type id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function; one without a body is an import."""

    id: int
    name: str
    parameters: tuple[Instruction, ...]
    body: tuple[Instruction, ...]
    """In order, labels included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """Everything of a module that anything here looks at."""

    capabilities: frozenset[int]
    extensions: tuple[str, ...]
    entry_points: Mapping[int, str]
    """Function id to kernel name."""
    imports: tuple[Import, ...]
    globals: tuple[GlobalVariable, ...]
    functions: Mapping[int, Function]
    types: Mapping[int, Instruction]
    constants: Mapping[int, int]
    """Integer scalar constants, signless."""
    built_ins: Mapping[int, int]
    """Input variable id to its `BuiltIn` number."""
    opcodes: frozenset[int]
    """Every opcode that occurs."""

    def kernels(self) -> tuple[Function, ...]:
        """Return the entry points' functions, in order."""
        return tuple(self.functions[i] for i in self.entry_points if i in self.functions)

    def pointer(self, type_id: int) -> PointerType | None:
        """Return a pointer type, or None when the type is no pointer."""
        found = self.types.get(type_id)
        if found is None or found.opcode != Op.TYPE_POINTER or len(found.operands) < 2:
            return None
        return PointerType(storage=found.operands[0], pointee=found.operands[1])

    def is_float(self, type_id: int) -> bool:
        """Return whether a type is a floating-point number or a vector of them."""
        found = self.types.get(type_id)
        if found is not None and found.opcode == Op.TYPE_VECTOR and found.operands:
            found = self.types.get(found.operands[0])
        return found is not None and found.opcode == Op.TYPE_FLOAT

    def lanes(self, type_id: int) -> int:
        """Return how many numbers a value of the type holds; 1 for a scalar."""
        found = self.types.get(type_id)
        if found is None or found.opcode != Op.TYPE_VECTOR or len(found.operands) < 2:
            return 1
        return found.operands[1]

    def instructions(self) -> Iterator[Instruction]:
        """Iterate over every function's instructions."""
        for function in self.functions.values():
            yield from function.body

    def size_bytes(self, type_id: int, *, depth: int = 8) -> int:
        """Return the size of a type without padding; 0 when it is not known."""
        found = self.types.get(type_id)
        if found is None or depth == 0 or not found.operands:
            return 0
        first = found.operands[0]
        size = 0
        match found.opcode:
            case Op.TYPE_POINTER:
                size = 8
            case Op.TYPE_INT | Op.TYPE_FLOAT:
                size = first // 8
            case Op.TYPE_VECTOR | Op.TYPE_ARRAY:
                size = self._count(found) * self.size_bytes(first, depth=depth - 1)
            case Op.TYPE_STRUCT:
                size = sum(self.size_bytes(member, depth=depth - 1) for member in found.operands)
        return size

    def _count(self, type_: Instruction) -> int:
        if len(type_.operands) < 2:
            return 1
        if type_.opcode == Op.TYPE_ARRAY:
            return self.constants.get(type_.operands[1], 1)
        # Vectors of three take the place of four.
        return 4 if type_.operands[1] == 3 else type_.operands[1]

    def variables(self, storage: StorageClass) -> tuple[GlobalVariable, ...]:
        """Return the globals of one storage class."""
        return tuple(v for v in self.globals if v.storage == storage)

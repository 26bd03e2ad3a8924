"""A PTX module: functions, their instructions, variables. Registers go by their names.

Says which operands an instruction writes, not what it computes.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kernel_foundry.languages.cuda import CUDA

OWN_FILE: Final = CUDA.source_file
"""Name that a candidate's lines are compiled under."""

LASTING: Final = ("global", "const")
"""Spaces of memory that outlives a launch; constants are written through forged addresses only."""

LABEL: Final = "(label)"
"""Opcode of a label in a function's body; its operand is the name."""

_NAME: Final = re.compile(r"(?<![\w$%.@])[A-Za-z_$%][\w$%.@]*")
_MOST_DIGITS: Final = 10
_WRITES_NOTHING: Final = frozenset(
    {
        *("st", "red", "bra", "brx", "call", "ret", "exit", "trap", "brkpt", "pmevent", "bar"),
        *("barrier", "membar", "fence", "prefetch", "prefetchu", "cp", "nanosleep", "discard"),
        *("griddepcontrol", "setmaxnreg", "applypriority", "stmatrix", "tensormap", LABEL),
    }
)
_WRITES_NOTHING_WITH: Final = {
    "wmma": {"store"},
    "mbarrier": {"init", "inval", "expect_tx", "complete_tx"},
    "multimem": {"st", "red", "cp"},
    "wgmma": {"fence", "commit_group", "wait_group"},
    "tcgen05": {"st", "cp", "mma", "alloc", "dealloc", "commit", "wait", "fence", "shift"},
}
"""Opcodes that write nothing when this word follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where in the source an instruction is from."""

    file: int
    """Number among the module's files."""
    line: int
    column: int
    caller: "Location | None" = None
    """Where the function that it stands in was called, when it was put in line."""

    @property
    def outermost(self) -> "Location":
        """Where the kernel itself called what this instruction is from."""
        return self if self.caller is None else self.caller.outermost


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A bracketed operand: a register or a symbol, and a distance from it."""

    base: str
    """Register or symbol; empty: an absolute address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction, or a label."""

    parts: tuple[str, ...]
    """Opcode and its modifiers: ("ld", "global", "v4", "f32")."""
    operands: tuple[str, ...] = ()
    """As written; vectors and calls' lists with their braces."""
    predicate: str = ""
    """Register that it depends on."""
    location: Location | None = None
    opcode: str = field(init=False, compare=False, repr=False)
    """First part."""
    results: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """Registers that it writes."""
    inputs: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """Operands that it reads, in order."""

    def __post_init__(self) -> None:
        """Tell results from inputs once: every analysis asks for them."""
        operands, writes = self.operands, _writes(self.parts)
        names = _NAME.findall(operands[0]) if writes and operands else ()
        object.__setattr__(self, "opcode", self.parts[0])
        object.__setattr__(self, "results", tuple(name for name in names if name != "_"))
        object.__setattr__(self, "inputs", operands[1:] if writes else operands)

    @property
    def lanes(self) -> int:
        """Numbers moved at once, from the vector modifier."""
        for part in self.parts[1:]:
            if part in ("v2", "v4", "v8"):
                return int(part[1:])
        return 1

    @property
    def size_bytes(self) -> int:
        """Bytes moved at once, from vector and type modifiers."""
        return self.lanes * type_bytes(self.parts[-1])


def _writes(parts: tuple[str, ...]) -> bool:
    if parts[0] in _WRITES_NOTHING:
        return parts[0] in ("bar", "barrier") and "red" in parts
    never = _WRITES_NOTHING_WITH.get(parts[0])
    return never is None or len(parts) < 2 or parts[1] not in never


def names_in(operand: str) -> tuple[str, ...]:
    """Return registers and symbols that an operand names."""
    return tuple(_NAME.findall(operand))


def address_of(operand: str) -> Address | None:
    """Return the address that a bracketed operand holds; None for all others."""
    if not operand.startswith("["):
        return None
    match = _NAME.search(operand)
    return Address(base=match[0] if match else "")


def type_bytes(name: str) -> int:
    """Return the size of a fundamental type such as f32, b16x2; 4 for those not known."""
    match = re.fullmatch(r"[a-z]+(\d{1,4})(x\d{1,4})?", name)
    if match is None:
        return 4
    count = int(match[2][1:]) if match[2] else 1
    return max(1, int(match[1]) * count // 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A named piece of memory."""

    name: str
    space: str
    """global, shared, const, local or param."""
    size_bytes: int
    """0: not declared, as for dynamic shared memory."""
    has_values: bool = False
    """Whether it is declared with what it starts with; compilers leave out zeros."""
    is_extern: bool = False
    is_managed: bool = False
    references: tuple[str, ...] = ()
    """Names in what it starts with: variables whose addresses it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A kernel or a function."""

    name: str
    is_kernel: bool
    is_declaration: bool
    """Named but not defined."""
    parameters: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    """Names of what it gives back."""
    body: tuple[Instruction, ...] = ()
    variables: Mapping[str, Variable]
    """Its own, by name."""
    registers: Mapping[str, int | None] = field(default_factory=dict)
    """Registers of its outermost scope: how many numbers go with a name, None for none."""

    def declares(self, name: str) -> bool:
        """Return whether a name is declared here, and so is no special register's."""
        if "@" in name:  # of an inner scope
            return True
        name = name.partition(".")[0]  # a member of a vector
        if self.registers.get(name, 0) is None or name in self.variables:
            return True
        stem = name.rstrip("0123456789")
        digits = name[len(stem) :]
        count = self.registers.get(stem)
        return count is not None and 0 < len(digits) < _MOST_DIGITS and int(digits) < count


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """What one PTX text holds."""

    target: str
    """Such as "sm_90a"."""
    functions: Mapping[str, Function]
    variables: Mapping[str, Variable]
    files: Mapping[int, str]

    def kernels(self) -> tuple[Function, ...]:
        """Return the functions that can be launched."""
        return tuple(f for f in self.functions.values() if f.is_kernel)

    def instructions(self) -> Iterator[tuple[Function, Instruction]]:
        """Iterate over every function's instructions, labels left out."""
        for function in self.functions.values():
            for instruction in function.body:
                if instruction.opcode != LABEL:
                    yield function, instruction

    def source_line(self, location: Location | None) -> int | None:
        """Return the line of the candidate that a place belongs to; None: it is elsewhere."""
        while location is not None:
            name = self.files.get(location.file, "").rpartition("/")[2]
            if name == OWN_FILE and location.line > 0:
                return location.line
            location = location.caller
        return None

    def variable(self, function: Function, name: str) -> Variable | None:
        """Return what a name stands for inside a function."""
        return function.variables.get(name) or self.variables.get(name)

"""A kernel as one function for both languages, with all calls in place: what steps compute from.

`from_ptx.flow` and `from_spirv.flow` make it. Values go by numbers; one that is computed at several
places, as in PTX, is all that it may be.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, Flag, auto
from typing import Final

from evaluator_svc.inspector.control_flow import Loop, loops
from evaluator_svc.inspector.lowered_program import Space

MAX_STEPS: Final = 100_000
"""Most steps of all kernels of a module, with calls in place; kernels beyond are not reported."""
_MOST_COPIES: Final = 8
MAX_CALLS: Final = 12
"""Calls within calls; what is called beyond is not followed."""


class Source(Flag):
    """The sources by which a value may differ between work-items."""

    NOTHING = 0
    GROUP_X = auto()
    """The number of the work-group, in its first dimension."""
    GROUP_Y = auto()
    GROUP_Z = auto()
    COUNT = auto()
    """How many work-groups there are."""
    ORDER = auto()
    """Who came first: an atomic of global memory, or another access that is made to be seen."""
    DATA = auto()
    """Memory at a place that is the same for all work-groups."""
    CHOSEN = auto()
    """Memory at a place that depends on the work-group."""
    ARGUMENT = auto()
    """A number that the kernel is given."""
    LANE = auto()
    """The place of the work-item among its neighbours; branches are not followed for it."""


GROUPS: Final = (Source.GROUP_X, Source.GROUP_Y, Source.GROUP_Z)
ANY_GROUP: Final = Source.GROUP_X | Source.GROUP_Y | Source.GROUP_Z


class Act(Enum):
    """The effect of a step on memory."""

    LOAD = auto()
    STORE = auto()
    ATOMIC = auto()
    """Reads, changes and writes at once."""
    FENCE = auto()
    """Orders what was written before, for other work-groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One instruction."""

    results: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    """Values that the result is computed from, or that are stored; an address is none of them."""
    source: Source = Source.NOTHING
    """Sources that the step adds itself."""
    is_float: bool = False
    """The result is a floating-point number."""
    is_merge: bool = False
    """The result is one of the inputs, by the way that control took."""
    is_copy: bool = False
    """The result is the first input, in another width, or the lane's part of it."""
    bound: int = 0
    """The first number for which a comparison of the first input with a constant turns out
    otherwise; 0 if the step is not such a comparison."""
    is_short_product: bool = False
    """A product of two numbers of 32 bits, neither a constant, in as many."""
    widens: bool = False
    """Makes a number of 64 bits of one of 32."""
    quotient: int = 0
    """The constant divisor of the first input; 0 if the step is not such a quotient."""
    act: Act | None = None
    space: Space = Space.OTHER
    """Space of the memory that it acts on."""
    address: tuple[int, ...] = ()
    """Values that the address is computed from."""
    offset: str = ""
    """Offset of the place from that address, as it is written."""
    pointed: tuple[int, ...] = ()
    """Inputs that a pointer may come from."""
    root: int = 0
    """Buffer that a result points to, where it is handed over here; 0: none."""
    is_plain: bool = True
    """A load or store that no other work-group is meant to see at once."""
    is_narrow: bool = False
    """An atomic of the scope of a work-group, or a narrower one."""
    orders: bool = False
    """A store with release, or an atomic that changes a place and orders; not of a narrow scope."""
    acquires: bool = False
    """A fence or a load, not of a narrow scope, behind which what other work-groups showed is
    seen."""
    meets: bool = False
    """It exchanges values with all lanes of the sub-group, or all work-items of the group."""
    is_uniform: bool = False
    """The result is the same in all lanes that take part."""
    condition: tuple[int, ...] = ()
    """Values that decide whether it is done at all."""
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFlow:
    """All steps of a kernel."""

    name: str
    blocks: Mapping[int, tuple[Step, ...]]
    """By number; the first is where the kernel begins."""
    decides: Mapping[int, tuple[int, ...]]
    """Values by which control goes on from a block."""
    successors: Mapping[int, tuple[int, ...]]
    loops: tuple[Loop, ...]

    def steps(self) -> Iterator[tuple[int, Step]]:
        """Iterate over all steps with their blocks."""
        for number, steps in self.blocks.items():
            for step in steps:
                yield number, step


def is_bare(value: int, source: Source, made: Mapping[int, Sequence[Step]]) -> bool:
    """Return whether a value is what a source gives, in whatever width.

    Args:
        value: The value.
        source: Such as the number of the group.
        made: The steps that each value is computed by.
    """
    for _ in range(_MOST_COPIES):
        steps = made.get(value, ())
        if len(steps) != 1:
            return False
        if steps[0].source:
            return steps[0].source == source
        if not steps[0].is_copy or not steps[0].inputs:
            return False
        value = steps[0].inputs[0]
    return False


@dataclass(slots=True)
class FlowDraft:
    """A kernel's flow while calls are put in place."""

    blocks: dict[int, list[Step]] = field(default_factory=dict)
    decides: dict[int, tuple[int, ...]] = field(default_factory=dict)
    successors: dict[int, list[int]] = field(default_factory=dict)
    step_count: int = 0
    left: int = MAX_STEPS
    """Steps that may be added."""

    @property
    def is_full(self) -> bool:
        """Whether no more is put in place."""
        return self.step_count > self.left

    def block(self) -> int:
        """Add a block; return its number."""
        number = len(self.blocks) + 1
        self.blocks[number] = []
        self.successors[number] = []
        return number

    def add(self, block: int, step: Step) -> None:
        """Add a step at the end of a block."""
        self.step_count += 1
        self.blocks[block].append(step)

    def flow(self, name: str) -> KernelFlow:
        """Return the kernel once all is in place."""
        successors = {block: tuple(targets) for block, targets in self.successors.items()}
        return KernelFlow(
            name=name,
            blocks={block: tuple(steps) for block, steps in self.blocks.items()},
            decides={block: self.decides.get(block, ()) for block in self.blocks},
            successors=successors,
            loops=tuple(loops(successors)),
        )

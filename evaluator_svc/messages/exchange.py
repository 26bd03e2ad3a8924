"""Messages between the evaluator's processes: plain dataclasses sent as JSON frames.

Sent between supervisor, builder, runner and judge with `kernel_foundry.domain.plain`; file
descriptors of shared buffers travel beside the frame.
"""

from dataclasses import dataclass

from kernel_foundry.domain.check import Check
from kernel_foundry.domain.evaluation import Correctness, Fact, PrecisionAudit
from kernel_foundry.domain.finding import Finding

ALIGNMENT_BYTES = 256
"""Every tensor starts at a multiple of this, as the name table promises."""

POISON_BYTE = 0xFF
"""What outputs are filled with before a timed call: NaN as float, -1 as integer."""

POISON_BYTES = (POISON_BYTE, 0x7A, 0xFA)
"""What the outputs of compared runs are filled with, in turn.

A large number and a large negative one, too: a maximum, a minimum or a mask that never gets its
start value is right on some of them, and on all three no way of combining results is.
"""

RUN_COUNT = 3
"""Runs on each input set, which have to agree."""

OUTPUT_SLOTS = RUN_COUNT
"""Copies of the outputs in a shared buffer, one for each run; a lean draw has one."""

SEED_COUNT = 3
"""Input sets drawn for each workload."""


RedrawRows = tuple[int, list[tuple[str, int, int]], list[list[int]]]
"""What the measuring loop changes before each call: the key, (type as which, bytes, number) of
each tensor, and for each set the tensors' addresses."""

GuestRows = tuple[
    list[tuple[int, int]], list[list[int]], list[list[int]], list[int], list[list[int]]
]
"""Inputs of calls among the timed ones: (number, bytes) of each tensor, its addresses by set and by
guest, where a set's own are meanwhile, and by guest where outputs go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSlot:
    """Where one named tensor lies in a shared buffer."""

    name: str
    """Name-table name."""
    role: str
    """A `TensorRole` value."""
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int
    offsets: tuple[int, ...]
    """Byte offsets; one for an input, parameter or buffer, one for each copy of an output."""
    redrawn_as: str = ""
    """The type as which it changes from one timed call to the next: of floats values do, of others
    the places of elements. Empty: it stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Inputs drawn for one workload: shared buffers of one layout, each with one seed's inputs.

    A lean draw has one buffer with one copy of the outputs; its seeds follow each other in it.
    """

    draw: int
    """Handle at the judge."""
    workload: str
    size_bytes: int
    """Of each shared buffer."""
    slots: tuple[TensorSlot, ...]
    seed_count: int
    """Shared buffers."""
    handles: tuple[str, ...] = ()
    """Device memory: the buffers' handles in hexadecimal, in order of the seeds. Host memory:
    empty; file descriptors travel beside this message."""
    is_lean: bool = False
    """Whether its seeds follow each other in the one buffer."""

    @property
    def slot_count(self) -> int:
        """Copies of the outputs in each shared buffer."""
        return max(len(slot.offsets) for slot in self.slots)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOutput:
    """A timed call whose outputs were kept for verification."""

    seed: int
    """Index of the seed whose inputs it ran on."""
    slot: int
    """Output slot of that seed's shared buffer that holds its outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """What the judge found in the outputs of one workload."""

    correctness: Correctness
    inputs_modified: tuple[str, ...] = ()
    """Names of inputs or parameters that the candidate changed."""
    stray_writes: tuple[str, ...] = ()
    """Names of tensors behind which, or before which, something was written."""
    is_wrong: bool = False
    is_nondeterministic: bool = False
    is_stale: bool = False
    """Outputs are what other inputs gave before."""
    findings: tuple[Finding, ...] = ()
    checks: tuple[Check, ...] = ()
    changed_state: tuple[str, ...] = ()
    """What the task's file has changed in the judge's process, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeVerdict:
    """What the judge found on inputs of one distribution."""

    check: Check
    is_wrong: bool = False
    """A reason to refuse the candidate."""
    findings: tuple[Finding, ...] = ()
    audit: PrecisionAudit | None = None
    """Errors against float64, on the distributions that are there to show them…"""
    wide: PrecisionAudit | None = None
    """…and those of outputs in float32 of a task that rounds others to fewer bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementSettings:
    """How one measurement is taken; the same for candidate and baseline."""

    seconds: float
    min_samples: int = 10
    max_samples: int = 1000
    target_half_width: float = 0.01
    """Relative half-width of the 95 % interval of the median."""
    warmup_calls: int = 3
    flush_bytes: int = 0
    """0: warm."""
    stop_above_ns: float = 0.0
    """An incumbent's time; 0: never stop early."""
    stop_factor: float = 1.5
    """How far the best of the first samples has to be above it: times that time."""
    redraw_key: int = 0
    """Decides with a call's number which values its inputs have; 0: those that were drawn."""
    min_seconds: float = 0.0
    """Least time before the samples may count as enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFacts:
    """What the judge's process is, for evidence."""

    process_id: int
    facts: tuple[Fact, ...]

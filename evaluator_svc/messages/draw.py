"""Inputs drawn for one workload, in buffers that the judge shares with a runner.

Descriptors of shared buffers travel beside the message.
"""

from dataclasses import dataclass

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

"""Inputs drawn for one workload, in buffers that the judge shares with a runner.

Descriptors of shared buffers travel beside the message.
"""

from dataclasses import dataclass

ALIGNMENT_BYTES = 256
"""Every tensor starts at a multiple of this, as the name table promises."""

POISON_BYTE = 0xFF
"""Byte with which outputs are filled before a timed call: NaN as float, -1 as integer."""

POISON_BYTES = (POISON_BYTE, 0x7A, 0xFA)
"""Bytes with which the outputs of compared runs are filled, in turn.

The second gives a large number, the third a large negative one. A maximum, a minimum or a mask
without its start value is right on some of them, but no way of combining results is right on all.
"""

RUN_COUNT = 3
"""Runs on each input set, which have to agree."""

OUTPUT_SLOTS = RUN_COUNT
"""Copies of the outputs in a shared buffer, one for each run; a lean draw has one."""

SEED_COUNT = 3
"""Input sets drawn for each workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSlot:
    """The place of one named tensor in a shared buffer."""

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
    """The type as which it is redrawn before each timed call: floats get other values, elements of
    other types other places. Empty: it is not redrawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Inputs drawn for one workload: shared buffers of one layout, each with one seed's inputs.

    A lean draw has one buffer with one copy of the outputs; its seeds follow each other in it.
    """

    draw: int
    """Handle at the judge."""
    workload: str
    size_bytes: int
    """Size of each shared buffer."""
    slots: tuple[TensorSlot, ...]
    seed_count: int
    """Number of seeds, and of shared buffers unless the draw is lean."""
    handles: tuple[str, ...] = ()
    """In device memory the buffers' handles in hexadecimal, in order of the seeds. Empty in host
    memory, where file descriptors travel beside this message."""
    is_lean: bool = False
    """Whether its seeds follow each other in one buffer."""

    @property
    def slot_count(self) -> int:
        """Copies of the outputs in each shared buffer."""
        return max(len(slot.offsets) for slot in self.slots)

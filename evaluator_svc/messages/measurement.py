"""How a measurement is taken, what changes from one timed call to the next, and which are kept."""

from dataclasses import dataclass

RedrawRows = tuple[int, list[tuple[str, int, int]], list[list[int]]]
"""What the measuring loop changes before each call: the key, (type as which, bytes, number) of
each tensor, and for each set the tensors' addresses."""

GuestRows = tuple[
    list[tuple[int, int]], list[list[int]], list[list[int]], list[int], list[list[int]]
]
"""Inputs of calls among the timed ones: (number, bytes) of each tensor, its addresses by set and by
guest, where a set's own are meanwhile, and by guest where outputs go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOutput:
    """A timed call whose outputs were kept for verification."""

    seed: int
    """Index of the seed whose inputs it ran on."""
    slot: int
    """Output slot of that seed's shared buffer that holds its outputs."""


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

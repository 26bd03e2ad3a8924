"""What needs no device: shared buffers, comparison, the measuring loop for Python callables."""

from collections.abc import Callable
from typing import Final

POISON_BYTE: Final[int]
"""Byte that every output is filled with before a call: NaN as float, -1 as integer."""

PAGE_BYTES: Final[int]
"""Of host memory."""

class MeasureOptions:
    """How a measurement is taken.

    Args:
        warmup_calls: Untimed calls before the first sample.
        min_samples: Fewest samples for "converged".
        max_samples: Most samples.
        max_seconds: Time budget of the whole measurement; one sample there always is.
        target_half_width: Relative half-width of the median's 95 % interval to reach.
        set_count: Sets of buffers to choose from, at random, never the same twice running.
        is_cold: Whether the caches are emptied before each sample.
        keep_count: Timed calls whose outputs are kept.
        stop_above_ns: Give up when the best of three samples is far above; 0: never.
        stop_factor: How far: times `stop_above_ns`.
        min_seconds: Least time before the samples may count as enough.
        draws: Descriptor of a file of random numbers, 12 bytes for each call, read call by call;
            -1: the system draws, and nobody can tell which calls are kept.
    """

    def __init__(
        self,
        *,
        warmup_calls: int,
        min_samples: int,
        max_samples: int,
        max_seconds: float,
        target_half_width: float,
        set_count: int,
        is_cold: bool,
        keep_count: int = 0,
        stop_above_ns: float = 0.0,
        stop_factor: float = 1.5,
        min_seconds: float = 0.0,
        draws: int = -1,
    ) -> None: ...

class Measurement:
    """Raw samples and why they ended."""

    @property
    def samples_ns(self) -> list[float]:
        """Steady clock from the first submit to completion; on devices timed by them, events."""

    @property
    def device_ns(self) -> list[float]:
        """Event spans beside the steady clock; empty where there are none."""

    @property
    def host_ns(self) -> list[float]:
        """Steady clock beside events; empty where the samples are the steady clock's."""

    @property
    def prepare_ns(self) -> list[float]:
        """What preparing took before each call, by the clock that counts; empty without any."""

    @property
    def clocks(self) -> list[tuple[int, int, int, int, list[str]]]:
        """Blocks of samples: (samples, compute MHz before, after, memory MHz, reasons).

        The reasons are why the device ran no faster. Empty where it does not tell.
        """

    @property
    def stop_reason(self) -> str:
        """`converged`, `max_samples`, `budget` or `slower_than_incumbent`."""

    @property
    def discarded_count(self) -> int:
        """Samples thrown away because the clock was throttled."""

    @property
    def warmup_count(self) -> int:
        """Untimed calls that were made."""

    @property
    def elapsed_ns(self) -> float:
        """Of the whole measurement."""

    @property
    def half_width(self) -> float:
        """Relative half-width of the median's 95 % interval; infinite below six samples."""

    @property
    def kept(self) -> list[tuple[int, int]]:
        """(sample, set) of each call whose outputs were kept, by keep slot."""

    @property
    def guest_calls(self) -> int:
        """Calls among the timed ones on inputs of guests, in turn."""

class SharedBuffer:
    """Memory shared with another process through a file descriptor.

    Offers the buffer protocol; no view may be used after `close`.
    """

    @staticmethod
    def create(size_bytes: int) -> SharedBuffer:
        """Make a buffer of zeros whose size nobody can change.

        Raises:
            DriverError: there is no memory.
        """

    @staticmethod
    def open(fd: int, size_bytes: int, read_only: bool = False) -> SharedBuffer:
        """Map the buffer behind `fd`, which stays the caller's.

        Raises:
            DriverError: `fd` cannot be mapped, or is smaller than `size_bytes`.
        """

    def close(self) -> None:
        """Unmap; idempotent."""

    @property
    def fd(self) -> int:
        """Descriptor of its own; -1 once closed."""

    @property
    def address(self) -> int:
        """Of the first byte; 0 once closed."""

    @property
    def size_bytes(self) -> int:
        """Bytes mapped."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

class Comparison:
    """What a comparison of two tensors found."""

    @property
    def mismatch_count(self) -> int:
        """Elements outside the tolerance."""

    @property
    def max_abs_error(self) -> float:
        """NaN when an element is NaN that should not be."""

    @property
    def max_rel_error(self) -> float:
        """Over elements whose expected value is not 0."""

    @property
    def first_mismatch(self) -> int:
        """Flat index, -1: none."""

    @property
    def nan_count(self) -> int:
        """NaN in the actual output."""

    @property
    def inf_count(self) -> int:
        """Infinities in the actual output."""

    @property
    def poisoned_count(self) -> int:
        """Mismatches that still hold the poison."""

    @property
    def constant_factor(self) -> float:
        """Actual over expected when all mismatches share it within 0.1 %, else NaN."""

def compare(
    *,
    actual: int,
    expected: int,
    dtype: str,
    count: int,
    rtol: float,
    atol: float,
    scale: int = 0,
    groups: int = 1,
    inner: int = 1,
) -> Comparison:
    """Compare every element of two tensors.

    Element i is right when |a - e| <= atol * scale[(i / inner) % groups] + rtol * |e|.

    Args:
        actual: Address.
        expected: Address.
        dtype: As torch calls it.
        count: Elements.
        rtol: Dimensionless.
        atol: In units of the scale.
        scale: Address of `groups` float32 values; 0: all are 1.
        groups: Scales.
        inner: Neighbouring elements that share a scale.

    Raises:
        ValueError: no such dtype; `groups` or `inner` is 0.
    """

def measure_callable(
    call: Callable[[int], object],
    options: MeasureOptions,
    *,
    flush_bytes: int,
    redraw: tuple[int, list[tuple[str, int, int]], list[list[int]]] | None = None,
) -> Measurement:
    """Measure `call(set)` with the loop that measures candidates; what it raises goes through.

    `redraw`: what gets other values before each call, and its own again after the last: a key,
    (dtype, bytes, number) of each tensor, and for each set the tensors' addresses.
    """

def redraw(
    address: int,
    *,
    dtype: str,
    size_bytes: int,
    key: int,
    number: int,
    undo_index: int = 0,
    apply_index: int = 0,
) -> None:
    """Bring a tensor in place from one call's values to another's, as the measuring loop does.

    Args:
        address: Of the tensor.
        dtype: Its type, of floating point; ValueError for others.
        size_bytes: Its size.
        key: Decides the values with the number of the call.
        number: Of the tensor in its set.
        undo_index: The call whose values it has; 0: as drawn.
        apply_index: The call whose values it gets; 0: as drawn.
    """

def kept_calls(
    *,
    draws: bytes,
    set_count: int,
    keep_count: int,
    has_guests: bool,
    warmup_count: int,
    call_count: int,
) -> list[tuple[int, int]]:
    """Return (sample, set) of each call that a measurement of `call_count` calls keeps.

    Discarded samples are calls too. `draws` is what the file of random numbers holds.
    """

def same_bytes(a: int, b: int, size_bytes: int) -> bool:
    """Compare two ranges by address."""

def copy(to: int, from_: int, size_bytes: int) -> None:
    """Copy between addresses that do not overlap."""

def fill(address: int, size_bytes: int, byte: int) -> None:
    """Fill a range with one byte."""

def keep_memory() -> None:
    """Make malloc keep freed memory, as caching allocators do."""

def cache_bytes() -> int:
    """Return the size of the last-level cache."""

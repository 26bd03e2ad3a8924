"""Which register tile suits a product on a device: a model of where blocks leave it idle.

Its numbers order a few tiles; the measured time decides in the end.
"""

import itertools
from dataclasses import dataclass

_LANES = 128
"""Multiply-adds of a multiprocessor in one cycle."""

_ENOUGH_WARPS = 8
"""Warps of a multiprocessor that hide the latency of its arithmetic."""

_BLOCK_CYCLES = 2500
"""Start of a block, its first tile's way from memory, and its end."""

_SPLIT_CYCLES = 5000
"""A second kernel, and what it waits for."""

_ELEMENTS_PER_CYCLE = 400
"""Floats that the whole device moves between its cache and its registers in a cycle."""

SPLITS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A block's part of the product and a thread's part of that."""

    block_m: int
    block_n: int
    thread_m: int
    thread_n: int
    efficiency: float
    """Share of the peak when the device is full; wider tiles load less for each product."""
    resident: int
    """Blocks that fit a multiprocessor's registers."""

    @property
    def name(self) -> str:
        """The gene's value."""
        return f"{self.block_m}x{self.block_n}x{self.thread_m}x{self.thread_n}"

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return self.block_m * self.block_n // (self.thread_m * self.thread_n * 32)

    def divides(self, depth: int) -> bool:
        """Return whether every thread moves whole quads of a tile of this inner length."""
        return min(self.block_m, self.block_n) * depth % (4 * 32 * self.warps) == 0


def _tile(m: int, n: int, tm: int, tn: int, efficiency: float, resident: int) -> Tile:
    return Tile(
        block_m=m,
        block_n=n,
        thread_m=tm,
        thread_n=tn,
        efficiency=efficiency,
        resident=resident,
    )


TILES = (
    _tile(128, 128, 8, 8, 0.80, 2),
    _tile(64, 128, 8, 8, 0.74, 4),
    _tile(128, 64, 8, 8, 0.72, 4),
    _tile(64, 64, 8, 4, 0.62, 5),
    _tile(64, 64, 4, 4, 0.52, 3),
    _tile(32, 64, 4, 4, 0.45, 6),
    _tile(32, 32, 4, 4, 0.35, 12),
)


def best_first(
    rows: int, cols: int, depth: int, compute_units: int
) -> tuple[tuple[Tile, int], ...]:
    """Return every (tile, split of the inner dimension), the likely fastest first."""
    choices = itertools.product(TILES, SPLITS)
    return tuple(
        sorted(choices, key=lambda c: _cycles(c[0], c[1], rows, cols, depth, compute_units))
    )


def _cycles(tile: Tile, split: int, rows: int, cols: int, depth: int, compute_units: int) -> float:
    blocks = _up(rows, tile.block_m) * _up(cols, tile.block_n) * split
    on_unit = _up(blocks, compute_units)
    warps = min(on_unit, tile.resident) * tile.warps
    rate = _LANES * tile.efficiency * min(1.0, warps / _ENOUGH_WARPS)
    work = tile.block_m * tile.block_n * _up(depth, split)
    waves = _up(on_unit, tile.resident)
    cycles = on_unit * work / rate + waves * _BLOCK_CYCLES
    if split > 1:
        cycles += _SPLIT_CYCLES + 2 * split * rows * cols / _ELEMENTS_PER_CYCLE
    return cycles


def _up(count: int, size: int) -> int:
    return -(-count // size)

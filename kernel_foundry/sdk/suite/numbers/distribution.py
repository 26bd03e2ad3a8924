"""How many runs of a suite reach which speed-up."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_EDGES: Final = (0.5, 0.8, 1.0, 1.5, 2.0, 4.0, 10.0)
"""KernelBench's thresholds, and beyond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedupCount:
    """Runs whose speed-up is in one range."""

    label: str
    count: int


def speedup_counts(speedups: Sequence[float | None]) -> tuple[SpeedupCount, ...]:
    """Return how many of `speedups` are in each range, slowest first; None: nothing correct.

    A range holds its upper end, as fast_p counts what is above p.
    """
    bounds = (0.0, *_EDGES, float("inf"))
    labels = [
        "not solved",
        f"at most {_EDGES[0]:g}×",
        *(f"above {low:g}×, at most {high:g}×" for low, high in itertools.pairwise(_EDGES)),
        f"above {_EDGES[-1]:g}×",
    ]
    solved = [value for value in speedups if value is not None]
    counts = [
        len(speedups) - len(solved),
        *(sum(low < value <= high for value in solved) for low, high in itertools.pairwise(bounds)),
    ]
    return tuple(
        SpeedupCount(label=label, count=count) for label, count in zip(labels, counts, strict=True)
    )

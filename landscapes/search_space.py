"""A landscape made ready for searches, with a generator and an evaluator that answer from it.

The generator proposes only variants that are in the table, along the asked direction as the
built-in recipes do; the evaluator measures anew by resampling the raw times. docs/landscapes.md
says what they assume. For one seed every strategy meets the same seeds and the same measurements.
"""

import random
from dataclasses import dataclass
from typing import Final

import numpy as np

from archive_svc.search.selection import Choice
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.fitness import correct_fitness, failure_fitness
from kernel_foundry.domain.measures import DIMENSIONS, Cell, Measures
from kernel_foundry.domain.median import median_interval
from landscapes.landscape import Landscape, Variant, value_key

TWO_PARAMETERS: Final = 0.35
"""Share of mutations that change two parameters, as those of the recipes do."""

DIRECTION_SHARPNESS: Final = 1.5
"""How strongly a target cell pulls a mutation, as in the recipes; 0 would ignore it."""

_ORIGIN: Final = Measures(memory=0, algorithm=0, synchronization=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LandscapeVerdict:
    """What the evaluator says of a variant."""

    variant: Variant
    fitness: float
    """At the upper bound of the resampled median's interval."""
    optimistic: float
    """At its lower bound."""
    speedup: float | None
    """Yardstick over resampled median; None for what did not pass."""
    cell: Cell | None


class SearchSpace:
    """A landscape made ready for many searches; nothing in it changes."""

    def __init__(self, landscape: Landscape) -> None:
        self.landscape = landscape
        self.codes = _codes(landscape)
        """`(variant, parameter)` int32: position of each value among its parameter's."""
        self.cells = tuple(_cell(v) for v in landscape.variants)
        """Of each variant; None for a failed one whose measures are not known."""
        self.true_ns = np.array(
            [median_interval(v.times_ns)[0] if v.passed else np.inf for v in landscape.variants]
        )
        """`(variant,)` float64: median of all recorded samples; infinite for failed ones."""
        passed_ns = self.true_ns[np.isfinite(self.true_ns)]
        self.best_ns = float(passed_ns.min())
        self.baseline_ns = landscape.baseline_ns or float(np.median(passed_ns))
        self._levels = np.array([c or (-1,) * len(DIMENSIONS) for c in self.cells], dtype=np.int16)
        self._positions = {row.tobytes(): n for n, row in enumerate(self.codes)}

    def __len__(self) -> int:
        return len(self.landscape.variants)

    def position_of(self, codes: np.ndarray) -> int | None:
        """Return the variant with these codes, or None when it is not in the table."""
        return self._positions.get(codes.astype(np.int32).tobytes())

    def differing(self, variant: int) -> np.ndarray:
        """Return `(variant,)` int64: in how many parameters each differs from `variant`."""
        counts: np.ndarray = (self.codes != self.codes[variant]).sum(axis=1)
        return counts

    def pull(self, variants: np.ndarray, parent: int, target: Cell | None) -> np.ndarray:
        """Return `(variant,)` float64 weights, larger for variants near `target`.

        A variant of unknown measures counts as in its parent's cell: nothing says otherwise.
        """
        if target is None:
            return np.ones(len(variants))
        levels = self._levels[variants]
        known_parent = self._levels[parent] if self._levels[parent, 0] >= 0 else target
        levels = np.where(levels < 0, known_parent, levels)
        distance = np.abs(levels - np.array(target)).sum(axis=1)
        weights: np.ndarray = np.exp(-DIRECTION_SHARPNESS * distance / len(DIMENSIONS))
        return weights

    def true_fitness(self, variant: int) -> float:
        """Return the fitness of a correct variant at its recorded median."""
        return self.fitness_at(float(self.true_ns[variant]))

    def fitness_at(self, time_ns: float) -> float:
        """Return the fitness of a correct variant that takes `time_ns`."""
        return correct_fitness(self.baseline_ns / time_ns)


class LandscapeEvaluator:
    """Judges the variants of a space under one seed; asked twice it says the same.

    Args:
        space: The landscape.
        seed: Of the resampling. Each variant has a stream of its own, so that what a variant is
            measured to take does not depend on what was measured before it.
    """

    def __init__(self, space: SearchSpace, seed: int) -> None:
        self._world = space
        self._seed = seed
        self._judged: dict[int, LandscapeVerdict] = {}

    def evaluate(self, position: int) -> LandscapeVerdict:
        """Return the verdict on the variant at `position`."""
        if position not in self._judged:
            self._judged[position] = self._judge(position)
        return self._judged[position]

    def _judge(self, position: int) -> LandscapeVerdict:
        space = self._world
        variant = space.landscape.variants[position]
        cell = space.cells[position]
        if not variant.passed:
            worth = failure_fitness(variant.outcome)
            return LandscapeVerdict(
                variant=variant, fitness=worth, optimistic=worth, speedup=None, cell=cell
            )
        rng = random.Random(f"evaluation {self._seed} {position}")
        samples = tuple(rng.choices(variant.times_ns, k=len(variant.times_ns)))
        median_ns, (lower_ns, upper_ns) = median_interval(samples)
        return LandscapeVerdict(
            variant=variant,
            fitness=space.fitness_at(upper_ns),
            optimistic=space.fitness_at(lower_ns),
            speedup=space.baseline_ns / median_ns,
            cell=cell,
        )


class LandscapeGenerator:
    """Answers selections with variants of a space under one seed.

    Args:
        space: The landscape.
        seed: Of every random choice. Each proposal has a stream of its own by its number, and
            seeds have theirs by their count: strategies share what they ask for alike.
    """

    def __init__(self, space: SearchSpace, seed: int) -> None:
        self._world = space
        self._seed = seed
        self._seed_count = 0

    def propose(self, choice: Choice, number: int) -> int:
        """Return the variant that answers selection `number`; digests are positions as text."""
        if choice.operator is Operator.SEED or choice.parent is None:
            self._seed_count += 1
            rng = random.Random(f"seed {self._seed} {self._seed_count}")
            return rng.randrange(len(self._world))
        rng = random.Random(f"proposal {self._seed} {number}")
        parent = int(choice.parent)
        if choice.operator is Operator.COMBINE and choice.inspirations:
            child = self._combine(parent, int(choice.inspirations[0]), rng)
            if child is not None:
                return child
        return self._mutate(parent, choice.target, rng)

    def _combine(self, first: int, second: int, rng: random.Random) -> int | None:
        codes = self._world.codes
        takes_first = [rng.random() < 0.5 for _ in codes[first]]
        return self._world.position_of(np.where(takes_first, codes[first], codes[second]))

    def _mutate(self, parent: int, target: Cell | None, rng: random.Random) -> int:
        """Change one or two parameters; more only where constraints leave no such variant."""
        wanted = 2 if rng.random() < TWO_PARAMETERS else 1
        differing = self._world.differing(parent)
        counts = [wanted, *(n for n in range(1, self._world.codes.shape[1] + 1) if n != wanted)]
        for count in counts:
            near = np.flatnonzero(differing == count)
            if near.size:
                chances = self._world.pull(near, parent, target).cumsum()
                drawn = rng.random() * chances[-1]
                return int(near[min(int(np.searchsorted(chances, drawn)), near.size - 1)])
        return parent  # the only variant there is


def _codes(landscape: Landscape) -> np.ndarray:
    positions = [
        {value_key(value): n for n, value in enumerate(parameter.values)}
        for parameter in landscape.parameters
    ]
    rows = [
        [found[value_key(value)] for found, value in zip(positions, variant.values, strict=True)]
        for variant in landscape.variants
    ]
    return np.array(rows, dtype=np.int32)


def _cell(variant: Variant) -> Cell | None:
    if variant.measures is None and variant.passed:
        return _ORIGIN.cell
    return variant.measures.cell if variant.measures else None

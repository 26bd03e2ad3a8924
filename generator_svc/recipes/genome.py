"""Genomes: the choices of a recipe, written into the plan so that the next proposal can read them.

Knows the genes and how they move; not what they mean in code.
"""

import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernel_foundry.domain.measures import DIMENSIONS, Measures
from kernel_foundry.domain.steering import hinted_values

Genes = Mapping[str, str]

_LINE = re.compile(r"^# genome: (?P<family>\w+) (?P<genes>[\w= ]*)$", re.MULTILINE)

TWO_GENES = 0.35
"""Share of mutations that change two genes: some choices only pay together."""

FIRST_SHARE = 0.5
"""Share of random genomes that take a gene's first value untried, where it is the likely best."""

DIRECTION_SHARPNESS = 1.5
"""How strongly a target cell pulls; 0 ignores it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gene:
    """One choice: its name and values, the first proposal's first."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Genome:
    """A recipe family and a value for each of its genes."""

    family: str
    genes: tuple[tuple[str, str], ...]

    def __getitem__(self, name: str) -> str:
        return dict(self.genes)[name]

    def comment(self) -> str:
        """Return the line that carries the genome in a plan."""
        return f"# genome: {self.family} {' '.join(f'{k}={v}' for k, v in self.genes)}"

    def replaced(self, name: str, value: str) -> "Genome":
        """Return the genome with another value for one gene."""
        genes = tuple((k, value if k == name else v) for k, v in self.genes)
        return Genome(family=self.family, genes=genes)


def read_genome(plan: str, family: str, space: tuple[Gene, ...]) -> Genome | None:
    """Return the genome in a plan's text, or None when it has none of this space."""
    match = _LINE.search(plan)
    if match is None or match["family"] != family:
        return None
    pairs = [pair.partition("=") for pair in match["genes"].split()]
    genes = {name: value for name, _, value in pairs}
    if any(genes.get(g.name) not in g.values for g in space):
        return None
    return Genome(family=family, genes=tuple((g.name, genes[g.name]) for g in space))


def plain(family: str, space: tuple[Gene, ...]) -> Genome:
    """Return the first proposal's genome."""
    return Genome(family=family, genes=tuple((g.name, g.values[0]) for g in space))


def draw(
    family: str, space: tuple[Gene, ...], rng: random.Random, *, favours_first: bool = False
) -> Genome:
    """Return a random genome.

    Args:
        family: Of the recipe.
        space: Its genes.
        rng: Every random choice comes from here.
        favours_first: Half of the time a gene has its first value, with no draw.
    """

    def value(gene: Gene) -> str:
        is_first = favours_first and rng.random() < FIRST_SHARE
        return gene.values[0] if is_first else rng.choice(gene.values)

    return Genome(family=family, genes=tuple((g.name, value(g)) for g in space))


def mutate(
    genome: Genome,
    space: tuple[Gene, ...],
    normalised: Callable[[Genome], Genome],
    expected: "MeasureForecast",
    target: Measures | None,
    rng: random.Random,
) -> Genome:
    """Return a neighbour of `genome`, more likely one that is expected near `target`.

    Args:
        genome: The parent's.
        space: Its genes.
        normalised: Gives what a genome comes to; steps that come to nothing are not taken.
        expected: Where a genome will probably land in the archive.
        target: Cell to aim at, or None.
        rng: Every random choice comes from here.
    """
    neighbours = _neighbours(genome, space, normalised)
    if not neighbours:
        return genome
    (child,) = rng.choices(neighbours, [_pull(expected(n), target) for n in neighbours])
    if rng.random() < TWO_GENES:
        near = {genome, *neighbours}
        beyond = [n for n in _neighbours(child, space, normalised) if n not in near]
        child = rng.choice(beyond or [child])
    return child


def _neighbours(
    genome: Genome, space: tuple[Gene, ...], normalised: Callable[[Genome], Genome]
) -> list[Genome]:
    """Return what a change of one gene comes to, each once, without `genome` itself."""
    steps = (normalised(genome.replaced(g.name, value)) for g in space for value in g.values)
    return [step for step in dict.fromkeys(steps) if step != genome]


def asked_for(
    genome: Genome, space: tuple[Gene, ...], normalised: Callable[[Genome], Genome], words: str
) -> Genome:
    """Return `genome` with the values that a text asks for as NAME=VALUE; others stay."""
    asked = hinted_values(words)
    for gene in space:
        if asked.get(gene.name) in gene.values:
            genome = genome.replaced(gene.name, asked[gene.name])
    return normalised(genome) if asked else genome


def combine(first: Genome, second: Genome, rng: random.Random) -> Genome:
    """Return a genome that takes each gene from one of two parents."""
    return Genome(
        family=first.family,
        genes=tuple((k, rng.choice((v, second[k]))) for k, v in first.genes),
    )


class MeasureForecast:
    """Where genomes will probably land: a contribution of some gene values to each measure.

    Args:
        contributions: (gene, value) to (memory, algorithm, synchronization) levels; the
            expected level is the largest contribution.
    """

    def __init__(self, contributions: Mapping[tuple[str, str], tuple[int, int, int]]) -> None:
        self._contributions = contributions

    def __call__(self, genome: Genome) -> tuple[int, int, int]:
        """Return the expected cell of `genome`."""
        found = [self._contributions[g] for g in genome.genes if g in self._contributions]
        cell = [max((c[d] for c in found), default=0) for d in range(len(DIMENSIONS))]
        return (cell[0], cell[1], cell[2])


def _pull(cell: tuple[int, int, int], target: Measures | None) -> float:
    if target is None:
        return 1.0
    distance = sum(abs(a - b) for a, b in zip(cell, target.cell, strict=True))
    return math.exp(-DIRECTION_SHARPNESS * distance / len(DIMENSIONS))

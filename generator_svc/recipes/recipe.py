"""What a recipe is: genes, where they lead, and how a genome becomes text."""

from typing import Protocol

from generator_svc.recipes.genome import Expectation, Gene, Genome


class Recipe(Protocol):
    """One way to write kernels for a task."""

    @property
    def family(self) -> str:
        """Name in genomes."""
        ...

    @property
    def genes(self) -> tuple[Gene, ...]:
        """The choices."""
        ...

    @property
    def expected(self) -> Expectation:
        """Where genomes will probably land in the archive."""
        ...

    def normalised(self, genome: Genome) -> Genome:
        """Return `genome` with every choice that makes no difference at its plainest value."""
        ...

    def write(self, genome: Genome) -> tuple[str, str]:
        """Return (device code, plan)."""
        ...

"""What a recipe is: genes, where they lead, and how a genome becomes text."""

from typing import Protocol

from generator_svc.recipes.genome import Gene, Genome, MeasureForecast


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
    def expected(self) -> MeasureForecast:
        """Where genomes will probably land in the archive."""
        ...

    @property
    def favours_first(self) -> bool:
        """Whether the first values are the likely best, so that random genomes favour them."""
        ...

    def normalised(self, genome: Genome) -> Genome:
        """Return `genome` with every choice that makes no difference at its plainest value."""
        ...

    def write(self, genome: Genome) -> tuple[str, str]:
        """Return (device code, plan)."""
        ...

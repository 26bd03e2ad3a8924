"""The recipe of plain kernels: what to do with a graph that no other recipe covers."""

from generator_svc.recipes.genome import Gene, Genome, MeasureForecast
from generator_svc.recipes.plain.candidate_writer import Style, write_candidate
from generator_svc.recipes.plain.translation import Translation
from generator_svc.recipes.plan_text import default_first
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.language import Language

_FAMILY = "plain"

_BLOCKS = (256, 128, 512, 64)

_EXPECTED = MeasureForecast({("share", "suited"): (0, 1, 1), ("share", "always"): (0, 1, 1)})
"""A block that shares an element meets at barriers."""


class PlainRecipe:
    """Writes plain kernels for one task.

    Args:
        admission: The task.
        language: Of the kernels.

    Raises:
        RecipeUnsupported: an operator, a data type or a size is not covered.
    """

    def __init__(self, admission: Admission, language: Language) -> None:
        self._admission = admission
        self._language = language
        Translation(admission, is_fused=True)
        self.family: str = _FAMILY
        self.genes: tuple[Gene, ...] = (
            # Where threads of a block compute an element of a reduction together.
            Gene(name="share", values=("suited", "never", "always")),
            # Operations on elements as part of whoever reads them, or a kernel for each.
            Gene(name="fuse", values=("chains", "none")),
            Gene(name="block", values=tuple(str(block) for block in _BLOCKS)),
        )
        self.expected: MeasureForecast = _EXPECTED
        self.favours_first: bool = False

    def normalised(self, genome: Genome) -> Genome:
        """Return `genome`: every choice makes a difference."""
        return genome

    def write(self, genome: Genome) -> tuple[str, str]:
        """Return (device code, plan)."""
        program = Translation(self._admission, is_fused=genome["fuse"] == "chains").program
        blocks = tuple(default_first(int(genome["block"]), _BLOCKS))
        style = Style(share=genome["share"], blocks=blocks)
        return write_candidate(program.steps, self._language, style, genome.comment())

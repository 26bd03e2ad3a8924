"""The recipe of plain kernels: what to do with a graph that no other recipe covers."""

from generator_svc.recipes.genome import Gene, Genome, MeasureForecast
from generator_svc.recipes.plain.candidate_writer import Style, write_candidate
from generator_svc.recipes.plain.fixed_sizes import fixed_sizes
from generator_svc.recipes.plain.library_calls import calls_with_kernels
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
        library_ops: Library calls that the task allows, by their names in plans.

    Raises:
        RecipeUnsupported: an operator, a data type or a size is not covered.
    """

    def __init__(
        self, admission: Admission, language: Language, library_ops: tuple[str, ...] = ()
    ) -> None:
        self._admission = admission
        self._language = language
        Translation(admission, is_fused=True)
        self._library_ops = self._callable(library_ops)
        self.family: str = _FAMILY
        self.genes: tuple[Gene, ...] = (
            # Where threads of a block compute an element of a reduction together.
            Gene(name="share", values=("suited", "never", "always")),
            # Operations on elements as part of whoever reads them, or a kernel for each.
            Gene(name="fuse", values=("chains", "none")),
            Gene(name="block", values=tuple(str(block) for block in _BLOCKS)),
        )
        if self._library_ops:
            # Products, convolutions, pools and attention by the library, or by kernels too.
            self.genes = (Gene(name="library", values=("called", "never")), *self.genes)
        self.expected: MeasureForecast = _EXPECTED
        # The library's products are faster than plain ones at nearly all sizes.
        self.favours_first: bool = bool(self._library_ops)

    def normalised(self, genome: Genome) -> Genome:
        """Return `genome`: every choice makes a difference."""
        return genome

    def write(self, genome: Genome) -> tuple[str, str]:
        """Return (device code, plan)."""
        is_called = dict(genome.genes).get("library") == "called"
        program = Translation(
            self._admission,
            is_fused=genome["fuse"] == "chains",
            library_ops=self._library_ops if is_called else (),
        ).program
        blocks = tuple(default_first(int(genome["block"]), _BLOCKS))
        style = Style(share=genome["share"], blocks=blocks, joins_rows=genome["fuse"] == "chains")
        return write_candidate(
            program.steps,
            self._language,
            style,
            comment=genome.comment(),
            fixed=fixed_sizes(self._admission),
        )

    def _callable(self, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """Return the operators to call so that kernels have something to compute; empty: none.

        Pools are kernels where these would be left without work.
        """
        for names in (allowed, tuple(name for name in allowed if "_pool" not in name)):
            found = (
                Translation(self._admission, is_fused=True, library_ops=names) if names else None
            )
            if found and calls_with_kernels(found.program.steps):
                return names
        return ()

"""The CUDA recipe for pointwise chains, row reductions and normalisations."""

from generator_svc.recipes.cuda.flat_kernel import FlatKernel
from generator_svc.recipes.cuda.row_genes import FAMILY, expected, normalised, row_genes
from generator_svc.recipes.cuda.row_kernel import CudaRowKernel
from generator_svc.recipes.cuda.row_plan import flat_plan, row_plan
from generator_svc.recipes.genome import Gene, Genome, MeasureForecast
from generator_svc.recipes.graph_reader import ReferenceGraph
from generator_svc.recipes.row_program import translate_rows


class CudaRowRecipe:
    """Writes row kernels for one graph.

    Args:
        graph: The operators.

    Raises:
        RecipeUnsupported: an operator or shape is not covered.
    """

    def __init__(self, graph: ReferenceGraph) -> None:
        self._graph = graph
        program = translate_rows(graph, one_pass=False)
        one_pass = translate_rows(graph, one_pass=True, online=True)
        self._longest = program.longest_row(graph)
        self.family: str = FAMILY
        self.genes: tuple[Gene, ...] = row_genes(program, one_pass, self._longest)
        self.expected: MeasureForecast = expected(program)
        self.favours_first: bool = True

    def normalised(self, genome: Genome) -> Genome:
        """Return `genome` without choices that make no difference or cannot be."""
        return normalised(genome, self._longest)

    def write(self, genome: Genome) -> tuple[str, str]:
        """Return (device code, plan)."""
        is_joined = dict(genome.genes).get("moments") == "one_pass"
        program = translate_rows(self._graph, one_pass=is_joined, online=is_joined)
        if genome["who"] == "flat":
            flat = FlatKernel(program, genome)
            text = flat.text()
            return text, flat_plan(program, genome, tail=flat.has_tail)
        return CudaRowKernel(program, genome).text(), row_plan(program, genome)

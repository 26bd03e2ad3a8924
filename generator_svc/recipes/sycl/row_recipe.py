"""The recipe for pointwise chains, row reductions and normalisations."""

from generator_svc.recipes.genome import Gene, Genome, MeasureForecast
from generator_svc.recipes.graph_reader import ReferenceGraph
from generator_svc.recipes.row_program import translate_rows
from generator_svc.recipes.sycl.row_genes import EXPECTED, FAMILY, row_genes
from generator_svc.recipes.sycl.row_kernel import SyclRowKernel
from generator_svc.recipes.sycl.row_plan import row_plan


class SyclRowRecipe:
    """Writes row kernels for one graph.

    Args:
        graph: The operators.

    Raises:
        RecipeUnsupported: an operator or shape is not covered.
    """

    def __init__(self, graph: ReferenceGraph) -> None:
        self._graph = graph
        program = translate_rows(graph, one_pass=False)
        self.family: str = FAMILY
        self.genes: tuple[Gene, ...] = row_genes(program, translate_rows(graph, one_pass=True))
        self.expected: MeasureForecast = EXPECTED
        self.favours_first: bool = False

    def normalised(self, genome: Genome) -> Genome:
        """Return `genome` with every choice that makes no difference at its plainest value."""
        genes = dict(genome.genes)
        plainest = {gene.name: gene.values[0] for gene in self.genes}
        idle: list[str] = []
        if genes["who"] in ("item", "vector"):
            idle += ["sg", "rows"]
        if genes["who"] == "group":
            idle.append("rows")
        if genes["who"] == "vector":
            idle += ["loop", *(["erf"] if "erf" in genes else [])]
        else:
            # Streaming pays for whole cache lines only, which one store of a lane never is.
            idle.append("store")
        if genes["who"] == "item" and genes["loop"] == "masked":
            idle.append("loop")
        if genes["who"] != "vector" and genes["loop"] != "uniform":
            idle.append("unroll")
        for name in idle:
            genome = genome.replaced(name, plainest[name])
        return genome

    def write(self, genome: Genome) -> tuple[str, str]:
        """Return (device code, plan)."""
        one_pass = dict(genome.genes).get("moments") == "one_pass"
        program = translate_rows(self._graph, one_pass=one_pass)
        kernel = SyclRowKernel(program, genome)
        return kernel.text(), row_plan(program, genome, kernel)

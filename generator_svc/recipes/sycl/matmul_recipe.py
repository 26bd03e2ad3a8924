"""The recipe for a matrix product with a pointwise epilogue."""

from generator_svc.recipes.genome import Gene, Genome, MeasureForecast
from generator_svc.recipes.graph_reader import ReferenceGraph
from generator_svc.recipes.kernel_templates import kernel_text
from generator_svc.recipes.matmul_program import MatmulProgram, translate_matmul
from generator_svc.recipes.plan_text import default_first, plan_text
from generator_svc.recipes.sycl.matmul_epilogue import SyclEpilogue
from generator_svc.recipes.sycl.spelling import vector_types

KERNEL = "product_tiles"

_TILE = 16
"""Edge of a tile in local memory, in elements."""

_EXPECTED = MeasureForecast(
    {
        ("who", "item"): (0, 1, 0),
        ("who", "tile"): (2, 2, 1),
        ("who", "vector"): (0, 3, 0),
    }
)
"""As measured: register tiles of vectors stage nothing, and read the left operand row by row."""


class SyclMatmulRecipe:
    """Writes matrix products for one graph.

    Args:
        graph: The operators.

    Raises:
        RecipeUnsupported: no product, or an epilogue that is not pointwise.
    """

    def __init__(self, graph: ReferenceGraph) -> None:
        self._program = translate_matmul(graph)
        self.family: str = "matmul"
        self.genes: tuple[Gene, ...] = (
            # One work-item an element, tiles in local memory, or register tiles of vectors.
            Gene(name="who", values=("item", "tile", "vector")),
            Gene(name="tm", values=("4", "1", "2", "8")),
            Gene(name="tn", values=("2", "1", "4")),
            Gene(name="super", values=("8", "1", "16")),
            Gene(name="block", values=("16", "64", "8")),
        )
        self.expected: MeasureForecast = _EXPECTED
        self.favours_first: bool = False

    def normalised(self, genome: Genome) -> Genome:
        """Return `genome` with every choice that makes no difference at its plainest value."""
        used = {"item": {"block"}, "tile": set(), "vector": {"tm", "tn", "super"}}[genome["who"]]
        for gene in self.genes:
            if gene.name != "who" and gene.name not in used:
                genome = genome.replaced(gene.name, gene.values[0])
        return genome

    def write(self, genome: Genome) -> tuple[str, str]:
        """Return (device code, plan)."""
        program, who = self._program, genome["who"]
        epilogue = SyclEpilogue(program)
        tensors = [program.product.left, program.product.right, *epilogue.tensors]
        layout = "rows" if program.product.is_right_transposed else "columns"
        parameters = [f"const float* __restrict__ {t}_in" for t in tensors]
        parameters += [f"float* __restrict__ {program.output}_to", "int rows, int cols, int depth"]
        if who == "tile":
            parameters.append("sycl::local_accessor<float, 1> staged")
        style = f"vector_{layout}" if who == "vector" else who
        text = kernel_text(
            f"sycl/kernels/product_{style}.cpp",
            parameters=", ".join(parameters),
            left=f"{program.product.left}_in",
            right=f"{program.product.right}_in",
            right_at="n * depth + k" if program.product.is_right_transposed else "k * cols + n",
            out=f"{program.output}_to",
            epilogue=epilogue.function,
            call=epilogue.call,
        )
        vectors = vector_types() if who == "vector" else ""
        return vectors + text, _plan(program, genome, tensors, layout)


def _plan(program: MatmulProgram, genome: Genome, tensors: list[str], layout: str) -> str:
    left, right, who = program.product.left, program.product.right, genome["who"]
    arguments = [*tensors, program.output, "rows", "cols", "depth"]
    if who == "item":
        tune = {"BLOCK": default_first(int(genome["block"]), (8, 16, 64))}
        launch = ["grid = cdiv(rows * cols, BLOCK)", "block = BLOCK"]
    elif who == "tile":
        tune = {"TILE": [_TILE, 8]}
        launch = ["grid = (cdiv(cols, TILE), cdiv(rows, TILE))", "block = (TILE, TILE)"]
        arguments.append("local(2 * TILE * TILE, float32)")
    else:
        tune = {
            "TM": default_first(int(genome["tm"]), (1, 2, 4, 8)),
            "TN": default_first(int(genome["tn"]), (1, 2, 4)),
            "SUPER": default_first(int(genome["super"]), (1, 8, 16)),
        }
        width = "TN" if layout == "rows" else "TN * 16"
        launch = [
            "tiles_m = cdiv(cdiv(rows, TM), SUPER) * SUPER",
            f"tiles_n = cdiv(cdiv(cols, {width}), SUPER) * SUPER",
            "grid = tiles_m * tiles_n",
            "block = 1",
        ]
    shape = f"{right}.shape[0]" if program.product.is_right_transposed else f"{right}.shape[1]"
    return plan_text(
        genome,
        tune=tune,
        names=[*tensors, program.output],
        launch=[
            f"depth = {left}.shape[-1]",
            f"rows = {left}.numel() // depth",
            f"cols = {shape}",
            *launch,
            f"{KERNEL}[grid, block]({', '.join(arguments)})",
        ],
    )

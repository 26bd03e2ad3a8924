"""The recipe for a matrix product with a pointwise epilogue."""

from generator_svc.recipes.genome import Gene, Genome, MeasureForecast
from generator_svc.recipes.graph_reader import ReferenceGraph
from generator_svc.recipes.kernel_templates import kernel_text
from generator_svc.recipes.matmul_program import MatmulProgram, translate_matmul
from generator_svc.recipes.plan_text import default_first, plan_text
from generator_svc.recipes.sycl.matmul_epilogue import SyclEpilogue

KERNEL = "product_tiles"

_TILE = 16
"""Edge of a tile in local memory, in elements."""

_EXPECTED = MeasureForecast(
    {
        ("who", "item"): (0, 1, 0),
        ("who", "tile"): (2, 2, 1),
        ("who", "vector"): (1, 3, 0),
    }
)
"""As measured: register tiles over packed panels stage nothing, and read whole vectors."""


class SyclMatmulRecipe:
    """Writes matrix products for one graph.

    Args:
        graph: The operators.

    Raises:
        RecipeUnsupported: no product, or an epilogue that is not pointwise.
    """

    def __init__(self, graph: ReferenceGraph) -> None:
        self._program = translate_matmul(graph)
        self._is_weight = self._program.product.right in graph.parameters
        self.family: str = "matmul"
        self.genes: tuple[Gene, ...] = (
            # One work-item an element, tiles in local memory, or register tiles of vectors.
            Gene(name="who", values=("item", "tile", "vector")),
            Gene(name="tm", values=("8", "4", "6", "12")),
            Gene(name="tn", values=("3", "1", "2", "4")),
            Gene(name="rows", values=("96", "48", "240")),
            Gene(name="block", values=("16", "64", "8")),
        )
        self.expected: MeasureForecast = _EXPECTED
        self.favours_first: bool = False

    def normalised(self, genome: Genome) -> Genome:
        """Return `genome` with every choice that makes no difference at its plainest value."""
        used = {"item": {"block"}, "tile": set(), "vector": {"tm", "tn", "rows"}}[genome["who"]]
        for gene in self.genes:
            if gene.name != "who" and gene.name not in used:
                genome = genome.replaced(gene.name, gene.values[0])
        return genome

    def write(self, genome: Genome) -> tuple[str, str]:
        """Return (device code, plan)."""
        program, who = self._program, genome["who"]
        is_vector = who == "vector"
        epilogue = SyclEpilogue(program, is_vector=is_vector)
        tensors = [program.product.left, program.product.right, *epilogue.tensors]
        parameters = [f"const float* __restrict__ {t}_in" for t in tensors]
        parameters += [f"float* __restrict__ {program.output}_to", "int rows, int cols, int depth"]
        if who == "tile":
            parameters.append("sycl::local_accessor<float, 1> staged")
        text = kernel_text(
            f"sycl/kernels/product_{who}.cpp",
            parameters=", ".join(parameters),
            left=f"{program.product.left}_in",
            right=f"{program.product.right}_in",
            right_at="n * depth + k" if program.product.is_right_transposed else "k * cols + n",
            layout="NK" if program.product.is_right_transposed else "KN",
            out=f"{program.output}_to",
            epilogue=epilogue.function,
            call=epilogue.call,
        )
        return text, _plan(program, genome, tensors, is_weight=self._is_weight)


def _plan(program: MatmulProgram, genome: Genome, tensors: list[str], *, is_weight: bool) -> str:
    left, right, who = program.product.left, program.product.right, genome["who"]
    arguments = [*tensors, program.output, "rows", "cols", "depth"]
    names, prepare = [*tensors, program.output], []
    cols, depth = ("0", "1") if program.product.is_right_transposed else ("1", "0")
    sizes = [f"cols = {right}.shape[{cols}]", f"depth = {right}.shape[{depth}]"]
    if who == "item":
        tune = {"BLOCK": default_first(int(genome["block"]), (8, 16, 64))}
        launch = ["grid = cdiv(rows * cols, BLOCK)", "block = BLOCK"]
    elif who == "tile":
        tune = {"TILE": [_TILE, 8]}
        launch = ["grid = (cdiv(cols, TILE), cdiv(rows, TILE))", "block = (TILE, TILE)"]
        arguments.append("local(2 * TILE * TILE, float32)")
    else:
        tune = {
            "TM": default_first(int(genome["tm"]), (4, 6, 8, 12)),
            "TN": default_first(int(genome["tn"]), (1, 2, 3, 4)),
            "BLOCK": default_first(int(genome["rows"]), (48, 96, 240)),
        }
        launch = ["grid = cdiv(rows, BLOCK) * cdiv(cols, 16 * TN)", "block = 1"]
        arguments[1] = "panels"
        pack = [
            'panels = empty((depth, cols), "float32")',
            f"pack_panels[cdiv(cols, 16 * TN), 1]({right}, panels, cols, depth)",
        ]
        if is_weight:
            prepare = [f"def prepare({right}):", *(f"    {line}" for line in (*sizes, *pack))]
            names.append("panels")
        else:
            launch += pack
    text = plan_text(
        genome,
        tune=tune,
        names=names,
        launch=[
            *sizes,
            f"rows = {left}.numel() // depth",
            *launch,
            f"{KERNEL}[grid, block]({', '.join(arguments)})",
        ],
    )
    return text + "".join(f"{line}\n" for line in ("", "", *prepare)) if prepare else text

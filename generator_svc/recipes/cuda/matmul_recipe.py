"""The CUDA recipe for a matrix product with a pointwise epilogue."""

from generator_svc.recipes.cpp_operations import USES_ERF, USES_EXP
from generator_svc.recipes.cuda import matmul_tiles as tiles
from generator_svc.recipes.cuda.matmul_epilogue import CudaEpilogue
from generator_svc.recipes.cuda.matmul_plan import matmul_plan
from generator_svc.recipes.cuda.spelling import cuda_spelling, memory_functions
from generator_svc.recipes.expression import operations
from generator_svc.recipes.genome import Gene, Genome, MeasureForecast
from generator_svc.recipes.graph_reader import ReferenceGraph
from generator_svc.recipes.kernel_templates import kernel_text
from generator_svc.recipes.matmul_program import MatmulProgram, translate_matmul

_EXPECTED = MeasureForecast(
    {
        ("who", "tiles"): (3, 3, 1),
        ("who", "shared"): (2, 2, 1),
        ("split", "2"): (0, 0, 3),
        ("split", "4"): (0, 0, 3),
        ("split", "8"): (0, 0, 3),
    }
)

_USED = {
    "tiles": {"tile", "split", "bk", "copy", "group", "resident"},
    "shared": set[str](),
    "item": {"block"},
}
"""Genes that make a difference, by who computes an element; those of the epilogue always do."""


class CudaMatmulRecipe:
    """Writes matrix products for one graph.

    Args:
        graph: The operators.
        compute_units: Of the device: how many blocks it takes to fill it.

    Raises:
        RecipeUnsupported: no product, or an epilogue that is not pointwise.
    """

    def __init__(self, graph: ReferenceGraph, *, compute_units: int) -> None:
        self._program = translate_matmul(graph)
        choices = tiles.best_first(*_largest(self._program, graph), compute_units)
        tile_names = dict.fromkeys(tile.name for tile, _ in choices)
        splits = dict.fromkeys(str(split) for _, split in choices)
        used = operations((self._program.value,))
        genes = [
            # Register tiles, tiles in shared memory, or one thread an element.
            Gene(name="who", values=("tiles", "shared", "item")),
            Gene(name="tile", values=tuple(tile_names)),
            Gene(name="split", values=tuple(splits)),
            Gene(name="bk", values=("16", "8", "32")),
            # The next tile's way: through registers, or copied past them.
            Gene(name="copy", values=("registers", "async")),
            Gene(name="group", values=("8", "1")),
            Gene(name="resident", values=("2", "1")),
            Gene(name="block", values=("128", "256", "512")),
        ]
        if used & USES_EXP:
            genes.append(Gene(name="exp", values=("library", "fast")))
        if used & USES_ERF:
            genes.append(Gene(name="erf", values=("library", "polynomial")))
        self.family: str = "matmul_cuda"
        self.genes: tuple[Gene, ...] = tuple(genes)
        self.expected: MeasureForecast = _EXPECTED
        self.favours_first: bool = True

    def normalised(self, genome: Genome) -> Genome:
        """Return `genome` without choices that make no difference or cannot be."""
        used = _USED[genome["who"]] | {"who", "exp", "erf"}
        for gene in self.genes:
            if gene.name not in used:
                genome = genome.replaced(gene.name, gene.values[0])
        if genome["who"] != "tiles":
            return genome.replaced("split", "1")
        (tile,) = [tile for tile in tiles.TILES if tile.name == genome["tile"]]
        if not tile.divides(int(genome["bk"])):
            return genome.replaced("bk", "16")
        if genome["bk"] == "32" and tile.resident <= 2:
            return genome.replaced("resident", "1")  # two would not have the registers
        return genome

    def write(self, genome: Genome) -> tuple[str, str]:
        """Return (device code, plan)."""
        program = self._program
        epilogue = CudaEpilogue(program, cuda_spelling(dict(genome.genes)))
        tensors = (program.product.left, program.product.right, *epilogue.tensors)
        is_split = genome["who"] == "tiles" and genome["split"] != "1"
        values = _values(program, epilogue, is_split=is_split)
        text = memory_functions(streaming=False) + epilogue.function
        text += kernel_text(f"cuda/kernels/product_{_style(genome)}.cu", **values)
        if is_split:
            text += kernel_text("cuda/kernels/sum_parts.cu", **values)
        return text, matmul_plan(program, genome, tensors)


def _style(genome: Genome) -> str:
    return "tiles_async" if genome["copy"] == "async" else genome["who"]


def _values(program: MatmulProgram, epilogue: CudaEpilogue, *, is_split: bool) -> dict[str, object]:
    """Return what the templates' names stand for.

    Args:
        program: The product.
        epilogue: What is done to each element.
        is_split: Blocks write parts of the product, which a second kernel adds.
    """
    product, out = program.product, f"{program.output}_to"
    is_along = product.is_right_transposed
    operands = (
        f"const float* __restrict__ {product.left}_in, const float* __restrict__ {product.right}_in"
    )
    target = f"float* __restrict__ {out}"
    return {
        "is_split": is_split,
        "parameters": f"{operands}, float* __restrict__ parts"
        if is_split
        else f"{operands}{epilogue.parameters},\n    {target}",
        "sum_parameters": f"const float* __restrict__ parts{epilogue.parameters},\n    {target}",
        "call": f", {out}{epilogue.call}",
        "left": f"{product.left}_in",
        "right": f"{product.right}_in",
        "right_kind": "Along" if is_along else "Across",
        "right_at": "(size_t)n * DEPTH + k" if is_along else "(size_t)k * COLS + n",
        # Threads beside each other read what lies beside each other.
        "staged_n": "blockIdx.x * TILE + y" if is_along else "column",
        "staged_k": "base + x" if is_along else "base + y",
    }


def _largest(program: MatmulProgram, graph: ReferenceGraph) -> tuple[int, int, int]:
    """Return (rows, columns, depth) of the workload with the most work."""
    sizes = []
    for shapes in graph.workload_shapes:
        left, right = shapes[program.product.left], shapes[program.product.right]
        rows, depth = 1, left[-1]
        for size in left[:-1]:
            rows *= size
        sizes.append((rows, right[0] if program.product.is_right_transposed else right[1], depth))
    return max(sizes, key=lambda s: s[0] * s[1] * s[2])

"""The genes of CUDA row recipes, the likely best first, and what they are expected to measure."""

from generator_svc.recipes.cpp_operations import USES_ERF, USES_EXP
from generator_svc.recipes.cuda.flat_kernel import is_flat
from generator_svc.recipes.expression import Load, operations
from generator_svc.recipes.genome import Gene, Genome, MeasureForecast
from generator_svc.recipes.row_program import RowProgram
from generator_svc.recipes.row_schedule import schedule

FAMILY = "rows_cuda"

LONGEST_ROW_OF_A_WARP = 1024
"""Up to here a row is best shared by a warp: 32 elements a lane, and no barrier."""

LONGEST_KEPT = {"thread": 0, "warp": 2048, "block": 32768}
"""Longest row that fits the registers of who shares it: 64 elements a lane, 32 of 1024 threads."""

LONGEST_SHARED = 49152
"""Longest row that is kept in a block's shared memory (192 of 227 KiB)."""

_EXPECTED = {
    ("who", "flat"): (1, 1, 0),
    ("who", "block"): (1, 2, 0),
    ("who", "warp"): (1, 2, 0),
    ("team", "shuffle"): (0, 0, 2),
    ("team", "tree"): (0, 0, 1),
    ("width", "4"): (1, 0, 0),
    ("width", "2"): (1, 0, 0),
    ("moments", "one_pass"): (0, 2, 0),
}


def expected(program: RowProgram) -> MeasureForecast:
    """Return what genomes for `program` are expected to measure."""
    passes = schedule(program, keep=True, keep_loads=True)
    # Only what was read and not computed counts as staged.
    stages = any(isinstance(p.keeps, Load) for p in passes)
    return MeasureForecast({**_EXPECTED, ("keep", "shared"): (2 if stages else 1, 0, 0)})


def row_genes(program: RowProgram, one_pass: RowProgram, longest: int) -> tuple[Gene, ...]:
    """Return the genes that make a difference for `program`.

    Args:
        program: The reference as rows.
        one_pass: The same with moments and exponentials taken in one pass.
        longest: Length of the longest row of any workload.
    """
    used = operations(program.values)
    has_reductions = bool(used & {"sum", "max", "min"})
    is_streamed = longest > LONGEST_KEPT["block"]
    genes = [
        Gene(name="who", values=_who(program, longest)),
        # Floats of one access to memory, and accesses that are on their way together.
        Gene(name="width", values=("4", "2", "1")),
        Gene(name="unroll", values=("4", "2", "1", "8")),
        Gene(name="block", values=("256", "128", "512", "1024")),
        # Whether what is not needed again leaves the caches first.
        Gene(name="cache", values=("streaming", "plain")),
    ]
    if has_reductions:
        keeps = ("nothing", "shared") if is_streamed else ("registers", "shared", "nothing")
        genes.append(Gene(name="keep", values=keeps))
        # How the threads of a row reduce: warps and then a block, a tree of barriers, or not.
        genes.append(Gene(name="team", values=("shuffle", "tree", "none")))
    if operations(one_pass.values) != used:
        values = ("one_pass", "two_pass") if is_streamed else ("two_pass", "one_pass")
        genes.append(Gene(name="moments", values=values))
    if used & USES_EXP:
        genes.append(Gene(name="exp", values=("library", "fast")))
    if used & USES_ERF:
        genes.append(Gene(name="erf", values=("library", "polynomial")))
    return tuple(genes)


def normalised(genome: Genome, longest: int) -> Genome:
    """Return `genome` with choices that make no difference, or cannot be, made others."""
    who, keep = genome["who"], dict(genome.genes).get("keep")
    team = dict(genome.genes).get("team")
    if keep == "registers" and longest > LONGEST_KEPT.get(who, 0):
        genome = genome.replaced("keep", "nothing")
    if keep == "shared" and (who != "block" or longest > LONGEST_SHARED):
        genome = genome.replaced("keep", "nothing")
    if who in ("thread", "flat"):
        genome = genome.replaced("team", "none")
    elif who == "warp" or team == "none":
        genome = genome.replaced("team", "shuffle")
    if who == "thread":
        genome = genome.replaced("cache", "plain")
    return genome


def _who(program: RowProgram, longest: int) -> tuple[str, ...]:
    rows = ("block", "warp", "thread") if longest > LONGEST_ROW_OF_A_WARP else (
        "warp", "block", "thread"
    )  # fmt: skip
    return ("flat", *rows) if is_flat(program) else rows

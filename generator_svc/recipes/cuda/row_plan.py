"""Writes the launch plans of CUDA row kernels; sizes are constants of each workload."""

from generator_svc.recipes.cuda import flat_kernel, row_kernel
from generator_svc.recipes.genome import Genome
from generator_svc.recipes.plan_text import default_first, plan_text
from generator_svc.recipes.row_program import RowProgram

_BLOCKS = (128, 256, 512, 1024)
_UNROLLS = (1, 2, 4, 8)
_WIDTHS = (4, 2, 1)

_MOST_KEPT = 16
"""Elements of a row that a thread keeps in registers before the block grows."""

_TEAMS = {
    "thread": "1",
    "warp": "min(32, next_pow2(cdiv(COLS, VEC)))",
    "block": "max(32, min(BLOCK, next_pow2(cdiv(COLS, VEC))))",
    "kept": "max(32, min(BLOCK, next_pow2(cdiv(COLS, VEC))), "
    f"min(1024, next_pow2(cdiv(COLS, {_MOST_KEPT}))))",
}
"""Threads that share a row, by who shares it; a block keeps registers free for its row."""


def row_plan(program: RowProgram, genome: Genome) -> str:
    """Return the plan of a row kernel; the genome's numbers are the defaults of TUNE."""
    genes, full = dict(genome.genes), program.full_tensor
    who, keep = genes["who"], genes.get("keep", "nothing")
    team = _TEAMS["kept" if who == "block" and keep == "registers" else who]
    constants = {
        "COLS": f"{full}.shape[-1]",
        "VEC": f"WIDTH if {full}.shape[-1] % WIDTH == 0 else 1",
        "TEAM": team,
        "ROWS": "1" if who == "block" else "max(1, BLOCK // TEAM)",
    }
    outputs = [name for name, _ in program.outputs]
    grid, shared = ("rows" if who == "block" else "cdiv(rows, ROWS)"), ""
    if keep == "shared":
        shared = ", cdiv(COLS, TEAM * VEC * UNROLL) * TEAM * VEC * UNROLL * 4"
    launch = [
        f"rows = {full}.numel() // COLS",
        f"{row_kernel.KERNEL}[{grid}, TEAM * ROWS{shared}]"
        f"({', '.join([*program.tensors, *outputs, 'rows'])})",
    ]
    return plan_text(
        genome,
        tune=_tune(genome),
        constants=constants,
        names=[*program.tensors, full, *outputs],
        launch=launch,
        words="A block shares a row." if who == "block" else "TEAM threads share a row.",
    )


def flat_plan(program: RowProgram, genome: Genome, *, tail: bool) -> str:
    """Return the plan of a flat kernel; the genome's numbers are the defaults of TUNE."""
    full = program.full_tensor
    outputs = [name for name, _ in program.outputs]
    if tail:
        constants = {"VEC": "WIDTH", "TAIL": f"{full}.numel() % WIDTH"}
    else:
        constants = {
            "COLS": f"{full}.shape[-1]",
            "VEC": f"WIDTH if {full}.shape[-1] % WIDTH == 0 else 1",
        }
    launch = [
        f"packs = {full}.numel() // VEC",
        "blocks = max(1, cdiv(packs, BLOCK * UNROLL))",
        f"{flat_kernel.KERNEL}[blocks, BLOCK]({', '.join([*program.tensors, *outputs, 'packs'])})",
    ]
    return plan_text(
        genome,
        tune=_tune(genome),
        constants=constants,
        names=[*program.tensors, full, *outputs],
        launch=launch,
        words="UNROLL packs of VEC elements for each thread.",
    )


def _tune(genome: Genome) -> dict[str, list[int]]:
    return {
        "BLOCK": default_first(int(genome["block"]), _BLOCKS),
        "WIDTH": default_first(int(genome["width"]), _WIDTHS),
        "UNROLL": default_first(int(genome["unroll"]), _UNROLLS),
    }

"""Writes the launch plans of CUDA matrix products; sizes are constants of each workload."""

from generator_svc.recipes.genome import Genome
from generator_svc.recipes.matmul_program import MatmulProgram
from generator_svc.recipes.plan_text import default_first, plan_text

KERNEL = "product_tiles"

SUM_KERNEL = "sum_parts"

_BYTES = "STAGES * BK * (BM + BN + 8) * 4"

_WHERE = (
    "BM % (4 * TM) == 0 and BN % (8 * TN) == 0",
    "64 <= BM * BN // (TM * TN) <= 512",
    "BM * BK % (4 * (BM * BN // (TM * TN))) == 0",
    "BN * BK % (4 * (BM * BN // (TM * TN))) == 0",
    f"RESIDENT * ({_BYTES} + 1024) <= 232448",
    # Registers: the sums, the fragments, and as much again for what is on its way and addresses.
    "RESIDENT * (BM * BN // (TM * TN)) * (TM * TN + 2 * (TM + TN) + 32) <= 65536",
)
"""Tiles that divide evenly among warps and threads and fit shared memory and registers."""


def matmul_plan(program: MatmulProgram, genome: Genome, tensors: tuple[str, ...]) -> str:
    """Return the plan; the genome's numbers are the defaults of TUNE.

    Args:
        program: The product.
        genome: Its style.
        tensors: What the kernel reads, in order of its parameters.
    """
    left, right = program.product.left, program.product.right
    shape = f"{right}.shape[{0 if program.product.is_right_transposed else 1}]"
    constants = {
        "DEPTH": f"{left}.shape[-1]",
        "ROWS": f"{left}.numel() // {left}.shape[-1]",
        "COLS": shape,
    }
    arguments = ", ".join([*tensors, program.output])
    who = genome["who"]
    where: tuple[str, ...] = ()
    tune: dict[str, list[int]]
    if who == "item":
        tune = {"BLOCK": default_first(int(genome["block"]), (128, 256, 512))}
        constants["VEC"] = "1"
        launch = [f"{KERNEL}[cdiv(ROWS * COLS, BLOCK), BLOCK]({arguments})"]
    elif who == "shared":
        tune = {"TILE": [32, 16]}
        constants["VEC"] = "1"
        grid = "(cdiv(COLS, TILE), cdiv(ROWS, TILE))"
        launch = [
            "require(cdiv(ROWS, TILE) <= 65535)",
            f"{KERNEL}[{grid}, (TILE, TILE)]({arguments})",
        ]
    else:
        tune, launch, where = _tiles(genome, tensors, program.output, constants)
    return plan_text(
        genome,
        tune=tune,
        constants=constants,
        where=where,
        names=[*tensors, program.output],
        launch=launch,
    )


def _tiles(
    genome: Genome, tensors: tuple[str, ...], output: str, constants: dict[str, str]
) -> tuple[dict[str, list[int]], list[str], tuple[str, ...]]:
    """Return (TUNE, launches, WHERE) of register tiles; add their constants."""
    block_m, block_n, thread_m, thread_n = map(int, genome["tile"].split("x"))
    split = int(genome["split"])
    tune = {
        "BM": default_first(block_m, (128, 64, 32)),
        "BN": default_first(block_n, (128, 64)),
        "BK": default_first(int(genome["bk"]), (16, 8, 32)),
        "TM": default_first(thread_m, (8, 4)),
        "TN": default_first(thread_n, (8, 4)),
        "GROUP": default_first(int(genome["group"]), (8, 1)),
        "RESIDENT": default_first(int(genome["resident"]), (2, 1)),
        "STAGES": [3, 2, 4] if genome["copy"] == "async" else [2],
    }
    constants["VEC"] = "4 if COLS % 4 == 0 else 1"
    constants["THREADS"] = "BM * BN // (TM * TN)"
    blocks = "cdiv(ROWS, BM) * cdiv(COLS, BN)"
    operands = ", ".join(tensors[:2])
    shared = f"shared_bytes = {_BYTES}"
    if split == 1:
        constants["SPLIT"] = "1"
        arguments = ", ".join([*tensors, output])
        launch = [shared, f"{KERNEL}[{blocks}, THREADS, shared_bytes]({arguments})"]
        return tune, launch, _WHERE
    tune["SPLIT"] = default_first(split, (2, 4, 8))
    finish = ", ".join(["parts", *tensors[2:], output])
    launch = [
        shared,
        "parts = empty((SPLIT, ROWS, COLS), float32)",
        f"{KERNEL}[({blocks}, SPLIT), THREADS, shared_bytes]({operands}, parts)",
        f"{SUM_KERNEL}[cdiv(ROWS * COLS, 256 * VEC), 256]({finish})",
    ]
    return tune, launch, _WHERE

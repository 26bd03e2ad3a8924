"""Writes the launch plan of a row kernel."""

from generator_svc.recipes.genome import Genome
from generator_svc.recipes.plan_text import default_first, plan_text
from generator_svc.recipes.row_program import RowProgram
from generator_svc.recipes.sycl.row_kernel import KERNEL, SyclRowKernel

_BLOCKS = (256, 128, 512, 64)


def row_plan(program: RowProgram, genome: Genome, kernel: SyclRowKernel) -> str:
    """Return the plan's text; the genome's numbers are the defaults of TUNE."""
    genes = dict(genome.genes)
    who = genes["who"]
    tune: dict[str, list[int]] = {}
    if who in ("group", "sub_group"):
        tune["SG"] = default_first(int(genes["sg"]), (8, 16, 32))
    if genes["loop"] == "uniform" or who == "vector":
        tune["UNROLL"] = default_first(int(genes["unroll"]), (1, 2, 4, 8))
    if who == "sub_group":
        tune["ROWS"] = default_first(int(genes["rows"]), (1, 2, 4))
    elif who == "group":
        tune["BLOCK"] = list(_BLOCKS)
    elif who == "item":
        tune["BLOCK"] = [16, 1, 64]
    constants = {"COLS": f"{program.full_tensor}.shape[-1]"}
    outputs = [name for name, _ in program.outputs]
    return plan_text(
        genome,
        tune=tune,
        constants=constants if genes.get("keep") == "private" else None,
        names=[*program.tensors, program.full_tensor, *outputs],
        launch=_launch(program, who, kernel),
        words=f"One {who.replace('_', '-')} a row.",
    )


def _launch(program: RowProgram, who: str, kernel: SyclRowKernel) -> list[str]:
    grid, block, held = {
        "item": ("cdiv(rows, BLOCK)", "BLOCK", "BLOCK"),
        "vector": ("rows", "1", "1"),
        "group": ("rows", "BLOCK", "1"),
        "sub_group": ("cdiv(rows, ROWS)", "SG * ROWS", "ROWS"),
    }[who]
    arguments = [*program.tensors, *(name for name, _ in program.outputs), "rows", "cols"]
    lines = [
        f"cols = {program.full_tensor}.shape[-1]",
        f"rows = {program.full_tensor}.numel() // cols",
    ]
    if kernel.uses_local:
        lines.append(f"require({held} * cols * 4 <= device.shared_bytes)")
        arguments.append(f"local({held} * cols, float32)")
    lines.append(f"{KERNEL}[{grid}, {block}]({', '.join(arguments)})")
    return lines

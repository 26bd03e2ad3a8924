"""The genes of row recipes and what they are expected to measure."""

from generator_svc.recipes.cpp_operations import USES_ERF, USES_EXP
from generator_svc.recipes.expression import Extent, operations
from generator_svc.recipes.genome import Gene, MeasureForecast
from generator_svc.recipes.row_program import RowProgram

FAMILY = "rows"

EXPECTED = MeasureForecast(
    {
        ("who", "vector"): (1, 0, 0),
        ("who", "group"): (1, 2, 1),
        ("who", "sub_group"): (1, 2, 2),
        ("moments", "one_pass"): (0, 1, 0),
    }
)
"""As measured: what is kept in local memory was computed, so no global data is staged there."""


def row_genes(program: RowProgram, one_pass: RowProgram) -> tuple[Gene, ...]:
    """Return the genes that make a difference for `program`.

    Args:
        program: The reference as rows.
        one_pass: The same with moments taken in one pass.
    """
    used = operations(program.values)
    genes = [
        # A row for one work-item, one with explicit vectors, a work-group or a sub-group.
        Gene(name="who", values=("item", "vector", "group", "sub_group")),
        # The counter starts at the lane; every access is masked; uniform with a masked tail.
        Gene(name="loop", values=("lane", "masked", "uniform")),
        Gene(name="unroll", values=("1", "2", "4", "8")),
        Gene(name="sg", values=("16", "32", "8")),
        Gene(name="rows", values=("1", "2", "4")),
        Gene(name="store", values=("plain", "streaming")),
    ]
    if used & {"sum", "max", "min"} and program.outputs[0][1].extent is Extent.FULL:
        # What is computed in one pass and needed in the next: again, or from where it was put.
        genes.append(Gene(name="keep", values=("nothing", "output", "local", "private")))
    elif used & {"sum", "max", "min"}:
        genes.append(Gene(name="keep", values=("nothing", "local", "private")))
    if operations(one_pass.values) != used:
        genes.append(Gene(name="moments", values=("two_pass", "one_pass")))
    if used & USES_EXP:
        genes.append(Gene(name="exp", values=("library", "polynomial")))
    if used & USES_ERF:
        genes.append(Gene(name="erf", values=("library", "polynomial")))
    return tuple(genes)

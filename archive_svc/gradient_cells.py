"""The gradient field as the port gives it out: arrays in, one record for each cell out."""

from collections.abc import Iterator

from archive_svc.gradient import POSITIONS, GradientField
from archive_svc.island_state import IslandState
from archive_svc.run_archive import RunArchive
from kernel_foundry.domain.gradient import Direction, GradientCell
from kernel_foundry.domain.measures import Cell


def gradient_cells(run: RunArchive) -> Iterator[GradientCell]:
    """Yield all cells of the first island, then of the next."""
    for island in run.islands:
        yield from _cells_of(island, run.field(island))


def _cells_of(island: IslandState, field: GradientField) -> Iterator[GradientCell]:
    elites = {entry.cell: entry.digest for entry in island.grid.elites()}
    for index, position in enumerate(POSITIONS.astype(int).tolist()):
        cell: Cell = (position[0], position[1], position[2])
        yield GradientCell(
            cell=cell,
            island=island.name,
            gradient=_direction(field.total[index].tolist()),
            fitness=_direction(field.fitness[index].tolist()),
            rate=_direction(field.rate[index].tolist()),
            exploration=_direction(field.exploration[index].tolist()),
            confidence=float(field.confidence[index]),
            elite=elites.get(cell, ""),
        )


def _direction(values: list[float]) -> Direction:
    memory, algorithm, synchronization = values
    return (memory, algorithm, synchronization)

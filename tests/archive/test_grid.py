"""The grid archive keeps the best of each cell, whatever the order."""

from hypothesis import given
from hypothesis import strategies as st

from archive_svc.grids.grid import Entry, Grid
from kernel_foundry.domain.archive import AddStatus


def _entry(
    digest: str, fitness: float, cell: tuple[int, int, int] = (0, 0, 0), **kw: float
) -> Entry:
    return Entry(
        digest=digest,
        sequence=int(kw.get("sequence", 1)),
        cell=cell,
        fitness=fitness,
    )


_FITNESSES = st.lists(st.floats(min_value=0.2, max_value=1.0), min_size=1, max_size=30, unique=True)
_CELLS = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1))


def test_first_entry_of_a_cell_is_new_and_a_better_one_improves() -> None:
    grid = Grid()
    assert grid.add(_entry("a", 0.5)) == (AddStatus.NEW, 0.5)
    status, gain = grid.add(_entry("b", 0.7))
    assert status == AddStatus.IMPROVE_EXISTING
    assert abs(gain - 0.2) < 1e-12
    assert grid.add(_entry("c", 0.6)) == (AddStatus.NOT_ADDED, 0.0)
    assert [e.digest for e in grid.elites()] == ["b"]


def test_remeasured_elite_gives_way_to_the_runner_up() -> None:
    grid = Grid()
    grid.add(_entry("a", 0.9, sequence=1))
    grid.add(_entry("b", 0.7, sequence=2))
    grid.add(_entry("a", 0.6, sequence=3))
    assert [(e.digest, e.fitness) for e in grid.elites()] == [("b", 0.7)]


def test_remeasured_elite_moves_to_its_new_cell() -> None:
    grid = Grid()
    grid.add(_entry("a", 0.9, cell=(0, 0, 0)))
    grid.add(_entry("a", 0.9, cell=(1, 0, 0)))
    assert [e.cell for e in grid.elites()] == [(1, 0, 0)]


def test_discarded_elite_leaves_its_cell_to_the_next() -> None:
    grid = Grid()
    grid.add(_entry("a", 0.9, sequence=1))
    grid.add(_entry("b", 0.7, sequence=2))
    grid.discard("a")
    assert [e.digest for e in grid.elites()] == ["b"]


@given(fitnesses=_FITNESSES, data=st.data())
def test_best_is_never_lost_and_order_does_not_matter(
    fitnesses: list[float], data: st.DataObject
) -> None:
    entries = [
        _entry(str(i), f, cell=data.draw(_CELLS), sequence=i + 1) for i, f in enumerate(fitnesses)
    ]
    forward, shuffled = Grid(), Grid()
    for entry in entries:
        forward.add(entry)
        assert forward.best is not None
        assert forward.best.fitness == max(e.fitness for e in entries[: entry.sequence])
    for entry in data.draw(st.permutations(entries)):
        shuffled.add(entry)
    assert forward.elites() == shuffled.elites()

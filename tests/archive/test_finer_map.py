"""The finer map tells strong kernels of one cell apart, by bins that follow what is seen."""

from hypothesis import given
from hypothesis import strategies as st

from archive_svc.grids.finer_map import BINS, FinerMap
from archive_svc.grids.grid import Entry


def _entry(number: int, *features: float, fitness: float = 0.5) -> Entry:
    return Entry(
        digest=str(number), sequence=number, cell=(3, 3, 3), fitness=fitness, features=features
    )


def _filled(*values: float) -> FinerMap:
    return FinerMap(_entry(n, value, fitness=n / 100) for n, value in enumerate(values, 1))


def test_a_cell_of_the_measures_has_an_elite_for_each_bin() -> None:
    finer = _filled(*range(16))
    assert len(finer.elites()) == BINS
    assert finer.elites()[0].digest == "16"


def test_bins_follow_the_values_that_are_seen() -> None:
    """Whatever their scale, and where most are equal a value of its own keeps a bin."""
    values = [3.0, 1.0, 4.0, 1.5, 9.0, 2.6, 5.0, 3.5, 8.0, 9.7, 9.3, 2.3, 8.4, 6.2, 6.4, 3.3]
    scaled = _filled(*(1e6 * value for value in values))
    digests = [e.digest for e in _filled(*values).elites()]
    assert [e.digest for e in scaled.elites()] == digests
    assert len(_filled(*[128.0] * 10, *[256.0] * 6).elites()) == 2


def test_what_has_no_features_is_told_apart_by_its_measures() -> None:
    assert len(FinerMap(map(_entry, range(1, 20))).elites()) == 1


_SEEN = st.lists(
    st.tuples(st.sampled_from([32.0, 64.0, 256.0, 1e18]), st.floats(0.2, 3)),
    min_size=1,
    max_size=70,
)


@given(seen=_SEEN)
def test_the_best_is_never_lost_and_no_two_elites_share_a_place(
    seen: list[tuple[float, float]],
) -> None:
    """Also where the boundaries are drawn anew while it grows."""
    finer = FinerMap(())
    for sequence, (value, fitness) in enumerate(seen, 1):
        finer.add(_entry(sequence, value, float(sequence % 3), fitness=fitness))
        assert finer.elites()[0].fitness == max(fitness for _, fitness in seen[:sequence])
    places = [finer.place(entry) for entry in finer.elites()]
    assert len(set(places)) == len(places)

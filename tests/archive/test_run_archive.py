"""A run in memory: elites, islands, transitions and what is in flight."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archive_svc.grids.island_model import ISLANDS
from archive_svc.grids.result import Result
from archive_svc.search.choices_in_flight import KEPT
from archive_svc.search.gradient import GradientWeights
from archive_svc.search.run_archive import SEEDS, YOUNG_SEEDS, RunArchive
from archive_svc.search.selection import Choice
from archive_svc.search.strategies import STRATEGIES
from kernel_foundry.domain.archive import AddStatus
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.measures import Cell

APART = dataclasses.replace(ISLANDS, founding=0, least_stagnation=4, stagnation=4, migrants=1)
"""Islands that share nothing from the start."""


def _archive(strategy: str = "gradient", **options: object) -> RunArchive:
    return RunArchive(strategy=strategy, seed=3, **options)  # type: ignore[arg-type]


def _result(sequence: int, fitness: float, **changes: object) -> Result:
    numbers = Result(
        sequence=sequence,
        digest=f"digest {sequence}",
        operator="seed",
        parent="",
        outcome="passed",
        fitness=fitness,
        cell=(1, 1, 1),
        has_parameters=True,
        island="fusion",
        selection=None,
    )
    return dataclasses.replace(numbers, **changes)  # type: ignore[arg-type]


def _fill(archive: RunArchive, count: int = 12) -> None:
    rng = np.random.default_rng(1)
    for sequence in range(1, count + 1):
        cell: Cell = tuple(rng.integers(0, 4, 3).tolist())  # type: ignore[assignment]
        archive.take_in(_result(sequence, float(rng.uniform(0.2, 0.9)), cell=cell))


@given(
    results=st.lists(
        st.tuples(
            st.floats(0.2, 1.0),
            st.booleans(),
            st.tuples(*[st.integers(0, 3)] * 3),
            st.integers(0, 9),
            st.sampled_from([island.name for island in ISLANDS.islands]),
        ),
        max_size=60,
    )
)
@settings(max_examples=60)
def test_the_best_is_never_lost_and_a_failure_never_an_elite(results) -> None:
    """Also when candidates are measured again, fail then, and islands mix."""
    archive = RunArchive(strategy="gradient", seed=1, model=APART)
    newest: dict[str, tuple[float, bool]] = {}
    for sequence, (fitness, passed, cell, digest, born_on) in enumerate(results, 1):
        name = str(digest)
        outcome = "passed" if passed else "wrong_result"
        archived = _result(sequence, fitness if passed else 0.1, digest=name, cell=cell)
        home = archive.island_for(selection=None, parent="", digest=name)
        island = home if name in newest else born_on
        archive.take_in(dataclasses.replace(archived, outcome=outcome, island=island))
        newest[name] = (fitness, passed)
        alive = {d: f for d, (f, ok) in newest.items() if ok}
        assert {e.digest for e in archive.elites()} <= set(alive)
        best = archive.best
        assert (best.fitness if best else None) == max(alive.values(), default=None)


def test_an_answered_selection_is_in_flight_no_more() -> None:
    archive = _archive("fitness")
    archive.take_in(_result(1, 0.5))
    # One elite and nothing to combine it with: each island asks for it once before any asks again.
    numbers = range(SEEDS, SEEDS + len(ISLANDS.islands))
    choices = {n: archive.select(n) for n in numbers}
    assert len(set(choices.values())) == len(choices)
    answered = next(n for n, choice in choices.items() if choice.operator is Operator.MUTATE)
    archive.take_in(_result(2, 0.4, parent="digest 1", operator="mutate", selection=answered))
    assert not archive.is_in_flight(answered)
    assert all(archive.is_in_flight(n) for n in choices if n != answered)


def test_a_dropped_selection_may_be_asked_for_again() -> None:
    archive = _archive("fitness")
    archive.take_in(_result(1, 0.5))
    for number in range(SEEDS, SEEDS + 40):
        archive.select(number)
        archive.drop(number)
    operators = []
    for number in range(100, 130):
        operators.append(archive.select(number).operator)
        archive.drop(number)
    assert operators.count(Operator.MUTATE) > 20
    archive.drop(12_345)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_no_two_proposals_in_flight_have_the_same_assignment(strategy: str) -> None:
    archive = _archive(strategy)
    _fill(archive)
    choices = [archive.select(n) for n in range(100, 116)]
    asked = [choice for choice in choices if choice.operator is not Operator.SEED]
    assert len(asked) == len(set(asked))
    if strategy != "best_of_n":
        assert len(choices) - len(asked) <= YOUNG_SEEDS


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_selection_is_deterministic_under_a_seed(strategy: str) -> None:
    first, second = _archive(strategy), _archive(strategy)
    for archive in (first, second):
        _fill(archive)
    assert [first.select(n) for n in range(30)] == [second.select(n) for n in range(30)]
    other = RunArchive(strategy=strategy, seed=4)
    _fill(other)
    choices = [first.select(n) for n in range(30, 60)]
    if strategy != "best_of_n":
        assert choices != [other.select(n) for n in range(30, 60)]


def test_what_is_in_flight_is_bounded() -> None:
    archive = _archive()
    _fill(archive)
    for number in range(3 * KEPT):
        archive.select(number)
    assert len(archive._in_flight) == KEPT
    assert sum(archive._in_flight._counts.values()) == KEPT


def test_best_of_n_asks_for_seeds_alone() -> None:
    archive = _archive("best_of_n")
    _fill(archive)
    assert {archive.select(n).operator for n in range(40)} == {Operator.SEED}


def test_islands_set_out_from_one_population_and_then_part() -> None:
    archive = RunArchive(
        strategy="gradient", seed=1, model=dataclasses.replace(ISLANDS, founding=1, stagnation=99)
    )
    archive.take_in(_result(1, 0.5))
    archive.take_in(_result(2, 0.4, cell=(2, 2, 2), island="memory"))
    cells = {i.name: [e.cell for e in i.elites()] for i in archive.islands}
    assert cells["memory"] == [(1, 1, 1), (2, 2, 2)]
    assert cells["fusion"] == cells["compute"] == [(1, 1, 1)]


def test_a_stagnating_island_is_given_elites_of_the_best_one() -> None:
    archive = RunArchive(strategy="gradient", seed=1, model=APART)
    archive.take_in(_result(1, 0.9, cell=(3, 3, 3), island="memory"))
    archive.take_in(_result(2, 0.8, cell=(2, 2, 2), island="memory"))
    fusion = archive.islands[0]
    before = fusion.migrations
    for sequence in range(3, 2 + APART.stagnation):
        archive.take_in(_result(sequence, 0.3, cell=(0, 0, 0), island="fusion"))
    assert fusion.migrations == before
    archive.take_in(_result(9, 0.2, cell=(0, 0, 0), island="fusion"))
    assert fusion.migrations == before + 1
    assert [e.digest for e in fusion.elites()] == ["digest 1", "digest 2", "digest 3"]
    archive.take_in(_result(10, 0.2, cell=(0, 0, 0), island="fusion"))
    assert fusion.migrations == before + 1
    assert archive.stats().elite_count == 3  # cells, whichever island holds them


def test_what_leads_the_run_goes_to_every_island() -> None:
    archive = RunArchive(strategy="gradient", seed=1, model=APART)
    archive.take_in(_result(1, 0.5, island="memory"))
    archive.take_in(_result(2, 0.4, cell=(2, 2, 2), island="fusion"))
    archive.take_in(_result(3, 0.6, cell=(3, 3, 3), island="compute"))
    cells = {i.name: [e.cell for e in i.elites()] for i in archive.islands}
    assert cells == {
        "fusion": [(3, 3, 3), (1, 1, 1), (2, 2, 2)],
        "memory": [(3, 3, 3), (1, 1, 1)],
        "parallelism": [(3, 3, 3), (1, 1, 1)],
        "compute": [(3, 3, 3), (1, 1, 1)],
    }
    assert [i.migrations for i in archive.islands] == [2, 1, 2, 1]


def test_children_of_correct_parents_are_transitions_failed_ones_too() -> None:
    archive = _archive()
    archive.take_in(_result(1, 0.5))
    child = {"parent": "digest 1", "operator": "mutate"}
    archive.take_in(_result(2, 0.7, cell=(2, 1, 1), **child))
    archive.take_in(_result(3, 0.1, cell=(1, 1, 2), outcome="wrong_result", **child))
    archive.take_in(_result(4, 0.6, cell=(2, 2, 2), parent="digest 3", operator="repair"))
    archive.take_in(_result(5, 0.8, digest="digest 2", cell=(2, 1, 1), **child))  # measured again
    field = archive.field(archive.islands[0])
    here = (1 * 4 + 1) * 4 + 1
    assert field.total[here, 0] > 0 > field.fitness[here, 2]
    assert archive._transitions.count == 2


def test_a_failure_is_repaired_once_and_without_a_direction() -> None:
    archive = _archive()
    archive.take_in(_result(1, 0.1, outcome="compile_error", cell=None))
    choices = [archive.select(n) for n in range(SEEDS, 60)]
    (repair,) = [choice for choice in choices if choice.operator is Operator.REPAIR]
    assert (repair.parent, repair.target, repair.inspirations) == ("digest 1", None, ())


def _run(archive: RunArchive, count: int, *, passes: bool = True, in_flight: int = 2) -> None:
    """Answer `count` selections, `in_flight` at a time."""
    rng = np.random.default_rng(2)
    waiting = {n: archive.select(n) for n in range(in_flight)}
    for sequence in range(1, count + 1):
        number = min(waiting)
        choice = waiting.pop(number)
        cell: Cell = tuple(rng.integers(0, 4, 3).tolist())  # type: ignore[assignment]
        archive.take_in(
            _result(
                sequence,
                float(rng.uniform(0.2, 0.9)) if passes else 0.1,
                outcome="passed" if passes else "wrong_result",
                cell=cell,
                operator=choice.operator.value,
                parent=choice.parent or "",
                island=choice.island,
                selection=number,
                has_parameters=bool(sequence % 3),
            )
        )
        waiting[number + in_flight] = archive.select(number + in_flight)


def _operators(archive: RunArchive) -> list[str]:
    return [result.operator for result in archive._newest.values()]


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"best_of_n"}))
@pytest.mark.parametrize("in_flight", [1, 2, 6])
def test_of_40_evaluations_at_most_8_are_of_seeds_that_pass(strategy: str, in_flight: int) -> None:
    for seed in range(10):
        archive = RunArchive(strategy=strategy, seed=seed)
        _run(archive, 40, in_flight=in_flight)
        assert SEEDS <= _operators(archive).count("seed") <= YOUNG_SEEDS == 8


def test_seeds_that_fail_are_followed_by_more() -> None:
    archive = _archive()
    _run(archive, 40, passes=False)
    assert _operators(archive).count("seed") > 12


def test_a_run_that_is_begun_with_candidates_asks_for_no_seeds_first() -> None:
    archive = _archive()
    archive.take_in(_result(1, 0.5))
    archive.take_in(_result(2, 0.6, cell=(2, 2, 2)))
    operators = [archive.select(n).operator for n in range(12)]
    assert operators[:SEEDS] != [Operator.SEED] * SEEDS
    assert operators.count(Operator.SEED) <= YOUNG_SEEDS - 2


def test_a_short_run_migrates_and_uses_every_operator() -> None:
    archive = _archive()
    _run(archive, 40)
    assert sum(island.migrations for island in archive.islands) >= 1
    assert set(_operators(archive)) >= {"seed", "mutate", "combine", "templatise"}


@pytest.mark.parametrize("name", ["combine", "repair", "templatise"])
def test_an_operator_that_is_switched_off_is_never_asked_for(name: str) -> None:
    archive = _archive(without=(name,))
    archive.take_in(_result(1, 0.5, has_parameters=False))
    archive.take_in(_result(2, 0.6, cell=(2, 2, 2)))
    archive.take_in(_failed(3))
    operators = set()
    for number in range(SEEDS, 200):
        operators.add(archive.select(number).operator.value)
        archive.drop(number)
    assert operators == {"seed", "mutate", "combine", "repair", "templatise"} - {name}


def test_other_parts_of_a_selection_can_be_switched_off() -> None:
    archive = _archive(without=("islands", "inspirations", "direction", "migration"))
    _run(archive, 60)
    assert [island.name for island in archive.islands] == ["general"]
    choices = [archive.select(n) for n in range(100, 140)]
    assert {choice.island for choice in choices} == {"general"}
    assert {choice.target for choice in choices} == {None}
    for choice in choices:
        assert len(choice.inspirations) == (choice.operator is Operator.COMBINE)


def test_without_migration_islands_keep_to_themselves() -> None:
    archive = RunArchive(strategy="gradient", seed=1, model=APART, without=("migration",))
    _run(archive, 60)
    assert sum(island.migrations for island in archive.islands) == 0


def _failed(sequence: int, **changes: object) -> Result:
    return _result(sequence, 0.1, outcome="compile_error", cell=None, **changes)


def test_a_line_of_failures_is_repaired_twice_at_most() -> None:
    archive = _archive()
    archive.take_in(_failed(1))
    archive.take_in(_failed(2, operator="repair", parent="digest 1"))
    offered = {archive.select(n).parent for n in range(SEEDS, 60)}
    assert "digest 2" in offered
    archive.take_in(_failed(3, operator="repair", parent="digest 2"))
    archive.take_in(_failed(4, digest="digest 3"))  # measured again
    choices = [archive.select(n) for n in range(100, 160)]
    assert not [choice for choice in choices if choice.operator is Operator.REPAIR]


def test_a_repair_that_passed_begins_a_new_line() -> None:
    archive = _archive()
    archive.take_in(_failed(1))
    archive.take_in(_failed(2, operator="repair", parent="digest 1"))
    archive.take_in(_result(3, 0.5, operator="repair", parent="digest 2"))
    archive.take_in(_failed(4, operator="mutate", parent="digest 3"))
    choices = [archive.select(n) for n in range(SEEDS, 60)]
    assert "digest 4" in {choice.parent for choice in choices if choice.operator is Operator.REPAIR}


def test_an_elite_without_parameters_is_given_some_once() -> None:
    archive = _archive()
    archive.take_in(_result(1, 0.5, has_parameters=False))
    archive.take_in(_result(2, 0.6, cell=(2, 2, 2)))
    choices = [archive.select(n) for n in range(SEEDS, 200)]
    (templatise,) = [choice for choice in choices if choice.operator is Operator.TEMPLATISE]
    assert templatise.parent == "digest 1"


def test_a_candidate_made_tunable_is_given_no_direction() -> None:
    """The prompt would leave it out, and its cell would count as one that was missed."""
    archive = _archive()
    _fill(archive)
    for sequence in range(13, 17):
        island = archive.islands[sequence % 4].name
        plain = _result(sequence, 1.0 + sequence / 100, has_parameters=False, island=island)
        archive.take_in(plain)
    choices = [archive.select(number) for number in range(SEEDS, SEEDS + 60)]
    tunable = [choice for choice in choices if choice.operator is Operator.TEMPLATISE]
    assert tunable
    assert {choice.target for choice in tunable} == {None}
    assert any(choice.target for choice in choices)


def test_a_run_may_have_a_negative_seed() -> None:
    assert RunArchive(strategy="gradient", seed=-1).select(0).operator is Operator.SEED


def test_a_child_without_measures_found_no_place_either() -> None:
    archive = _archive("curiosity")
    archive.take_in(_result(1, 0.5))
    archive.take_in(_result(2, 0.0, outcome="compile_error", parent="digest 1", cell=None))
    assert archive._curiosity["digest 1"] < archive._curiosity["digest never seen"]


@pytest.mark.parametrize("operator", ["repair", "templatise"])
def test_what_was_tried_before_a_restart_is_not_tried_again(operator: str) -> None:
    archive = _archive()
    archive.take_in(_result(1, 0.5, has_parameters=False))
    archive.take_in(_result(2, 0.1, outcome="compile_error", cell=None))
    tried = "digest 1" if operator == "templatise" else "digest 2"
    archive.take_in(_result(3, 0.4, operator=operator, parent=tried, cell=(2, 2, 2)))
    choices = [archive.select(n) for n in range(SEEDS, 200)]
    assert not [choice for choice in choices if choice.operator == operator]


def test_measured_again_an_elite_is_not_given_parameters_again() -> None:
    archive = _archive()
    archive.take_in(_result(1, 0.5, has_parameters=False))
    archive.take_in(_result(2, 0.4, operator="templatise", parent="digest 1", cell=(2, 2, 2)))
    archive.take_in(_result(3, 0.55, digest="digest 1", has_parameters=False))
    choices = [archive.select(n) for n in range(SEEDS, 200)]
    assert not [choice for choice in choices if choice.operator is Operator.TEMPLATISE]


def test_what_passes_when_measured_again_needs_no_repair() -> None:
    archive = _archive()
    archive.take_in(_result(1, 0.05, outcome="timeout", cell=None))
    archive.take_in(_result(2, 0.5, digest="digest 1"))
    choices = [archive.select(n) for n in range(SEEDS, 200)]
    assert not [choice for choice in choices if choice.operator is Operator.REPAIR]


def test_a_refused_status_tells_that_nothing_changed() -> None:
    archive = _archive()
    first = archive.take_in(_result(1, 0.5))
    assert (first.status, first.improvement, first.is_best) == (AddStatus.NEW, 0.5, True)
    second = archive.take_in(_result(2, 0.4))
    assert (second.status, second.improvement) == (AddStatus.NOT_ADDED, 0.0)
    assert not second.is_best
    third = archive.take_in(_result(3, 0.8))
    assert third.status is AddStatus.IMPROVE_EXISTING
    assert third.improvement == pytest.approx(0.3)


def test_kernels_of_one_cell_are_combined_where_the_finer_map_tells_them_apart() -> None:
    chosen: dict[str, list[Choice]] = {}
    for strategy in ("fitness", "sliding"):
        archive = _archive(strategy)
        for sequence in range(1, 25):
            features = (float(sequence % 5), float(sequence % 3))
            archive.take_in(_result(sequence, sequence / 30, features=features))
        chosen[strategy] = [archive.select(number) for number in range(SEEDS, 60)]
    assert not any(choice.inspirations for choice in chosen["fitness"])
    combined = [c for c in chosen["sliding"] if c.operator is Operator.COMBINE]
    assert combined
    assert all(c.inspirations and c.parent not in c.inspirations for c in combined)


def test_a_finer_map_made_late_is_that_of_one_that_grew() -> None:
    """Also where candidates were measured again: a resumed run goes on as it would have."""
    grown, late = _archive("sliding"), _archive("fitness")
    for sequence in range(1, 80):
        best = grown.best
        is_again = best is not None and sequence % 10 == 0
        digest = best.digest if best is not None and is_again else f"digest {sequence}"
        outcome = "rejected" if is_again and sequence % 20 == 0 else "passed"
        features = (float(sequence % 7), float(sequence % 3))
        fitness = 0.3 if is_again else (sequence * 37 % 50 + 10) / 30
        result = _result(sequence, fitness, digest=digest, outcome=outcome, features=features)
        for archive in (grown, late):
            archive.take_in(result)
        grown.select(1000 + sequence)
        grown.drop(1000 + sequence)
    numbers = range(SEEDS, 60)
    assert [grown.select(n) for n in numbers] == [late.select(n, "sliding") for n in numbers]


@pytest.mark.parametrize("strategy", ["gradient", "gradient-no-r"])
def test_who_leads_is_never_asked_down_a_level_to_fill_a_cell(strategy: str) -> None:
    """Though all cells below are empty, and what went down was slower."""
    strategies = {**STRATEGIES, "gradient-no-r": dataclasses.replace(
        STRATEGIES["gradient"], gradient=GradientWeights(rate=0.0, exploration=5.0)
    )}  # fmt: skip
    archive = _archive(strategy, strategies=strategies)
    archive.take_in(_result(1, 0.9, cell=(3, 3, 3)))
    for sequence, cell in enumerate([(2, 3, 3), (3, 2, 3), (3, 3, 2)], 2):
        down = _result(sequence, 0.4, cell=cell, parent="digest 1", operator="mutate")
        archive.take_in(down)
    choices = [archive.select(number) for number in range(SEEDS, 200)]
    of_leader = [c for c in choices if c.parent == "digest 1"]
    assert len(of_leader) > 20
    assert {c.target for c in of_leader} == {None}

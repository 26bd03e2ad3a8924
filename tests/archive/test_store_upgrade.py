"""A store of schema 0001 is upgraded with its data, on SQLite and PostgreSQL."""

import json
from dataclasses import replace

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from archive_svc.store.rows import Telling
from archive_svc.store.store import Store
from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.domain.candidate import Candidate, KernelSource, Operator
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.plain import to_json, to_plain
from kernel_foundry.sql.engine import _postgresql, _sqlite
from tests.archive.conftest import make_candidate, make_evaluation

FINDING = Finding(kind=FindingKind.SPILL, severity=Severity.INFO, message="m")

_INSERT_RUN = sa.text(
    "INSERT INTO runs (id, name, spec, state, created_unix_s) "
    "VALUES (:id, :name, :spec, 'finished', 1000.5)"
)
_INSERT_TOLD = sa.text(
    "INSERT INTO told (run_id, sequence, request_id, digest, operator, parent, outcome, fitness, "
    "optimistic, memory, algorithm, synchronization, speedup, cost_usd, told_unix_s, candidate, "
    "evaluation) VALUES (:run_id, :sequence, :request_id, :digest, :operator, :parent, :outcome, "
    ":fitness, :optimistic, :memory, :algorithm, :synchronization, :speedup, 0.25, :told_unix_s, "
    ":candidate, :evaluation)"
)


def schema_0001(url: str) -> sa.Engine:
    """Make a store as the first version did."""
    parsed = sa.make_url(url)
    make = _sqlite if parsed.get_backend_name() == "sqlite" else _postgresql
    engine = make(parsed, url)
    config = Config()
    config.set_main_option("script_location", "archive_svc.store:migrations")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    return engine


def row_0001(
    run_id: int, sequence: int, candidate: Candidate, evaluation: Evaluation
) -> dict[str, object]:
    """Return the row that the first version wrote: no measures of a failed candidate."""
    measures = evaluation.measures if evaluation.passed else None
    return {
        "run_id": run_id,
        "sequence": sequence,
        "request_id": f"request {sequence}",
        "digest": candidate.digest,
        "operator": candidate.operator.value,
        "parent": candidate.parents[0] if candidate.parents else "",
        "outcome": evaluation.outcome.value,
        "fitness": evaluation.fitness,
        "optimistic": evaluation.optimistic_fitness,
        "memory": measures.memory if measures else None,
        "algorithm": measures.algorithm if measures else None,
        "synchronization": measures.synchronization if measures else None,
        "speedup": evaluation.speedup,
        "told_unix_s": 2000.0 + sequence,
        "candidate": to_json(candidate),
        "evaluation": to_json(evaluation),
    }


@pytest.fixture
def history() -> list[tuple[Candidate, Evaluation]]:
    """A seed with parameters, its broken child, a better one, and that one measured again."""
    plan = 'TUNE = {"BLOCK": [64, 128]}\n\ndef launch(x):\n    pass\n'
    source = KernelSource(language=Language.SYCL, device_code="// seed", plan=plan)
    seed = Candidate(source=source)
    broken = make_candidate("broken", parent=seed.digest, operator=Operator.MUTATE)
    child = make_candidate("child", parent=seed.digest, operator=Operator.MUTATE)
    return [
        (seed, make_evaluation(seed, median_ns=800.0, cell=(1, 0, 0))),
        (
            broken,
            make_evaluation(broken, outcome=EvaluationOutcome.WRONG_RESULT, cell=(2, 1, 0)),
        ),
        (child, make_evaluation(child, median_ns=400.0, cell=(2, 0, 0))),
        (child, make_evaluation(child, median_ns=500.0, cell=(2, 0, 0))),
    ]


@pytest.fixture
def upgraded(store_url: str, spec: RunSpec, history: list[tuple[Candidate, Evaluation]]) -> Store:
    engine = schema_0001(store_url)
    with engine.begin() as connection:
        for id_, name in ((1, "first"), (2, "empty")):
            values = {"id": id_, "name": name, "spec": to_json(replace(spec, name=name))}
            connection.execute(_INSERT_RUN, values)
        for sequence, (candidate, evaluation) in enumerate(history, start=1):
            connection.execute(_INSERT_TOLD, row_0001(1, sequence, candidate, evaluation))
    engine.dispose()
    return Store(store_url)


def test_candidates_and_evaluations_are_as_they_were(
    upgraded: Store, history: list[tuple[Candidate, Evaluation]]
) -> None:
    told = upgraded.told(1, 0, 10)
    assert history == [(t.candidate, t.evaluation) for t in told]
    assert [t.told_unix_s for t in told] == [2001.0, 2002.0, 2003.0, 2004.0]
    upgraded.close()


def test_sums_of_each_run_are_filled_in(upgraded: Store) -> None:
    empty, first = upgraded.list_runs()
    assert (first.told_count, first.selected_count, first.cost_usd) == (4, 4, 1.0)
    assert (first.best_sequence, first.best_speedup) == (4, 2.0)
    assert (empty.told_count, empty.best_sequence, empty.created_unix_s) == (0, None, 1000.5)
    upgraded.close()


def test_numbers_that_the_first_version_left_out_are_filled_in(
    upgraded: Store, history: list[tuple[Candidate, Evaluation]]
) -> None:
    numbers = upgraded.told_numbers(1, 0)
    assert [n.cell for n in numbers] == [(1, 0, 0), (2, 1, 0), (2, 0, 0), (2, 0, 0)]
    assert [n.passed for n in numbers] == [True, False, True, True]
    assert [n.has_parameters for n in numbers] == [True, False, False, False]
    assert {(n.island, n.selection) for n in numbers} == {("", None)}
    seed, broken, child = (evaluation.fitness for _, evaluation in history[:3])
    transitions = upgraded.transitions(1, 0, 10)
    assert [t.sequence for t in transitions] == [2, 3]
    assert [t.gain for t in transitions] == pytest.approx([broken - seed, child - seed])
    upgraded.close()


def test_telling_goes_on(upgraded: Store, history: list[tuple[Candidate, Evaluation]]) -> None:
    candidate, evaluation = history[0]
    known = Telling(request_id="request 1", candidate=candidate, evaluation=evaluation)
    assert upgraded.tell(1, known).is_repeat
    parent = make_candidate("next", parent=candidate.digest)
    evaluation = make_evaluation(parent, median_ns=450.0)
    told = Telling(request_id="new", candidate=parent, evaluation=evaluation)
    assert upgraded.tell(1, told).numbers.sequence == 5
    assert upgraded.list_runs()[1].best_sequence == 5
    upgraded.close()


def clipped(evaluation: Evaluation) -> str:
    """Return a verdict as versions wrote it that clipped fitness at a bound of both kinds."""
    plain = to_plain(evaluation)
    for workload in plain["workloads"]:
        del workload["traffic_bound_ns"], workload["arithmetic_estimate_ns"]
        workload["sol_ns"] = 900.0
    plain["findings"] = [to_plain(FINDING) | {"kind": kind} for kind in ("roofline", "spill")]
    plain |= {"fitness": 1.0, "optimistic_fitness": 1.0} if evaluation.passed else {}
    return json.dumps(plain)


def test_fitness_that_was_clipped_is_counted_again(
    store_url: str, spec: RunSpec, history: list[tuple[Candidate, Evaluation]]
) -> None:
    """A kernel of 400 ns and one of 800 ns were equal at a bound of 900 ns."""
    engine = schema_0001(store_url)
    with engine.begin() as connection:
        connection.execute(_INSERT_RUN, {"id": 1, "name": "first", "spec": to_json(spec)})
        for sequence, (candidate, evaluation) in enumerate(history[:3], start=1):
            row = row_0001(1, sequence, candidate, evaluation)
            row |= {"evaluation": clipped(evaluation)}
            row |= {"fitness": 1.0, "optimistic": 1.0} if evaluation.passed else {}
            connection.execute(_INSERT_TOLD, row)
    engine.dispose()
    store = Store(store_url)

    told = store.told(1, 0, 10)
    for (_, before), after in zip(history, told, strict=False):
        assert after.evaluation.fitness == pytest.approx(before.fitness)
        assert after.evaluation.optimistic_fitness == pytest.approx(before.optimistic_fitness)
        assert [w.traffic_bound_ns for w in after.evaluation.workloads] == [None]
        assert [f.kind for f in after.evaluation.findings] == [FindingKind.SPILL]
        assert after.evaluation.attestation is None
    (run,) = store.list_runs()
    assert (run.best_sequence, run.best_speedup) == (3, 2.5)
    assert run.best_fitness == pytest.approx(history[2][1].fitness)
    gains = [t.gain for t in store.transitions(1, 0, 10)]
    fitnesses = [evaluation.fitness for _, evaluation in history[:3]]
    assert gains == pytest.approx([f - fitnesses[0] for f in fitnesses[1:]])
    store.close()

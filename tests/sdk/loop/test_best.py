"""The best of a run: by what is certain, in every place the same, however fast."""

import asyncio
import math
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.archive import ArchivedEvaluation
from kernel_foundry.domain.best import best_of, best_so_far
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.fitness import correct_fitness, failure_fitness
from tests.archive.conftest import TASK, make_candidate, make_evaluation
from tests.domain_values import run_spec

SPEEDUPS = st.floats(1e-9, 1e9)

VERDICTS = st.lists(
    st.tuples(
        st.integers(0, 5),  # the candidate: some are measured again
        st.booleans(),
        st.floats(
            1e-2, 1e7
        ),  # ns, against a baseline of 1000: from beyond any kernel to far behind
        st.floats(0.0, 0.4),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=12,
)

SPEC = run_spec(task=TASK, device="sycl:0", models=("m",), strategy="gradient")


@given(SPEEDUPS, st.floats(1 + 1e-3, 1e3))
def test_fitness_rises_with_speed_and_has_no_ceiling(speedup: float, gain: float) -> None:
    assert correct_fitness(speedup * gain) > correct_fitness(speedup)
    failures = set(EvaluationOutcome) - {EvaluationOutcome.PASSED}
    assert correct_fitness(speedup) > max(map(failure_fitness, failures))


@given(st.floats(1.0, 1e9), st.floats(1.001, 100.0))
def test_a_gain_is_worth_the_same_however_fast_the_parent(speedup: float, gain: float) -> None:
    worth = correct_fitness(speedup * gain) - correct_fitness(speedup)
    assert 0.88 * math.log(gain) < worth < 1.001 * math.log(gain)


def test_a_thousand_times_and_a_thousand_and_one_are_apart() -> None:
    assert correct_fitness(1001.0) - correct_fitness(1000.0) > 9e-4


def _archived(drawn: list[tuple[int, bool, float, float, int]]) -> list[ArchivedEvaluation]:
    archived = []
    for sequence, (name, passed, median_ns, half_width, level) in enumerate(drawn, start=1):
        candidate = make_candidate(str(name))
        evaluation = make_evaluation(
            candidate,
            median_ns=median_ns if passed else None,
            outcome=EvaluationOutcome.PASSED if passed else EvaluationOutcome.CRASHED,
            cell=(level, 0, 0),
            half_width=half_width,
        )
        archived.append(
            ArchivedEvaluation(
                sequence=sequence,
                candidate=candidate,
                evaluation=evaluation,
                archived_unix_s=0.0,
                cost_usd=0.0,
            )
        )
    return archived


def _interval_ns(archived: ArchivedEvaluation) -> tuple[float, float]:
    timing = archived.evaluation.workloads[0].timing
    assert timing is not None
    return timing.ci95_ns


@given(VERDICTS)
def test_nobody_is_for_certain_faster_than_the_best(drawn: list) -> None:
    archived = _archived(drawn)
    best = best_of(archived)
    newest = {t.candidate.digest: t for t in archived}.values()
    standing = [t for t in newest if t.evaluation.passed]
    assert (best is None) == (not standing)
    for other in standing:
        assert best is not None
        assert not _interval_ns(other)[1] < _interval_ns(best)[0]
    assert [*best_so_far(archived)][-1] is best


@given(VERDICTS)
def test_the_best_so_far_is_the_fittest_of_the_newest_verdicts(drawn: list) -> None:
    archived = _archived(drawn)
    for count, best in enumerate(best_so_far(archived), start=1):
        newest = {t.candidate.digest: t for t in archived[:count]}.values()
        passed = [t for t in newest if t.evaluation.passed]
        fittest = max((t.evaluation.fitness for t in passed), default=None)
        leaders = [t for t in passed if t.evaluation.fitness == fittest]
        assert best is min(leaders, key=lambda t: t.sequence, default=None)


@settings(max_examples=25, deadline=None)
@given(VERDICTS)
def test_store_list_and_elites_name_the_same_one(drawn: list) -> None:
    """`runs list` reads the run's sums, `runs best` the first elite, the report both."""
    archived = _archived(drawn)
    best = best_of(archived)

    async def ask(archive: LocalArchive) -> None:
        await archive.create_run(SPEC)
        for one in archived:
            await archive.add(
                SPEC.name, one.candidate, one.evaluation, request_id=str(one.sequence)
            )
        run, elites = await archive.get_run(SPEC.name), await archive.elites(SPEC.name)
        expected = None if best is None else best.evaluation
        assert run.best_speedup == (expected.speedup if expected else None)
        assert (elites[0].evaluation if elites else None) == expected
        stats = await archive.stats(SPEC.name)
        assert stats.objective_max == (expected.fitness if expected else None)
        await archive.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(ask(LocalArchive(f"sqlite:///{folder}/runs.db")))

"""The end of a run: its winner was measured again, and is announced by that measurement."""

import dataclasses
import math
import random
import re
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.check import CheckKind, CheckResult, Trust
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.fitness import failure_fitness, fitness_bounds
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.errors import DeviceMemoryError
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.loop.progress import Event, RunResult, VerdictEvent
from kernel_foundry.sdk.loop.promotion import PROMOTIONS, REFUSALS, winner
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.archive.conftest import make_timing
from tests.domain_values import run_spec
from tests.evolution import evolution_of

BASELINE_NS = 1e6


SPEC = run_spec(strategy="best_of_n")  # the candidate's number is that of its selection


async def _evolve(
    archive: LocalArchive, evaluator: FakeEvaluator, evaluations: int = 20
) -> tuple[RunResult, list[VerdictEvent]]:
    events: list[Event] = []
    evolution = evolution_of(
        await archive.create_run(SPEC),
        archive,
        Budget(evaluations=evaluations),
        evaluator=evaluator,
        listener=events.append,
    )
    ended = await evolution.run()
    return ended, [e for e in events if isinstance(e, VerdictEvent) and e.is_promotion]


def _timed(evaluation: Evaluation, time_ns: float) -> Evaluation:
    """Return a passed verdict of that time, compared with `BASELINE_NS`."""
    results = tuple(
        dataclasses.replace(w, timing=make_timing(time_ns, 0.01)) for w in evaluation.workloads
    )
    timed = dataclasses.replace(evaluation, workloads=results)
    certain, best = fitness_bounds(timed, {w.workload: BASELINE_NS for w in results})
    return dataclasses.replace(timed, fitness=certain, optimistic_fitness=best)


def _number(text: str) -> int:
    found = re.search(r"proposal \d+\.(\d+)", text)
    assert found is not None
    return int(found[1])


class _RacyFamily(FakeEvaluator):
    """The first so many are three times as fast as the others, and the sanitizer refuses them."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        verdict = await super().evaluate(request)
        number = _number(request.source.device_code)
        is_racy = number < self._size
        if is_racy and request.sanitize:
            outcome = EvaluationOutcome.REJECTED
            worth = failure_fitness(outcome)
            return dataclasses.replace(
                verdict, outcome=outcome, fitness=worth, optimistic_fitness=worth
            )
        return _timed(verdict, (2e5 if is_racy else 6e5) + number)


@pytest.mark.parametrize("size", [0, 1, 5, REFUSALS - 1])
async def test_no_family_is_crowned_that_fails_when_measured_again(
    archive: LocalArchive, size: int
) -> None:
    ended, archived = await _evolve(archive, _RacyFamily(size))
    outcomes = [judged.evaluation.outcome for judged in archived]
    assert outcomes.count(EvaluationOutcome.REJECTED) == size
    assert ended.winner is not None
    assert ended.winner.evaluation == archived[-1].evaluation
    assert ended.winner.evaluation.trust is Trust.FULL
    assert _number(ended.winner.candidate.source.device_code) >= size


async def test_a_winner_that_was_not_measured_again_is_announced_as_such(
    archive: LocalArchive,
) -> None:
    ended, archived = await _evolve(archive, _RacyFamily(REFUSALS + 2))
    assert len(archived) == REFUSALS + 1
    _assert_not_measured_again(ended)
    assert await winner(archive, "run") == ended.winner


def _assert_not_measured_again(ended: RunResult) -> None:
    assert ended.winner is not None
    verdict = ended.winner.evaluation
    assert verdict.trust is Trust.SUSPECT
    assert verdict.attestation is None
    assert verdict.checks[-1].kind is CheckKind.SECOND_MEASUREMENT
    assert verdict.checks[-1].result is CheckResult.SUSPECT
    assert "not measured again" in verdict.checks[-1].note


class _NoMemoryAtTheEnd(FakeEvaluator):
    """Has no memory for measuring the so many fastest again."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        number = _number(request.source.device_code)
        if request.sanitize and number < self._count:
            raise DeviceMemoryError("no memory for a sanitizer")
        return _timed(await super().evaluate(request), 3e5 + 1e4 * number)


async def test_what_there_was_no_memory_to_measure_again_does_not_win(
    archive: LocalArchive,
) -> None:
    ended, _ = await _evolve(archive, _NoMemoryAtTheEnd(2))
    assert ended.winner is not None
    assert ended.winner.evaluation.trust is Trust.FULL
    assert ended.winner.evaluation.is_final
    assert _number(ended.winner.candidate.source.device_code) >= 2


async def test_without_memory_for_any_the_best_of_the_search_is_announced_with_less_trust(
    archive: LocalArchive,
) -> None:
    ended, archived = await _evolve(archive, _NoMemoryAtTheEnd(100))
    assert len(archived) == 1
    _assert_not_measured_again(ended)
    assert ended.winner is not None
    assert _number(ended.winner.candidate.source.device_code) == 0


class _EquallyFast(FakeEvaluator):
    """All candidates take the same time, but for noise of a twentieth."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        noise = math.exp(self._random.gauss(0, 0.05))
        return _timed(await super().evaluate(request), 3e5 * noise)


async def test_the_luck_of_the_best_of_forty_equal_kernels_is_not_praised(tmp_path: Path) -> None:
    praises = []
    for seed in range(2):
        archive = LocalArchive(f"sqlite:///{tmp_path / f'{seed}.db'}")
        ended, archived = await _evolve(archive, _EquallyFast(seed), evaluations=40)
        assert ended.winner is not None
        again = {judged.candidate.digest for judged in archived}
        assert ended.winner.candidate.digest in again
        assert len(again) <= PROMOTIONS
        assert await winner(archive, "run") == ended.winner
        (result,) = ended.winner.evaluation.workloads
        assert result.timing is not None
        praises.append(math.log(3e5 / result.timing.median_ns))
        await archive.close()
    # The best of a search is 10 % above its true speed; the winner of each run is about right.
    assert abs(sum(praises)) / len(praises) < 0.03


async def test_a_resumed_run_is_led_by_its_search_until_it_ends_again(
    archive: LocalArchive,
) -> None:
    first, _ = await _evolve(archive, _EquallyFast(0), evaluations=8)
    second, archived = await _evolve(archive, _EquallyFast(1), evaluations=16)
    assert first.winner is not None
    assert second.winner is not None
    assert second.winner.evaluation in [judged.evaluation for judged in archived]
    assert await winner(archive, "run") == second.winner


async def test_the_winner_of_a_run_that_has_not_ended_is_its_best_elite(
    archive: LocalArchive,
) -> None:
    class Failing(FakeEvaluator):
        async def evaluate(self, request: EvaluationRequest) -> Evaluation:
            if request.sanitize:
                raise RuntimeError("the power fails")
            return await super().evaluate(request)

    with pytest.raises(RuntimeError, match="power"):
        await _evolve(archive, Failing(), evaluations=4)
    (best,) = await archive.elites("run", limit=1)
    assert await winner(archive, "run") == best

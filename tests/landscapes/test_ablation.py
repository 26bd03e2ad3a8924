"""What a mechanism is worth: runs with and without it, compared in pairs at equal evaluations."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.loop.progress import Event, VerdictEvent
from landscapes.ablation import FULL, Ablation, AblationTrial, TrialResult, ablate
from tests.evolution import evolution_of
from tests.generators import generator_in
from tests.sdk.loop.test_short_run import ScriptedModel
from tests.sdk.replay.recorded import SPEC, UnevenEvaluator

_EVALUATIONS = 10


class ScriptedRuns:
    """Makes runs with the scripted model and the fake evaluator, each in a folder of its own."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self.operators: dict[AblationTrial, set[str]] = {}

    def __call__(self, trial: AblationTrial) -> TrialResult:
        return asyncio.run(self._run(trial, self._folders.mktemp("run")))

    async def _run(self, trial: AblationTrial, folder: Path) -> TrialResult:
        curve: list[float] = []
        operators: set[str] = set()

        def listen(event: Event) -> None:
            if isinstance(event, VerdictEvent) and not event.is_promotion:
                operators.add(event.candidate.operator.value)
                best = event.best.fitness if event.best is not None else 0.0
                curve.extend([best] * (event.spent.evaluations - len(curve)))

        generator = generator_in(folder, ScriptedModel())
        archive = LocalArchive(f"sqlite:///{folder / 'runs.db'}")
        spec = replace(SPEC, seed=trial.seed, without=trial.without)
        ended = await evolution_of(
            await archive.create_run(spec),
            archive,
            Budget(evaluations=_EVALUATIONS),
            evaluator=UnevenEvaluator(),
            generator=generator,
            listener=listen,
        ).run()
        await generator.close()
        await archive.close()
        self.operators[trial] = operators
        speedup = ended.winner.evaluation.speedup if ended.winner is not None else None
        return TrialResult(
            curve=tuple(curve), speedup=speedup, usd=ended.spent.cost_usd, tokens=ended.spent.tokens
        )


def test_every_arm_is_run_as_often_with_equal_evaluations(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    runs = ScriptedRuns(tmp_path_factory)
    found = ablate(
        runs,
        tasks=("relu",),
        seeds=(1, 2),
        evaluations=_EVALUATIONS,
        without=("sweeps", "combine", "direction"),
    )
    assert [arm.arm for arm in found.arms] == [FULL, "sweeps", "combine", "direction"]
    assert len(found.runs) == len(found.arms) * 2
    for one in found.runs:
        assert len(one.result.curve) >= _EVALUATIONS
        assert list(one.result.curve) == sorted(one.result.curve)
    for trial, operators in runs.operators.items():
        assert trial.arm != "combine" or "combine" not in operators
    full, *others = found.arms
    assert full.final_difference is None
    assert full.solved.value == 1.0
    assert all(arm.final_difference is not None for arm in others)


def _made_up(worth: dict[str, float]) -> Ablation:
    def run(trial: AblationTrial) -> TrialResult:
        if trial.arm == "repair":
            return TrialResult(curve=(), speedup=None, usd=0.0, tokens=0)
        best = 1.0 + 0.01 * trial.seed - worth.get(trial.arm, 0.0)
        # It ended early: the best stays to the end.
        return TrialResult(curve=(0.0, best), speedup=best, usd=0.5, tokens=9)

    return ablate(
        run,
        tasks=("a", "b"),
        seeds=range(5),
        evaluations=4,
        without=("islands", "repair", "sweeps"),
    )


def test_differences_are_paired_and_have_intervals() -> None:
    full, islands, repair, sweeps = _made_up({"islands": 0.25}).arms
    assert full.final_fitness.value == pytest.approx(1.02)
    assert full.mean_fitness.value == pytest.approx(0.75 * 1.02)
    assert islands.final_difference is not None
    assert islands.final_difference.value == pytest.approx(-0.25)
    assert islands.final_difference.excludes_zero
    assert sweeps.final_difference is not None
    assert sweeps.final_difference.value == pytest.approx(0.0)
    assert not sweeps.final_difference.excludes_zero
    assert (repair.speedup, repair.solved.value, repair.final_fitness.value) == (None, 0.0, 0.0)


def test_what_cannot_be_compared_is_refused() -> None:
    def run(_trial: AblationTrial) -> TrialResult:
        raise AssertionError

    for seeds, without, said in (
        ((1,), (), "one seed"),
        ((1, 2), ("magic",), "no mechanism 'magic'"),
        ((1, 2), ("sweeps", "sweeps"), "twice"),
    ):
        with pytest.raises(InvalidArgumentError, match=said):
            ablate(run, tasks=("a",), seeds=seeds, evaluations=4, without=without)

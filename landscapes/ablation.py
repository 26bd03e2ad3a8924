"""Ablation: what each mechanism is worth, by runs with and without it at equal evaluations.

Arms are run in turn under every seed and task, and compared in pairs. How one run is made is the
caller's: `kernel_foundry.cli.bench_ablation` optimises on a device. Strategies are compared on
recorded landscapes instead, see `compare.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kernel_foundry.domain import mechanisms
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.statistics.bootstrap import Bootstrap, share
from kernel_foundry.sdk.statistics.estimate import Estimate

FULL: Final = "full"
"""The arm with every mechanism."""

ABLATED: Final = tuple(
    name
    for name in mechanisms.MECHANISMS
    # Lessons are part of the experience library; the choice among models needs several; no run
    # here has an earlier one's winner to begin with.
    if name not in (mechanisms.LESSONS, mechanisms.MODEL_WEIGHTS, mechanisms.SHELF)
)
"""Mechanisms that are taken away, one by one, unless others are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationTrial:
    """One run to be made."""

    arm: str
    """`FULL`, or the mechanism that is taken away."""
    task: str
    seed: int

    @property
    def without(self) -> tuple[str, ...]:
        """What is switched off."""
        return () if self.arm == FULL else (self.arm,)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """What came of one run."""

    curve: tuple[float, ...]
    """Best fitness after each evaluation; 0 before anything passed."""
    speedup: float | None
    """Of the winner; None when nothing passed."""
    usd: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationRun:
    """One run and what came of it."""

    trial: AblationTrial
    result: TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmResult:
    """One arm over all tasks and seeds."""

    arm: str
    final_fitness: Estimate
    """Best fitness at the end of the budget, mean over tasks; 0 where nothing passed."""
    mean_fitness: Estimate
    """Mean of the curve: how good the best was on the way."""
    solved: Estimate
    """Share of the runs in which something passed."""
    speedup: float | None
    """Geometric mean of the winners' speed-ups; None when nothing passed."""
    usd: float
    """Mean over runs."""
    final_difference: Estimate | None
    """Final fitness less that of `FULL`, paired by seed; below zero: the mechanism pays. None for
    `FULL` itself."""
    mean_difference: Estimate | None
    """The same of the mean fitness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """What each mechanism is worth."""

    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    evaluations: int
    """Budget of each run."""
    arms: tuple[ArmResult, ...]
    """`FULL` first."""
    runs: tuple[AblationRun, ...]
    """In the order in which they were made."""


def ablate(
    run: Callable[[AblationTrial], TrialResult],
    *,
    tasks: Sequence[str],
    seeds: Sequence[int],
    evaluations: int,
    without: Sequence[str] = (),
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Ablation:
    """Run every arm on every task under every seed, and compare each with the full one.

    Args:
        run: Makes one run of `evaluations` evaluations.
        tasks: Names of the tasks.
        seeds: Of the runs.
        evaluations: Budget of each run; a run that ended early keeps its best to the end.
        without: Mechanisms to take away, one by one; empty: `ABLATED`.
        on_progress: Told (runs made, runs in all) after each.

    Raises:
        InvalidArgumentError: a mechanism is unknown, or there are fewer than two seeds.
    """
    arms = (FULL, *(without or ABLATED))
    _check(arms, seeds)
    trials = [
        AblationTrial(arm=arm, task=task, seed=s) for s in seeds for task in tasks for arm in arms
    ]
    runs: list[AblationRun] = []
    for trial in trials:
        runs.append(AblationRun(trial=trial, result=run(trial)))
        on_progress(len(runs), len(trials))
    bootstrap = Bootstrap(len(seeds))
    curves = {arm: _curves(runs, arm, tasks, seeds, evaluations) for arm in arms}
    return Ablation(
        tasks=tuple(tasks),
        seeds=tuple(seeds),
        evaluations=evaluations,
        arms=tuple(_arm_result(arm, curves, runs, bootstrap) for arm in arms),
        runs=tuple(runs),
    )


def _arm_result(
    arm: str, curves: dict[str, np.ndarray], runs: Sequence[AblationRun], bootstrap: Bootstrap
) -> ArmResult:
    results = [one.result for one in runs if one.trial.arm == arm]
    speedups = [r.speedup for r in results if r.speedup is not None]
    own, full = curves[arm], curves[FULL]
    is_full = arm == FULL
    return ArmResult(
        arm=arm,
        final_fitness=bootstrap.mean(own[:, -1]),
        mean_fitness=bootstrap.mean(own.mean(axis=1)),
        solved=share(len(speedups), len(results)),
        speedup=float(np.exp(np.mean(np.log(speedups)))) if speedups else None,
        usd=float(np.mean([r.usd for r in results])),
        final_difference=None if is_full else bootstrap.mean(own[:, -1] - full[:, -1]),
        mean_difference=None if is_full else bootstrap.mean((own - full).mean(axis=1)),
    )


def _curves(
    runs: Sequence[AblationRun],
    arm: str,
    tasks: Sequence[str],
    seeds: Sequence[int],
    evaluations: int,
) -> np.ndarray:
    """Return `(seed, evaluation)` best fitness, mean over tasks."""
    found = {(r.trial.seed, r.trial.task): r.result.curve for r in runs if r.trial.arm == arm}
    return np.array(
        [
            np.mean([_padded(found[seed, task], evaluations) for task in tasks], axis=0)
            for seed in seeds
        ]
    )


def _padded(curve: tuple[float, ...], evaluations: int) -> np.ndarray:
    last = curve[-1] if curve else 0.0
    return np.array([*curve, *[last] * evaluations][:evaluations])


def _check(arms: Sequence[str], seeds: Sequence[int]) -> None:
    for arm in arms[1:]:
        if arm not in mechanisms.MECHANISMS:
            raise InvalidArgumentError(
                f"no mechanism {arm!r}; there are {', '.join(mechanisms.MECHANISMS)}",
                field="without",
            )
    if len(set(arms)) < len(arms):
        raise InvalidArgumentError("a mechanism is named twice", field="without")
    if len(set(seeds)) < 2:
        raise InvalidArgumentError(
            "one seed gives no interval; take at least 2, better 10", field="seeds"
        )

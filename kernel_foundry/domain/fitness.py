"""Fitness of an evaluation: what the archive compares candidates by; from 0, with no upper end.

A candidate that failed is worth 0 to 0.1 by how far it came. A correct one is worth

    0.2 + ln(1 + s / KNEE),

with s its speed-up over the run's yardstick (weighted geometric mean over timed workloads).
Why this function: it rises strictly with speed and has no ceiling, so a faster kernel is always
fitter; from the baseline's speed on, a gain of x % is worth the same ln(1 + x) to within a tenth,
whatever the task and however fast the parent, so gains can be averaged and compared; and it is
bounded below, so the slowest correct kernel is still fitter than any failure. No bound and no
estimate of the device takes part in it. A verdict of trust `suspect` is worth between 0.1 and 0.2.
"""

import math
from collections.abc import Mapping
from typing import Final

from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.speedup import weighted_mean

CORRECT: Final = 0.2
"""Lower bound of a correct candidate whose verdict is trusted."""

KNEE: Final = 1 / 8
"""Speed-up below which a gain counts for less and less: it does not matter which of two kernels is
faster when both are eight times slower than PyTorch."""

_FAILED: Final[Mapping[EvaluationOutcome, float]] = {
    EvaluationOutcome.EXTRACTION_FAILED: 0.0,
    EvaluationOutcome.PLAN_ERROR: 0.0,
    EvaluationOutcome.COMPILE_ERROR: 0.0,
    EvaluationOutcome.REJECTED: 0.0,
    EvaluationOutcome.LAUNCH_ERROR: 0.05,
    EvaluationOutcome.CRASHED: 0.05,
    EvaluationOutcome.TIMEOUT: 0.05,
    EvaluationOutcome.WRONG_RESULT: 0.1,
    EvaluationOutcome.NONDETERMINISTIC: 0.1,
    EvaluationOutcome.BUILT: 0.05,
}


_MOST_OF_A_FAILURE: Final = max(_FAILED.values())


def correct_fitness(speedup: float) -> float:
    """Return the fitness of a correct candidate.

    Args:
        speedup: Yardstick over candidate, above 0.
    """
    return CORRECT + math.log1p(speedup / KNEE)


def ranked_speedup(fitness: float) -> float | None:
    """Return the speed-up over the run's yardstick that `fitness` stands for.

    At the upper bound of the candidate's time: what candidates of a run are ranked by. None for
    what failed, or is suspect.
    """
    return KNEE * math.expm1(fitness - CORRECT) if fitness > CORRECT else None


def failure_fitness(outcome: EvaluationOutcome) -> float:
    """Return the fitness of a candidate that ended with `outcome`, which is not PASSED."""
    return _FAILED[outcome]


def fitness_bounds(
    evaluation: Evaluation, baselines_ns: Mapping[str, float]
) -> tuple[float, float]:
    """Return the certain fitness of `evaluation`, and the best that it may have.

    The two are its fitness at the upper and at the lower bound of the median's 95 % interval;
    they are equal for what did not pass.

    Args:
        evaluation: The verdict.
        baselines_ns: Yardstick of each timed workload: the fastest baseline when the run began,
            also where the verdict has fresher ones, so that all candidates of a run compare.
    """
    if not evaluation.passed:
        worth = failure_fitness(evaluation.outcome)
        return worth, worth
    timed = [
        (baselines_ns[w.workload], w.call_bounds_ns, w.weight)
        for w in evaluation.workloads
        if not w.held_out and w.call_bounds_ns is not None
    ]
    weights = [weight for _, _, weight in timed]
    certain, best = (
        correct_fitness(weighted_mean([slow / call[bound] for slow, call, _ in timed], weights))
        for bound in (2, 0)
    )
    return certain, best


def suspect_fitness(fitness: float) -> float:
    """Return the fitness of a correct candidate whose verdict is suspect.

    Above every failure and below every correct one that is trusted, in the order of
    `fitness`: so no suspect wins while there is another candidate.
    """
    return _MOST_OF_A_FAILURE + (CORRECT - _MOST_OF_A_FAILURE) * fitness / (1.0 + fitness)

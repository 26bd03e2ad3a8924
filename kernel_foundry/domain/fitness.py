"""Fitness of an evaluation in [0, 1].

Source: SOL-ExecBench's score, mapped on 0.2 to 1 for correct candidates (design: archive).
"""

from collections.abc import Mapping

from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome, WorkloadResult

_FAILED = {
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


def sol_score(time_ns: float, baseline_ns: float, sol_ns: float) -> float:
    """Return 1 at the speed of light, 0.5 at the baseline, towards 0 when slower.

    S = 1 / (1 + (T - T_sol) / (T_base - T_sol)). A baseline that is itself at the speed of
    light leaves no room, so the gap is kept at 1 % of the baseline or more.
    """
    gap_ns = max(baseline_ns - sol_ns, 0.01 * baseline_ns)
    return 1.0 / (1.0 + max(time_ns - sol_ns, 0.0) / gap_ns)


def fitness_bounds(
    evaluation: Evaluation, baselines_ns: Mapping[str, float]
) -> tuple[float, float]:
    """Return what `evaluation` is worth for certain and at best, dimensionless in [0, 1].

    Correct candidates get 0.2 + 0.8 * mean over timed workloads of `sol_score`, with T the upper
    and the lower bound of the median's 95 % interval; the two are equal for others.

    Args:
        evaluation: The verdict.
        baselines_ns: Yardstick of each timed workload: the admission's fastest baseline, also
            where the verdict has fresher ones, so that all candidates of a run compare.
    """
    if not evaluation.passed:
        worth = failure_fitness(evaluation.outcome)
        return worth, worth
    results = [w for w in evaluation.workloads if not w.held_out and w.timing is not None]
    certain, best = (
        sum(_score(w, baselines_ns[w.workload], bound) for w in results) / len(results)
        for bound in (1, 0)
    )
    return correct_fitness(certain), correct_fitness(best)


def failure_fitness(outcome: EvaluationOutcome) -> float:
    """Return what a candidate that ended with `outcome`, not PASSED, is worth."""
    return _FAILED[outcome]


def correct_fitness(score: float) -> float:
    """Return what a correct candidate with a (mean) `sol_score` of `score` is worth."""
    return 0.2 + 0.8 * score


def _score(result: WorkloadResult, baseline_ns: float, bound: int) -> float:
    if result.timing is None:
        return 0.0
    return sol_score(result.timing.ci95_ns[bound], baseline_ns, result.sol_ns or 0.0)

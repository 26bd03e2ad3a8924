"""Fitness of an evaluation in [0, 1].

Source: SOL-ExecBench's score, mapped on 0.2 to 1 for correct candidates (design: archive).
"""

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
}


def sol_score(time_ns: float, baseline_ns: float, sol_ns: float) -> float:
    """Return 1 at the speed of light, 0.5 at the baseline, towards 0 when slower.

    S = 1 / (1 + (T - T_sol) / (T_base - T_sol)). A baseline that is itself at the speed of
    light leaves no room, so the gap is kept at 1 % of the baseline or more.
    """
    gap_ns = max(baseline_ns - sol_ns, 0.01 * baseline_ns)
    return 1.0 / (1.0 + max(time_ns - sol_ns, 0.0) / gap_ns)


def fitness(evaluation: Evaluation) -> float:
    """Return the fitness of `evaluation`, dimensionless in [0, 1].

    Correct candidates get 0.2 + 0.8 * mean over timed workloads of `sol_score`, with T the
    upper bound of the median's 95 % interval.
    """
    return _fitness_at(evaluation, bound=1)


def optimistic_fitness(evaluation: Evaluation) -> float:
    """Return the same with T the lower bound: what the candidate may be worth at best."""
    return _fitness_at(evaluation, bound=0)


def _fitness_at(evaluation: Evaluation, *, bound: int) -> float:
    if not evaluation.passed:
        return _FAILED[evaluation.outcome]
    scores = [_workload_score(w, bound) for w in evaluation.workloads if not w.held_out]
    return 0.2 + 0.8 * sum(scores) / len(scores)


def _workload_score(result: WorkloadResult, bound: int) -> float:
    if result.timing is None or not result.baselines:
        return 0.0
    baseline_ns = min(b.timing.median_ns for b in result.baselines)
    return sol_score(result.timing.ci95_ns[bound], baseline_ns, result.sol_ns or 0.0)

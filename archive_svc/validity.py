"""What must hold for a run and for a verdict before they are stored.

Knows nothing of where they come from: a caller, or a file.
"""

import math
import re

from archive_svc.strategies import STRATEGIES
from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.errors import InvalidArgumentError

_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")


def is_run_name(text: str) -> bool:
    """Return whether a run may be called so."""
    return _NAME.fullmatch(text) is not None


def check_spec(spec: RunSpec) -> None:
    """Refuse a run whose name or strategy cannot be.

    Raises:
        InvalidArgumentError: it says which field and what is allowed.
    """
    if not is_run_name(spec.name):
        raise InvalidArgumentError(
            f"run name {spec.name!r}: expected 1 to 200 of A-Z a-z 0-9 . _ -", field="name"
        )
    if spec.strategy not in STRATEGIES:
        raise InvalidArgumentError(
            f"strategy {spec.strategy!r}: expected one of {', '.join(STRATEGIES)}",
            field="strategy",
        )


def check_verdict(candidate: Candidate, evaluation: Evaluation, cost_usd: float) -> None:
    """Refuse numbers that no verdict has, and a verdict on another candidate.

    Raises:
        InvalidArgumentError: it says which field and what is allowed.
    """
    if not (math.isfinite(cost_usd) and cost_usd >= 0):
        raise InvalidArgumentError(f"cost_usd is {cost_usd}, expected >= 0", field="cost_usd")
    for name in ("fitness", "optimistic_fitness"):
        value = getattr(evaluation, name)
        if not 0 <= value < math.inf:
            raise InvalidArgumentError(
                f"{name} is {value}, expected a number from 0", field=f"evaluation.{name}"
            )
    for result in evaluation.workloads:
        timings = [b.timing for b in result.baselines]
        for timing in (*timings, *([result.timing] if result.timing else [])):
            if not 0 < timing.median_ns < math.inf:
                raise InvalidArgumentError(
                    f"a median of {result.workload} is {timing.median_ns} ns, expected > 0",
                    field="evaluation.workloads",
                )
    # A text that the evaluator could not read has a digest of its own there.
    if evaluation.passed and evaluation.candidate != candidate.digest:
        raise InvalidArgumentError(
            f"the verdict is on candidate {evaluation.candidate}, not on {candidate.digest}",
            field="evaluation.candidate",
        )

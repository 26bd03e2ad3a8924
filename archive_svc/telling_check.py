"""What a telling must fulfil whatever was told before; the store checks the rest.

Whoever brings tellings checks them with this: a caller of the port, or a file that is imported.
"""

import math

from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.errors import InvalidArgumentError


def check_telling(candidate: Candidate, evaluation: Evaluation, cost_usd: float) -> None:
    """Refuse numbers that no archive can order by, and a verdict on another candidate.

    Raises:
        InvalidArgumentError: `metadata["field"]` names the field.
    """
    if not (cost_usd >= 0 and math.isfinite(cost_usd)):
        raise InvalidArgumentError(f"cost_usd is {cost_usd}, expected >= 0", field="cost_usd")
    for name in ("fitness", "optimistic_fitness"):
        value = getattr(evaluation, name)
        if not 0 <= value <= 1:
            raise InvalidArgumentError(
                f"{name} is {value}, expected 0 to 1", field=f"evaluation.{name}"
            )
    # A text that the evaluator could not read has a digest of its own there.
    if evaluation.passed and evaluation.candidate != candidate.digest:
        raise InvalidArgumentError(
            f"the verdict is on candidate {evaluation.candidate}, not on {candidate.digest}",
            field="evaluation.candidate",
        )

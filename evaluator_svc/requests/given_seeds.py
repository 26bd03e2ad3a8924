"""Seeds that a caller gives to have a verdict again; they come from a file, so they are checked."""

from evaluator_svc.messages.draw import SEED_COUNT
from evaluator_svc.sizes.generated_workloads import generated_workload
from kernel_foundry.domain.foreign import ForeignRequest
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.errors import InvalidArgumentError

_END = 2**63
"""Of what a generator of random numbers takes."""


def check_seeds(request: EvaluationRequest | ForeignRequest) -> None:
    """Refuse seeds that no evaluation draws.

    Raises:
        InvalidArgumentError: a workload is unknown or comes twice, or its seeds are too few, too
            many or out of range.
    """
    names = [given.workload for given in request.seeds]
    task = request.task
    known = {workload.name for workload in task.workloads}
    for name in names:
        is_known = name in known or generated_workload(task, name) is not None
        if not is_known or names.count(name) > 1:
            raise InvalidArgumentError(
                f"seeds of {name}: it is not a workload of the task, or it is given twice",
                field="seeds",
            )
    for given in request.seeds:
        if len(given.seeds) != SEED_COUNT or not all(0 <= s < _END for s in given.seeds):
            raise InvalidArgumentError(
                f"seeds of {given.workload}: expected {SEED_COUNT} whole numbers from 0 to 2^63",
                field="seeds",
            )

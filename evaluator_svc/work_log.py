"""Lines of the evaluator's log: each admission and each verdict as it begins and as it ends."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.processes.call_stop import CallStoppedError
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.foreign import ForeignRequest
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def logged(what: str, task: Task, device: str) -> Iterator[Callable[[str], None]]:
    """Log that work on a task begins, and how it ended and after how many seconds.

    Yields what is told the outcome; work that is left without one has failed.

    Args:
        what: The work, such as "admission".
        task: The task, which may have no name.
        device: Id of the device.
    """
    about = f"{what} of {task.name or f'task {task.digest[:8]}'} on {device}"
    outcome, began_s = "failed", time.monotonic()

    def told(text: str) -> None:
        nonlocal outcome
        outcome = text

    _log.info("%s begins", about)
    try:
        yield told
    except CallStoppedError:
        outcome = "stopped, nobody waits for it"
        raise
    finally:
        _log.info("%s: %s, %.1f s", about, outcome, time.monotonic() - began_s)


def logged_verdict(
    request: EvaluationRequest | ForeignRequest, site: DeviceSite, judge: Callable[[], Evaluation]
) -> Evaluation:
    """Return the verdict that `judge` gives on a candidate; log it as `logged` does."""
    with logged(f"verdict on {request.source.digest[:8]}", request.task, site.spec.id) as ended:
        evaluation = judge()
        ended(evaluation.outcome.name)
    return evaluation

"""A runner's requests, from the first to the last: each is answered by the candidate's session."""

from collections.abc import Callable
from functools import partial
from typing import Final

from evaluator_svc.messages.locked import CandidateFailure, OwnFailure
from evaluator_svc.messages.runner import (
    DropRequest,
    LoadRequest,
    PoolRequest,
    RunAgainRequest,
    RunRequest,
    StepTimesRequest,
    TimeRequest,
)
from evaluator_svc.processes.conversation import Conversation, ReceivedMessage
from evaluator_svc.processes.locked_process import OpenDevice, answer_attempts
from evaluator_svc.runner.faults import CandidateFaultError
from evaluator_svc.runner.session import Session
from evaluator_svc.sandbox.attempt import AttemptRequest
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.errors import BackendUnavailableError

_REQUESTS: Final = (
    LoadRequest,
    RunRequest,
    RunAgainRequest,
    PoolRequest,
    TimeRequest,
    StepTimesRequest,
    DropRequest,
)
_HARMLESS: Final = ("resources", "invalid")
"""Kinds of a native launch error after which a device context is as good as before."""


def answer_requests(conversation: Conversation, opened: OpenDevice) -> None:
    """Answer until the supervisor has enough, or after a fault nothing more can run here."""
    session = Session(opened)
    received = conversation.receive(LoadRequest, AttemptRequest)
    if isinstance(received.message, AttemptRequest):
        answer_attempts(conversation, received.message)
    while _answer(conversation, _step(session, received)):
        received = conversation.receive(*_REQUESTS)


def _step(session: Session, received: ReceivedMessage) -> Callable[[], object]:
    request = received.message
    match request:
        case LoadRequest():
            return partial(session.load, request, received.blobs, received.descriptors)
        case RunRequest():
            return partial(session.run, request, received.descriptors)
        case RunAgainRequest():
            return partial(session.run_again, request)
        case PoolRequest():
            return partial(session.fill_pool, request)
        case TimeRequest():
            return partial(session.time, request, received.descriptors)
        case StepTimesRequest():
            return partial(session.step_times, request)
        case _:
            return partial(session.drop, request)


def _answer(conversation: Conversation, step: Callable[[], object]) -> bool:
    """Send what `step` returns, or the candidate's fault; return whether to go on."""
    try:
        answer = step()
    except CandidateFaultError as fault:
        failure = CandidateFailure(
            outcome=fault.outcome, findings=(fault.finding,), is_runner_usable=_is_harmless(fault)
        )
        conversation.send(failure)
        return failure.is_runner_usable
    except BackendUnavailableError as error:  # nothing of a candidate has run yet
        conversation.send(OwnFailure.of(error))
        return False
    conversation.send(answer)
    return True


def _is_harmless(fault: CandidateFaultError) -> bool:
    ran = fault.outcome in (EvaluationOutcome.LAUNCH_ERROR, EvaluationOutcome.CRASHED)
    return not ran or getattr(fault.__cause__, "kind", "") in _HARMLESS

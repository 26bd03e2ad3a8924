"""A runner's requests, from the first to the last: each is answered by the candidate's session."""

from collections.abc import Callable
from functools import partial

from evaluator_svc.messages.locked import (
    CandidateFailure,
    DropRequest,
    LoadRequest,
    OwnFailure,
    PoolRequest,
    RunAgainRequest,
    RunRequest,
    ShareRequest,
    TimeRequest,
)
from evaluator_svc.messages.sweep import SweepOpen
from evaluator_svc.processes.conversation import Conversation
from evaluator_svc.processes.locked_process import OpenDevice, answer_attempts
from evaluator_svc.runner.faults import CandidateFaultError
from evaluator_svc.runner.session import Session
from evaluator_svc.runner.sweep_answers import answer_sweep
from evaluator_svc.sandbox.attempt import AttemptRequest
from kernel_foundry.errors import BackendUnavailableError


def answer_requests(conversation: Conversation, opened: OpenDevice) -> None:
    """Answer requests about one candidate, or about a sweep, until the supervisor has enough."""
    received = conversation.receive(LoadRequest, SweepOpen, AttemptRequest)
    if isinstance(received.message, AttemptRequest):
        answer_attempts(conversation, received.message)
    if isinstance(received.message, SweepOpen):
        answer_sweep(conversation, opened, received)
        return
    session = Session(opened)
    try:
        if not _answer(conversation, partial(session.load, received.message, received.blobs)):
            return
    except BackendUnavailableError as error:  # nothing of a candidate has run yet
        conversation.send(OwnFailure.of(error))
        return
    while True:
        received = conversation.receive(
            RunRequest, RunAgainRequest, PoolRequest, TimeRequest, ShareRequest, DropRequest
        )
        request = received.message
        step: Callable[[], object]
        match request:
            case RunRequest():
                step = partial(session.run, request, received.descriptors)
            case RunAgainRequest():
                step = partial(session.run_again, request)
            case PoolRequest():
                step = partial(session.fill_pool, request)
            case TimeRequest():
                step = partial(session.time, request, received.descriptors)
            case ShareRequest():
                step = partial(session.share, request)
            case _:
                step = partial(session.drop, request.workload)
        if not _answer(conversation, step):
            return


def _answer(conversation: Conversation, step: Callable[[], object]) -> bool:
    """Send what `step` returns, or the candidate's fault; return whether to go on."""
    try:
        answer = step()
    except CandidateFaultError as fault:
        conversation.send(CandidateFailure(outcome=fault.outcome, findings=(fault.finding,)))
        return False
    conversation.send(answer)
    return True

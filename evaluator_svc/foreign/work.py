"""The process of one foreign kernel, from its lock to its last sample.

Everything here shares the process with the candidate's own code, which may find and change all of
it. So results are judged from shared memory by the judge, times are held against the supervisor's
clock, and the verdict names what neither of them can see.
"""

from collections.abc import Callable
from functools import partial

import torch

from evaluator_svc.foreign.device import ForeignDevice
from evaluator_svc.foreign.session import ForeignSession
from evaluator_svc.messages.foreign import (
    ForeignBindRequest,
    ForeignLoadRequest,
    ForeignOpenRequest,
    ForeignStateRequest,
    ForeignTimeRequest,
    KeepRequest,
)
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.runner import RunAgainRequest, RunRequest
from evaluator_svc.processes.conversation import Conversation, ReceivedMessage
from evaluator_svc.processes.locked_process import serve_foreign
from evaluator_svc.runner.faults import CandidateFaultError
from evaluator_svc.sandbox.absent_packages import hide_own_packages

_REQUESTS = (
    ForeignLoadRequest,
    ForeignBindRequest,
    ForeignOpenRequest,
    RunRequest,
    RunAgainRequest,
    ForeignTimeRequest,
    KeepRequest,
    ForeignStateRequest,
)


def serve(conversation: Conversation) -> None:
    """Lock this process in and answer until the supervisor has enough; ends the process."""
    serve_foreign(answer_requests, ForeignDevice.open, conversation)


def answer_requests(conversation: Conversation, device: ForeignDevice) -> None:
    """Answer until the supervisor has enough, or the candidate is at fault."""
    torch.set_float32_matmul_precision("highest")
    torch.set_grad_enabled(False)
    session = ForeignSession(device)
    hide_own_packages()
    while _answer(conversation, _step(session, conversation.receive(*_REQUESTS))):
        pass


def _step(session: ForeignSession, received: ReceivedMessage) -> Callable[[], object]:
    request = received.message
    match request:
        case ForeignLoadRequest():
            return partial(session.load, request)
        case ForeignBindRequest():
            return partial(session.bind, request)
        case ForeignOpenRequest():
            return partial(session.open, request, received.descriptors)
        case RunRequest():
            return partial(session.run, request, received.descriptors)
        case RunAgainRequest():
            return partial(session.run_again, request)
        case ForeignTimeRequest():
            return partial(session.time, request)
        case KeepRequest():
            return partial(session.keep, request)
        case _:
            return session.changes


def _answer(conversation: Conversation, step: Callable[[], object]) -> bool:
    try:
        answer = step()
    except CandidateFaultError as fault:
        conversation.send(CandidateFailure(outcome=fault.outcome, findings=(fault.finding,)))
        return False
    conversation.send(answer)
    return True

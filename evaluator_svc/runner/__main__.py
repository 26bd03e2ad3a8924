"""A runner: runs and times one candidate, then is thrown away.

A kernel on the CPU device is native code in this very process, so nothing that it says is
trusted. It holds no expected value and nothing of another candidate. Knows nothing of torch.
"""

from collections.abc import Callable
from typing import Any

from evaluator_svc.conversation import Conversation
from evaluator_svc.locked_process import OpenDevice, serve
from evaluator_svc.messages import (
    CandidateFailed,
    Done,
    DropRequest,
    LoadRequest,
    PoolRequest,
    RunRequest,
    TimeRequest,
)
from evaluator_svc.runner.session import CandidateFaultError, Session


def run(conversation: Conversation, opened: OpenDevice) -> None:
    """Answer requests about one candidate until the supervisor has enough."""
    session = Session(opened)
    received = conversation.receive(LoadRequest)
    if not _answer(conversation, lambda: session.load(received.message, received.blobs)):
        return
    while True:
        received = conversation.receive(RunRequest, PoolRequest, TimeRequest, DropRequest)
        request = received.message
        match request:
            case RunRequest():
                descriptors = received.descriptors
                ok = _answer(conversation, lambda: session.run(request, descriptors))  # noqa: B023
            case PoolRequest():
                ok = _answer(conversation, lambda: session.fill_pool(request))  # noqa: B023
            case TimeRequest():
                ok = _answer(conversation, lambda: session.time(request))  # noqa: B023
            case _:
                session.drop(request.workload)
                conversation.send(Done())
                ok = True
        if not ok:
            return


def _answer(conversation: Conversation, step: Callable[[], Any]) -> bool:
    """Send what `step` returns, or the candidate's fault; return whether to go on."""
    try:
        answer = step()
    except CandidateFaultError as fault:
        conversation.send(CandidateFailed(outcome=fault.outcome, findings=(fault.finding,)))
        return False
    conversation.send(answer)
    return True


if __name__ == "__main__":
    serve(run)

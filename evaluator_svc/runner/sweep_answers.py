"""A sweep's requests to a runner: after a configuration's fault it goes on, if it can."""

from collections.abc import Callable
from functools import partial
from typing import Final

from evaluator_svc.messages.locked import DoneReply
from evaluator_svc.messages.sweep import ConfigurationFailure, TimeAgainRequest, TryRequest
from evaluator_svc.plan_inputs import is_not_meant
from evaluator_svc.processes.conversation import Conversation, ReceivedMessage
from evaluator_svc.processes.locked_process import OpenDevice
from evaluator_svc.runner.faults import CandidateFaultError
from evaluator_svc.runner.sweep_session import SweepSession
from kernel_foundry.domain.evaluation import EvaluationOutcome

_HARMLESS: Final = ("resources", "invalid")
"""Kinds of a native launch error after which a device context is as good as before."""


def answer_sweep(conversation: Conversation, opened: OpenDevice, received: ReceivedMessage) -> None:
    """Answer a `SweepOpen`, then requests about configurations until a fault is too bad."""
    session = SweepSession(opened, received.message, received.descriptors)
    conversation.send(DoneReply())
    answer: object
    while True:
        received = conversation.receive(TryRequest, TimeAgainRequest)
        request = received.message
        step: Callable[[], object]
        if isinstance(request, TryRequest):
            step = partial(session.attempt, request, received.blobs)
        else:
            step = partial(session.time_again, request)
        try:
            answer = step()
        except CandidateFaultError as fault:
            answer = _failed(fault)
        conversation.send(answer)
        if isinstance(answer, ConfigurationFailure) and not answer.is_usable:
            return


def _failed(fault: CandidateFaultError) -> ConfigurationFailure:
    cause = fault.__cause__
    ran = fault.outcome in (EvaluationOutcome.LAUNCH_ERROR, EvaluationOutcome.CRASHED)
    return ConfigurationFailure(
        outcome=fault.outcome,
        findings=(fault.finding,),
        is_not_meant=is_not_meant(fault.finding),
        is_usable=not ran or getattr(cause, "kind", "") in _HARMLESS,
    )

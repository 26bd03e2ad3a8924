"""An inspector's requests: object codes of one candidate, any number, one after the other."""

from evaluator_svc.inspector.inspect import inspect_cubin, inspect_spirv
from evaluator_svc.messages.inspect import InspectReply, InspectRequest
from evaluator_svc.object_report import ObjectReport
from evaluator_svc.processes.conversation import Conversation, ReceivedMessage
from evaluator_svc.processes.locked_process import answer_attempts
from evaluator_svc.sandbox.attempt import AttemptRequest
from kernel_foundry.domain.language import Language


def answer_requests(conversation: Conversation) -> None:
    """Answer until the supervisor has enough."""
    received = conversation.receive(InspectRequest, AttemptRequest)
    if isinstance(received.message, AttemptRequest):
        answer_attempts(conversation, received.message)
    while True:
        conversation.send(InspectReply(report=_report(received)))
        received = conversation.receive(InspectRequest)


def _report(received: ReceivedMessage) -> ObjectReport:
    request: InspectRequest = received.message
    code, assembly = received.blobs
    if request.language is Language.CUDA:
        return inspect_cubin(code, assembly, request.kernels, log=request.log)
    return inspect_spirv(code, request.kernels)

"""An inspector's requests: object codes of one candidate, any number, one after the other."""

import pkgutil

from evaluator_svc.languages import BACKENDS, backend_of
from evaluator_svc.messages.inspector import InspectReply, InspectRequest
from evaluator_svc.messages.object_report import ObjectReport
from evaluator_svc.processes.conversation import Conversation, ReceivedMessage
from evaluator_svc.processes.locked_process import answer_attempts
from evaluator_svc.sandbox.attempt import AttemptRequest

# Readers are imported before a process forks or locks itself in.
for _backend in BACKENDS.values():
    pkgutil.resolve_name(_backend.object_reader)


def answer_requests(conversation: Conversation) -> None:
    """Answer until the supervisor has enough."""
    received = conversation.receive(InspectRequest, AttemptRequest)
    if isinstance(received.message, AttemptRequest):
        answer_attempts(conversation, received.message)
    while True:
        conversation.send(InspectReply(report=report_of(received)))
        received = conversation.receive(InspectRequest)


def report_of(received: ReceivedMessage) -> ObjectReport:
    """Return the report on the object code beside a request, by the reader of its language."""
    request: InspectRequest = received.message
    code, assembly = received.blobs
    inspect = pkgutil.resolve_name(backend_of(request.language).object_reader)
    report: ObjectReport = inspect(code, assembly, request.kernels, log=request.log)
    return report

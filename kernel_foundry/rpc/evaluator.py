"""`Evaluator` over gRPC: the same port, another process."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.device import Capabilities
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.foreign import ForeignRequest
from kernel_foundry.domain.probe import Probe
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.sweep import ConfigurationResult, SweepRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.evaluator.v1 import evaluator_service_pb2 as pb2
from kernel_foundry.evaluator.v1.evaluator_service_pb2_grpc import EvaluatorServiceStub
from kernel_foundry.rpc.admission_names import require_names
from kernel_foundry.rpc.connection import DEFAULT_OPTIONS, CallOptions, Connection
from kernel_foundry.rpc.field_paths import fields_of
from kernel_foundry.rpc.verdict_identity import require_asked
from kernel_foundry.wire.message import build, read_field

SWEEP_SLACK_S = 900.0
"""Seconds of a sweep's call beyond its own budget: the queue and the task's admission."""


class RemoteEvaluator:
    """The evaluator at an address; implements `kernel_foundry.ports.Evaluator`.

    Every method may also raise `ServiceUnavailableError`, which names the target, and
    `DeadlineExceededError`. Made and used in one event loop.

    Args:
        target: `unix:/path`, `host:port` or `host:port/application`.
        options: Deadlines and retries.
    """

    def __init__(self, target: str, options: CallOptions = DEFAULT_OPTIONS) -> None:
        self._connection = Connection(target, options)
        self._stub = EvaluatorServiceStub(self._connection.channel)

    async def capabilities(self) -> Capabilities:
        """Return devices, what is missing and why, and what isolates candidates."""
        request = pb2.GetCapabilitiesRequest()
        # Work: the first call may measure the devices' peaks.
        response = await self._connection.work(self._stub.GetCapabilities, request, repeatable=True)
        return read_field(Capabilities, response, "capabilities")

    async def admit(self, task: Task, device: str = "") -> Admission:
        """Run the reference, time baselines, derive the tolerance.

        Raises:
            MalformedAnswerError: the answer has names that no task and no device has.
        """
        request = build(pb2.AdmitTaskRequest, task=task, device=device)
        response = await self._connection.work(self._stub.AdmitTask, request, repeatable=True)
        admission = read_field(Admission, response, "admission")
        require_names(admission)
        return admission

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate. Never raises for a bad candidate.

        Tried again only when the request has a `request_id`.

        Raises:
            VerdictMismatchError: the answer is on another candidate or task.
        """
        with fields_of("request"):
            response = await self._connection.work(
                self._stub.EvaluateKernel,
                build(pb2.EvaluateKernelRequest, request=request),
                repeatable=bool(request.request_id),
            )
        evaluation = read_field(Evaluation, response, "evaluation")
        require_asked(request, evaluation)
        return evaluation

    async def evaluate_foreign(self, request: ForeignRequest) -> Evaluation:
        """Judge a foreign kernel; raises as `evaluate`."""
        with fields_of("request"):
            message = build(pb2.EvaluateForeignRequest, request=request)
            response = await self._connection.work(
                self._stub.EvaluateForeign, message, repeatable=False
            )
        evaluation = read_field(Evaluation, response, "evaluation")
        require_asked(request, evaluation)
        return evaluation

    async def sweep(self, request: SweepRequest) -> AsyncGenerator[ConfigurationResult, None]:
        """Try every configuration of one candidate; yield each result once it is final."""
        with fields_of("request"):
            responses = self._connection.stream(
                self._stub.SweepKernel,
                build(pb2.SweepKernelRequest, request=request),
                timeout_s=request.seconds + SWEEP_SLACK_S,
            )
            async with aclosing(responses):
                async for response in responses:
                    if response.HasField("result"):  # an ingress puts an empty one before an error
                        yield read_field(ConfigurationResult, response, "result")

    async def probe(self, device: str = "") -> tuple[Probe, ...]:
        """Try what must work and what must not on the evaluator's host."""
        request = build(pb2.ProbeHostRequest, device=device)
        response = await self._connection.work(self._stub.ProbeHost, request, repeatable=True)
        return read_field(tuple[Probe, ...], response, "probes")

    async def close(self) -> None:
        """Close the connection; the service goes on."""
        await self._connection.close()

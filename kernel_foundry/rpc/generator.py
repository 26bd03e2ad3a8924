"""`Generator` over gRPC: the same port, another process."""

from kernel_foundry.domain.request import Proposal, ProposalRequest
from kernel_foundry.generator.v1 import generator_service_pb2 as pb2
from kernel_foundry.generator.v1.generator_service_pb2_grpc import GeneratorServiceStub
from kernel_foundry.rpc.connection import DEFAULT_OPTIONS, CallOptions, Connection
from kernel_foundry.wire.message import build, read_field


class RemoteGenerator:
    """The generator at an address; implements `kernel_foundry.ports.Generator`.

    Every method may also raise `ServiceUnavailableError`, which names the target, and
    `DeadlineExceededError`. Made and used in one event loop.

    Args:
        target: `unix:/path` or `host:port`.
        options: Deadlines and retries.
    """

    def __init__(self, target: str, options: CallOptions = DEFAULT_OPTIONS) -> None:
        self._connection = Connection(target, options)
        self._stub = GeneratorServiceStub(self._connection.channel)

    async def propose(self, request: ProposalRequest) -> Proposal:
        """Make one proposal; never tried again by itself, since a proposal may cost money."""
        response = await self._connection.work(
            self._stub.ProposeCandidate,
            build(pb2.ProposeCandidateRequest, request=request),
            repeatable=False,
        )
        return read_field(Proposal, response, "proposal")

    async def list_models(self) -> tuple[str, ...]:
        """Return the models that can be used now, the default first."""
        response = await self._connection.quick(self._stub.ListModels, pb2.ListModelsRequest())
        return tuple(response.models)

    async def close(self) -> None:
        """Close the connection; the service goes on."""
        await self._connection.close()

"""`Generator` over gRPC: the same port, another process."""

from kernel_foundry.domain.account import RunAccount
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.bounds import check_limit
from kernel_foundry.domain.exchange import Exchange
from kernel_foundry.domain.model_limit import ModelLimit
from kernel_foundry.domain.request import Proposal, ProposalOutcome, ProposalRequest
from kernel_foundry.generator.v1 import generator_service_pb2 as pb2
from kernel_foundry.generator.v1.generator_service_pb2_grpc import GeneratorServiceStub
from kernel_foundry.rpc.connection import DEFAULT_OPTIONS, CallOptions, Connection
from kernel_foundry.rpc.field_paths import fields_of
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
        with fields_of("request"):
            response = await self._connection.work(
                self._stub.ProposeCandidate,
                build(pb2.ProposeCandidateRequest, request=request),
                repeatable=False,
            )
        return read_field(Proposal, response, "proposal")

    async def report(self, outcome: ProposalOutcome) -> None:
        """Learn from what became of a proposal; a second report of it changes nothing."""
        with fields_of("outcome"):
            request = build(pb2.ReportOutcomeRequest, outcome=outcome)
            await self._connection.quick(self._stub.ReportOutcome, request)

    async def account(self, run: str) -> RunAccount:
        """Return the run's account so far."""
        response = await self._connection.quick(
            self._stub.GetRunAccount, pb2.GetRunAccountRequest(run=run)
        )
        return read_field(RunAccount, response, "account")

    async def forget_run(self, run: str) -> None:
        """Remove a run's exchanges and what it took, for good; what it taught stays."""
        await self._connection.quick(self._stub.ForgetRun, pb2.ForgetRunRequest(run=run))

    async def rename_run(self, run: str, new_name: str) -> None:
        """Keep a run's exchanges and what it took under another name."""
        request = pb2.RenameRunRequest(run=run, new_name=new_name)
        await self._connection.quick(self._stub.RenameRun, request)

    async def exchanges(self, run: str, *, after: int = 0, limit: int = 20) -> tuple[Exchange, ...]:
        """Return up to `limit` exchanges of a run with a sequence above `after`, in order."""
        check_limit(limit)
        request = pb2.ListExchangesRequest(run=run, after=after, page_size=limit)
        return await self._connection.ask(
            tuple[Exchange, ...], "exchanges", self._stub.ListExchanges, request
        )

    async def check_models(self, models: tuple[str, ...]) -> None:
        """Make sure that what a run may ask can be asked."""
        request = pb2.CheckModelsRequest(models=models)
        await self._connection.quick(self._stub.CheckModels, request)

    async def model_limits(
        self, models: tuple[str, ...], admission: Admission
    ) -> tuple[ModelLimit, ...]:
        """Return which of `models` can propose nothing for the admitted task."""
        request = build(pb2.ListModelLimitsRequest, models=models, admission=admission)
        return await self._connection.ask(
            tuple[ModelLimit, ...], "limits", self._stub.ListModelLimits, request
        )

    async def list_models(self) -> tuple[str, ...]:
        """Return the models that can be used now, the default first."""
        response = await self._connection.quick(self._stub.ListModels, pb2.ListModelsRequest())
        return tuple(response.models)

    async def close(self) -> None:
        """Close the connection; the service goes on."""
        await self._connection.close()

"""A generator without models: each seed gives its own small candidate, at once."""

from kernel_foundry.domain.account import RunAccount
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.candidate import Candidate, KernelSource
from kernel_foundry.domain.exchange import Exchange
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.model_limit import ModelLimit
from kernel_foundry.domain.request import Proposal, ProposalOutcome, ProposalRequest, TokenUsage
from kernel_foundry.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    LlmConfigurationError,
    LlmQuotaError,
)

MODEL = "fake"
"""The only model."""


class FakeGenerator:
    """Implements `kernel_foundry.ports.Generator`."""

    def __init__(self) -> None:
        self.reported: dict[tuple[str, int], ProposalOutcome] = {}
        """What was reported, by run and selection; the first report counts."""

    async def propose(self, request: ProposalRequest) -> Proposal:
        """Propose the candidate of the request's seed and place in its run."""
        await self.check_models(request.models)
        _require_budget(request)
        parent = request.selection.parent
        source = KernelSource(
            language=Language.SYCL,
            device_code=f"// proposal {request.seed}.{request.selection.sequence}",
            plan="def launch(out):\n    pass",
        )
        candidate = Candidate(
            source=source,
            parents=(parent.candidate.digest,) if parent else (),
            operator=request.selection.operator,
            generation=parent.candidate.generation + 1 if parent else 0,
            model=MODEL,
        )
        usage = TokenUsage(
            model=MODEL, input_tokens=1, output_tokens=1, cost_usd=0.0, latency_ms=0.0
        )
        return Proposal(candidate=candidate, usage=(usage,))

    async def report(self, outcome: ProposalOutcome) -> None:
        """Remember it."""
        self.reported.setdefault((outcome.run, outcome.selection), outcome)

    async def account(self, run: str) -> RunAccount:
        """Return empty books: nothing is asked of any model."""
        return RunAccount(run=run)

    async def forget_run(self, run: str) -> None:
        """Forget what was reported of it."""
        self.reported = {key: of for key, of in self.reported.items() if key[0] != run}

    async def rename_run(self, run: str, new_name: str) -> None:
        """Keep what was reported of it under another name."""
        if any(key[0] == new_name for key in self.reported):
            raise AlreadyExistsError(f"something is kept of run {new_name}", run=new_name)
        self.reported = {
            (new_name if of == run else of, selection): outcome
            for (of, selection), outcome in self.reported.items()
        }

    async def exchanges(self, run: str, *, after: int = 0, limit: int = 20) -> tuple[Exchange, ...]:
        """Return nothing: there were none."""
        if after < 0 or limit < 1:
            raise InvalidArgumentError(f"no page of {limit} behind {after}", field="limit")
        return ()

    async def check_models(self, models: tuple[str, ...]) -> None:
        """Refuse every model but the only one."""
        for model in models:
            if model != MODEL:
                raise LlmConfigurationError(f"unknown model {model!r}, only {MODEL}", model=model)

    async def model_limits(
        self, models: tuple[str, ...], admission: Admission
    ) -> tuple[ModelLimit, ...]:
        """Return nothing: its candidates suit every task equally."""
        return ()

    async def list_models(self) -> tuple[str, ...]:
        """Return the only model."""
        return (MODEL,)

    async def close(self) -> None:
        """Do nothing: nothing is held."""


def _require_budget(request: ProposalRequest) -> None:
    caps = request.caps
    if caps.cost_usd is not None and request.spent_usd >= caps.cost_usd:
        raise LlmQuotaError(
            f"the run has spent {request.spent_usd} of {caps.cost_usd} USD",
            spent_usd=str(request.spent_usd),
            cap_usd=str(caps.cost_usd),
        )
    if caps.tokens is not None and request.spent_tokens >= caps.tokens:
        raise LlmQuotaError(
            f"the run has spent {request.spent_tokens} of {caps.tokens} tokens",
            spent_tokens=str(request.spent_tokens),
            cap_tokens=str(caps.tokens),
        )

"""Makes the proposals of a run: each answers a selection and was not judged before."""

import asyncio
from dataclasses import dataclass

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.archive import RunSpec, Selection
from kernel_foundry.domain.candidate import Candidate, KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import BudgetCaps, Proposal, ProposalRequest
from kernel_foundry.errors import (
    KernelFoundryError,
    LlmQuotaError,
    LlmUnavailableError,
    ServiceUnavailableError,
)
from kernel_foundry.ports import Archive, Generator
from kernel_foundry.sdk.loop.budget import StopCause
from kernel_foundry.sdk.loop.budget_meter import BudgetMeter
from kernel_foundry.sdk.loop.proposal_queue import ProposalQueue
from kernel_foundry.sdk.loop.run_steering import RunSteering
from kernel_foundry.tracing import NO_TRACE, Trace

REPEATS_BEFORE_EXHAUSTED = 40
"""Proposals in a row that were judged before; then the search space counts as used up."""

UNANSWERED_BEFORE_GIVING_UP = 8
"""Calls in a row, of each proposal in flight, that no model answers; each has been retried."""

_LONGEST_PAUSE_S = 30.0
"""Between calls that no model answers; the first pause is a sixteenth of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingProposal:
    """A proposal on its way to the evaluator."""

    candidate: Candidate
    selection: int | None = None
    """Number of the selection that it answers; None for what the run is begun with."""
    failure: str = ""
    """Why the reply holds no candidate; empty when it does."""
    trace: Trace = NO_TRACE
    """Of the proposal, from its selection to its place in the archive."""


class Proposer:
    """Asks the archive what to try and the generator for it.

    Args:
        archive: Selects.
        generator: Proposes.
        spec: The run.
        meter: Says when to stop; takes what proposals cost.
        steering: Read before each proposal.
        in_flight: Proposals being made at once.
    """

    def __init__(
        self,
        archive: Archive,
        generator: Generator,
        spec: RunSpec,
        meter: BudgetMeter,
        steering: RunSteering,
        *,
        in_flight: int,
    ) -> None:
        self._archive = archive
        self._generator = generator
        self._spec = spec
        self._meter = meter
        self._steering = steering
        self._in_flight = in_flight
        self.seen: set[str] = set()
        """Digests of all candidates of the run."""
        self.stopped_because: StopCause | None = None
        """Why no more proposals come; those already made are still judged."""
        self._repeats = 0
        self._unanswered = 0
        self._unbooked_usd = 0.0

    async def keep_proposing(
        self, admission: Admission, queue: ProposalQueue[PendingProposal]
    ) -> None:
        """Make proposals that were not judged before until the search stops.

        Raises:
            LlmUnavailableError: no model answered for too long.
            ServiceUnavailableError: nor did the generator.
        """
        while self._meter.stop_cause() is None and self.stopped_because is None:
            await self._meter.hold_for_proposal()
            pending, pause_s = None, 0.0
            try:
                pending = await self._new_proposal(admission)
            except (LlmUnavailableError, ServiceUnavailableError):
                # Short outages of a provider or a service are retried; long ones end the run.
                self._unanswered += 1
                if self._unanswered >= UNANSWERED_BEFORE_GIVING_UP * self._in_flight:
                    raise
                pause_s = self._pause_s()
            finally:
                if pending is None:
                    self._meter.give_back_proposal()
            if pending is not None:
                await queue.put(pending)
            else:
                await asyncio.sleep(pause_s)
        queue.producer_ended()

    async def _new_proposal(self, admission: Admission) -> PendingProposal | None:
        """Return a proposal that was not judged before; None where there is none this time."""
        await self._steering.read()
        await self._steering.until_unpaused()
        if self._meter.stop_cause() is not None or self.stopped_because is not None:
            return None
        try:
            pending = await self._propose(admission)
        except LlmQuotaError:
            self.stopped_because = StopCause.COST
            return None
        self._unanswered = 0
        if pending.candidate.digest in self.seen:
            self._repeats += 1
            assert pending.selection is not None  # a proposal answers one
            await self._archive.drop_selection(self._spec.name, pending.selection)
            pending.trace.end(outcome="known")
            if self._repeats >= REPEATS_BEFORE_EXHAUSTED:
                self.stopped_because = StopCause.EXHAUSTED
            return None
        self._repeats = 0
        self.seen.add(pending.candidate.digest)
        return pending

    def take_cost_usd(self) -> float:
        """Return what proposals have cost since the last call."""
        cost_usd, self._unbooked_usd = self._unbooked_usd, 0.0
        return cost_usd

    def _pause_s(self) -> float:
        """How long to wait before models are asked again: longer the more went wrong."""
        halvings = 4 - min(self._unanswered // self._in_flight, 4)
        return _LONGEST_PAUSE_S / float(1 << halvings)

    async def _propose(self, admission: Admission) -> PendingProposal:
        spec, used = self._spec, self._meter.used
        trace = Trace("proposal", {"run": spec.name, "task": spec.task.name})
        try:
            with trace.step("select"):
                selection = await self._archive.select(spec.name, strategy=spec.strategy)
            with trace.step("propose"):
                proposal = await self._proposal(admission, selection)
        except KernelFoundryError as error:
            trace.end(outcome=error.reason)
            raise
        for usage in proposal.usage:
            used.cost_usd += usage.cost_usd
            self._unbooked_usd += usage.cost_usd
            used.tokens += usage.input_tokens + usage.output_tokens
        candidate = candidate_of(proposal, selection, spec.language)
        return PendingProposal(
            candidate=candidate,
            selection=selection.sequence,
            failure=proposal.failure,
            trace=trace,
        )

    async def _proposal(self, admission: Admission, selection: Selection) -> Proposal:
        try:
            return await self._generator.propose(self._request(admission, selection))
        except (LlmQuotaError, LlmUnavailableError, ServiceUnavailableError):
            await self._archive.drop_selection(self._spec.name, selection.sequence)
            raise

    def _request(self, admission: Admission, selection: Selection) -> ProposalRequest:
        spec, budget, used = self._spec, self._meter.budget, self._meter.used
        return ProposalRequest(
            run=spec.name,
            task=spec.task,
            admission=admission,
            selection=selection,
            models=spec.models,
            seed=spec.seed,
            caps=BudgetCaps(
                cost_usd=budget.cost_usd,
                tokens=budget.tokens,
                requests_per_minute=budget.requests_per_minute,
            ),
            spent_usd=used.cost_usd,
            spent_tokens=used.tokens,
            without=spec.without,
            materials=spec.materials,
        )


def candidate_of(proposal: Proposal, selection: Selection, language: Language) -> Candidate:
    """Return the candidate of a proposal.

    A reply without one is stored, too, with its raw text as the source.
    """
    return proposal.candidate or Candidate(
        source=KernelSource(language=language, device_code=proposal.reply, plan=""),
        operator=selection.operator,
        parents=(selection.parent.candidate.digest,) if selection.parent else (),
        model=proposal.usage[-1].model if proposal.usage else "",
    )

"""The generator: a selection becomes a prompt, a model's reply becomes a candidate.

What verdicts teach is in `learning.py`, calls to models in `model_client.py`, gRPC in `service.py`.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from generator_svc.caps import Spending
from generator_svc.effective_operator import effective_operator
from generator_svc.exchange_log import ExchangeLog
from generator_svc.experience.library import ExperienceLibrary
from generator_svc.experts import EXPERTS, GENERAL, Expert, expert_of
from generator_svc.learning import NO_CONTEXT, Learner, PromptContext, proposal_row
from generator_svc.ledger import RunLedger
from generator_svc.llm.assignment import Assignment
from generator_svc.llm.catalogue import RECIPES
from generator_svc.llm.interface import LanguageModels, ModelReply
from generator_svc.markdown import clip
from generator_svc.meta_prompts.population import MetaPrompts
from generator_svc.meta_prompts.sections import SECTION_NAMES
from generator_svc.model_choice import (
    BanditChooser,
    ModelChooser,
    models_for,
    named_models,
)
from generator_svc.model_client import ModelCall, ModelClient
from generator_svc.prompting.length import CHARS_PER_TOKEN, DEFAULT_MAX_CHARS
from generator_svc.prompting.prompts_in_flight import PromptsInFlight
from generator_svc.prompting.writer import PromptWriter, WrittenPrompt
from generator_svc.recipes import missing_recipe
from generator_svc.replies.reading import proposal_of, source_of
from generator_svc.replies.reasoning import idea_of
from generator_svc.request_limits import check_admission, check_outcome, check_request, check_run
from generator_svc.store import proposals
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain import mechanisms
from kernel_foundry.domain.account import RunAccount
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.exchange import ChatMessage, Exchange, ExchangePurpose, FinishReason
from kernel_foundry.domain.model_limit import ModelLimit
from kernel_foundry.domain.plain import to_json
from kernel_foundry.domain.request import Proposal, ProposalOutcome, ProposalRequest, TokenUsage
from kernel_foundry.errors import LlmConfigurationError, LlmQuotaError, LlmUnavailableError
from kernel_foundry.plan import allowed_library_ops

_MAX_ATTEMPTS = 2
"""The first reply, and one more after a reply without a whole candidate."""

_MAX_REPEATED_REPLY_CHARS = 6_000
"""Characters of an unusable reply that are sent back with the second request."""

_JUDGED_RECALLED = 500
"""Newest verdicts of earlier runs from which the choice of models starts."""


class LocalGenerator:
    """A `kernel_foundry.ports.Generator` that asks language models.

    Args:
        models: Every model that can be reached.
        store: Runs and the lessons from them; closed with the generator.
        exchanges: Where every exchange is stored.
        library: Lessons; on the same store.
        prompts: Writes the prompts.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        *,
        models: LanguageModels,
        store: GeneratorStore,
        exchanges: ExchangeLog,
        library: ExperienceLibrary,
        prompts: PromptWriter | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._models = models
        self._store = store
        self._ledger = RunLedger(store, exchanges)
        self._client = ModelClient(models, self._ledger, clock=clock)
        self._prompts = prompts or PromptWriter()
        self._chooser: ModelChooser | None = None
        self._learner = Learner(
            store, library, MetaPrompts(store), ask=self._ask_for_guidance, clock=clock
        )
        self._in_flight = PromptsInFlight()
        self._unreported: defaultdict[str, list[TokenUsage]] = defaultdict(list)
        """Exchanges in the background that no proposal of their run has listed yet."""

    async def propose(self, request: ProposalRequest) -> Proposal:
        """See `ports.Generator.propose`."""
        check_request(request)
        await self._ledger.check_owner(request.run, is_proposal=True)
        expert = EXPERTS[GENERAL]
        if mechanisms.EXPERTS not in request.without:
            expert = expert_of(request.selection.island)
        question = await self._question(request, expert)
        context = NO_CONTEXT
        if question.models[0] != RECIPES:  # which reads no prompts
            context = await self._learner.context(request, expert)
        max_chars = await self._most_chars(question)
        with self._in_flight.prompt(
            request.run,
            lambda rivals: self._prompts.write(
                request,
                expert=expert,
                lessons=context.lessons,
                sections=context.sections,
                siblings=context.siblings,
                rivals=rivals,
                max_chars=max_chars,
            ),
        ) as written:
            try:
                proposal, text = await self._converse(request, question, written)
            except LlmUnavailableError:
                await self._credit(request.run, question.models[0], answered=False)
                raise
        await self._remember(request, expert, context, written, proposal, idea_of(text))
        if proposal.usage[-1].model != question.models[0]:
            await self._credit(request.run, question.models[0], answered=False)
        unreported = tuple(self._unreported.pop(request.run, ()))
        return replace(proposal, usage=(*unreported, *proposal.usage))

    async def report(self, outcome: ProposalOutcome) -> None:
        """See `ports.Generator.report`."""
        check_outcome(outcome)
        await self._ledger.check_owner(outcome.run)
        learnt = await self._learner.learn(outcome)
        if learnt is not None:
            await self._credit(learnt.run, learnt.model, gain=learnt.gain, usd=learnt.usd)

    async def account(self, run: str) -> RunAccount:
        """See `ports.Generator.account`."""
        check_run(run)
        return await self._ledger.account(run)

    async def forget_run(self, run: str) -> None:
        """See `ports.Generator.forget_run`."""
        check_run(run)
        await self._ledger.forget(run)
        self._unreported.pop(run, None)
        self._client.forget_run(run)

    async def rename_run(self, run: str, new_name: str) -> None:
        """See `ports.Generator.rename_run`."""
        check_run(run)
        check_run(new_name, "new_name")
        await self._ledger.rename(run, new_name)
        self._unreported.pop(run, None)
        self._client.forget_run(run)

    async def exchanges(self, run: str, *, after: int = 0, limit: int = 20) -> tuple[Exchange, ...]:
        """See `ports.Generator.exchanges`."""
        check_run(run)
        return await self._ledger.exchanges(run, after=after, limit=limit)

    async def check_models(self, models: tuple[str, ...]) -> None:
        """See `ports.Generator.check_models`."""
        await self._models.check(named_models(models))

    async def model_limits(
        self, models: tuple[str, ...], admission: Admission
    ) -> tuple[ModelLimit, ...]:
        """See `ports.Generator.model_limits`: of language models nobody knows beforehand."""
        check_admission(admission)
        entries = [entry for entry in models if named_models((entry,)) == (RECIPES,)]
        missing = await asyncio.to_thread(missing_recipe, admission) if entries else ""
        return tuple(ModelLimit(model=entry, missing=missing) for entry in entries if missing)

    async def list_models(self) -> tuple[str, ...]:
        """See `ports.Generator.list_models`."""
        return await self._models.list_models()

    async def close(self) -> None:
        """See `ports.Generator.close`."""
        await self._learner.close()
        await self._client.close()
        await self._models.close()
        await self._store.close()

    async def _converse(
        self, request: ProposalRequest, question: ModelCall, written: WrittenPrompt
    ) -> tuple[Proposal, str]:
        """Ask, and once more after a reply without a whole candidate; return the last reply too."""
        selection, language = request.selection, request.admission.device.language
        messages = written.messages
        usage: tuple[TokenUsage, ...] = ()
        text, failure = "", ""
        for attempt in range(_MAX_ATTEMPTS):
            try:
                reply = await self._client.ask(question, messages, attempt=attempt)
            except (LlmQuotaError, LlmUnavailableError, LlmConfigurationError) as error:
                if not usage:
                    raise
                # The first reply is paid for: its cost must reach the run's books.
                failure = f"{failure}; not asked again: {error.message}"
                break
            usage, text = (*usage, reply.usage), reply.text
            source, failure = source_of(selection, language, reply.text, reply.finish)
            if source is not None:
                return proposal_of(selection, source, messages, usage), text
            if reply.finish is FinishReason.REFUSED:
                break
            messages = (*messages, *self._ask_again(request, reply, failure))
        return Proposal(candidate=None, reply=text, failure=failure, usage=usage), text

    async def _question(self, request: ProposalRequest, expert: Expert) -> ModelCall:
        """Choose a model, with the request's others to fall back on; all must be usable."""
        names = models_for(request.models, expert.role) or (await self.list_models())[:1]
        await self._models.check(names)
        # The entries as given: among them an expert's own models have priority.
        chosen = (await self._choosing()).choose(request, request.models or names)
        models = (chosen, *(name for name in names if name != chosen))
        return ModelCall(
            run=request.run,
            purpose=ExchangePurpose.PROPOSAL,
            selection=request.selection.sequence,
            models=models,
            seed=request.seed,
            caps=request.caps,
            spent=Spending(cost_usd=request.spent_usd, tokens=request.spent_tokens),
            assignment=_assignment(request) if RECIPES in models else "",
        )

    async def _most_chars(self, question: ModelCall) -> int:
        """Return how long a prompt may be that each model of the question can read."""
        facts = [await self._models.facts(name) for name in question.models]
        known = [f.max_input_tokens for f in facts if f.max_input_tokens is not None]
        return min([DEFAULT_MAX_CHARS, *(tokens * CHARS_PER_TOKEN for tokens in known)])

    async def _choosing(self) -> ModelChooser:
        """Return the chooser, which starts from what earlier runs taught."""
        if self._chooser is None:
            known = await self._store.read(partial(proposals.judged, limit=_JUDGED_RECALLED))
            self._chooser = self._chooser or BanditChooser(known)
        return self._chooser

    async def _credit(
        self, run: str, model: str, *, gain: float = 0.0, usd: float = 0.0, answered: bool = True
    ) -> None:
        chooser = await self._choosing()
        chooser.credit(model, run=run, gain=gain, usd=usd, answered=answered)

    async def _remember(
        self,
        request: ProposalRequest,
        expert: Expert,
        context: PromptContext,
        written: WrittenPrompt,
        proposal: Proposal,
        idea: str,
    ) -> None:
        if not set(SECTION_NAMES).isdisjoint(written.cut):
            # Do not credit truncated guidance.
            context = replace(context, sections_id=None, is_evolved=False)
        acted = written.mechanisms
        if context.is_evolved:
            acted = (*acted, mechanisms.META_PROMPTS)
        if proposal.usage[-1].model == RECIPES:  # which go by the selection alone
            by_selection = (mechanisms.INSPIRATIONS, mechanisms.DIRECTION)
            acted = tuple(name for name in acted if name in by_selection)
        row = proposal_row(
            request,
            effective_operator(request.selection),
            expert,
            context,
            shown=written.shown,
            mechanisms=acted,
            model=proposal.usage[-1].model,
            usd=sum(usage.cost_usd for usage in proposal.usage),
            candidate=proposal.candidate.digest if proposal.candidate is not None else "",
            idea=idea,
        )
        await self._learner.remember(request, row)

    async def _ask_for_guidance(
        self, request: ProposalRequest, messages: tuple[ChatMessage, ...]
    ) -> str:
        """Return a model's reply to an editing prompt, on the account of the request's run."""
        question = await self._question(request, expert_of(""))
        models = tuple(name for name in question.models if name != RECIPES)
        if not models:
            return ""
        asked = replace(
            question, purpose=ExchangePurpose.META_PROMPT, selection=None, models=models
        )
        reply = await self._client.ask(asked, messages)
        if await self._ledger.is_own(request.run):
            self._unreported[request.run].append(reply.usage)
        return reply.text

    def _ask_again(
        self, request: ProposalRequest, reply: ModelReply, reason: str
    ) -> tuple[ChatMessage, ...]:
        # Providers refuse empty messages.
        said = clip(reply.text, _MAX_REPEATED_REPLY_CHARS) or "(an empty reply)"
        return (
            ChatMessage(role="assistant", content=said),
            self._prompts.retry(request.admission.device.language, reason),
        )


def _assignment(request: ProposalRequest) -> str:
    selection = replace(request.selection, operator=effective_operator(request.selection))
    return to_json(
        Assignment(
            admission=request.admission,
            selection=selection,
            language=request.admission.device.language,
            seed=request.seed,
            library_ops=allowed_library_ops(request.task, request.admission),
        )
    )

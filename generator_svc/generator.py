"""The generator: a selection becomes a prompt, a model's reply becomes a candidate.

Knows nothing of LiteLLM, of gRPC, or of what a candidate is worth.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from generator_svc.asking import DEFAULT_MAX_OUTPUT_TOKENS, Asker, Question
from generator_svc.books import Books
from generator_svc.budget import Spending
from generator_svc.exchange_log import ExchangeLog
from generator_svc.llm.assignment import Assignment
from generator_svc.llm.catalogue import RECIPES
from generator_svc.llm.interface import LanguageModels, ModelReply
from generator_svc.model_choice import ModelChooser, UniformChooser
from generator_svc.prompt_views import clip
from generator_svc.prompt_writer import PromptWriter, effective_operator
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.account import RunAccount
from kernel_foundry.domain.archive import Elite
from kernel_foundry.domain.candidate import Candidate, KernelSource, Operator
from kernel_foundry.domain.exchange import (
    ChatMessage,
    Exchange,
    ExchangePurpose,
    FinishReason,
    prompt_digest,
)
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.plain import to_json
from kernel_foundry.domain.request import Proposal, ProposalOutcome, ProposalRequest, TokenUsage
from kernel_foundry.errors import LlmConfigurationError, LlmQuotaError, LlmUnavailableError
from kernel_foundry.plan import ExtractionError, render, split

_MAX_ATTEMPTS = 2
"""The first reply, and one more after a reply without a whole candidate."""

_MAX_REPEATED_REPLY_CHARS = 6_000
"""How much of a useless reply is sent back with the request to do better."""


class Generator:
    """A `kernel_foundry.ports.Generator` that asks language models.

    Args:
        models: Every model that can be reached.
        store: What is remembered of runs and learnt from them.
        exchanges: Where every exchange is stored.
        prompts: Writes the prompts.
        chooser: Chooses among the models of a request.
        max_output_tokens: Output limit of a reply; a model's own lower limit wins.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        *,
        models: LanguageModels,
        store: GeneratorStore,
        exchanges: ExchangeLog,
        prompts: PromptWriter | None = None,
        chooser: ModelChooser | None = None,
        max_output_tokens: int = DEFAULT_MAX_OUTPUT_TOKENS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._models = models
        self._store = store
        self._books = Books(store, exchanges)
        self._asker = Asker(models, self._books, max_output_tokens=max_output_tokens, clock=clock)
        self._prompts = prompts or PromptWriter()
        self._chooser = chooser or UniformChooser()

    async def propose(self, request: ProposalRequest) -> Proposal:
        """See `Generator.propose`."""
        question = await self._question(request)
        language = request.admission.device.language
        messages = self._prompts.write(request)
        usage: tuple[TokenUsage, ...] = ()
        text, failure = "", ""
        for attempt in range(_MAX_ATTEMPTS):
            try:
                reply = await self._asker.ask(question, messages, attempt=attempt)
            except (LlmQuotaError, LlmUnavailableError, LlmConfigurationError) as error:
                if not usage:
                    raise
                # The first reply is paid for: its cost must reach the run's books.
                failure = f"{failure}; not asked again: {error.message}"
                break
            usage, text = (*usage, reply.usage), reply.text
            source, failure = _extract(reply, language)
            if source is not None:
                return _proposal(request, source, messages, usage)
            if reply.finish is FinishReason.REFUSED:
                break
            messages = (*messages, *self._ask_again(reply, language, failure))
        return Proposal(text=text, candidate=None, failure=failure, usage=usage)

    async def report(self, outcome: ProposalOutcome) -> None:
        """See `Generator.report`."""

    async def account(self, run: str) -> RunAccount:
        """See `Generator.account`."""
        return await self._books.account(run)

    async def exchanges(self, run: str, *, after: int = 0, limit: int = 20) -> tuple[Exchange, ...]:
        """See `Generator.exchanges`."""
        return await self._books.exchanges(run, after=after, limit=limit)

    async def list_models(self) -> tuple[str, ...]:
        """See `Generator.list_models`."""
        return await self._models.list_models()

    async def close(self) -> None:
        """See `Generator.close`."""
        await self._models.close()
        await self._store.close()

    async def _question(self, request: ProposalRequest) -> Question:
        """Choose a model, with the request's others to fall back on; all must be usable."""
        names = tuple(dict.fromkeys(request.models)) or (await self.list_models())[:1]
        await self._models.check(names)
        chosen = self._chooser.choose(request, names)
        models = (chosen, *(name for name in names if name != chosen))
        return Question(
            run=request.run,
            purpose=ExchangePurpose.PROPOSAL,
            selection=request.selection.sequence,
            models=models,
            seed=request.seed,
            caps=request.caps,
            spent=Spending(cost_usd=request.spent_usd, tokens=request.spent_tokens),
            assignment=_assignment(request) if RECIPES in models else "",
        )

    def _ask_again(
        self, reply: ModelReply, language: Language, reason: str
    ) -> tuple[ChatMessage, ...]:
        # Providers refuse empty messages.
        said = clip(reply.text, _MAX_REPEATED_REPLY_CHARS) or "(an empty reply)"
        return (
            ChatMessage(role="assistant", content=said),
            self._prompts.retry(language, reason),
        )


def _assignment(request: ProposalRequest) -> str:
    """Return the request for structured models, which must see the operator that is recorded."""
    selection = replace(request.selection, operator=effective_operator(request))
    return to_json(
        Assignment(
            admission=request.admission,
            selection=selection,
            language=request.admission.device.language,
            seed=request.seed,
        )
    )


def _extract(reply: ModelReply, language: Language) -> tuple[KernelSource | None, str]:
    """Return (source, "") or (None, why there is none)."""
    if reply.finish is FinishReason.REFUSED:
        return None, reply.text
    is_cut = reply.finish is FinishReason.LENGTH
    cut = "the reply was cut off at its output limit; " if is_cut else ""
    try:
        parts = split(reply.text)
    except ExtractionError as error:
        return None, cut + error.message
    if parts.language != language.value:
        return None, f"the device code is {parts.language}, asked for was {language.value}"
    source = KernelSource(language=language, device_code=parts.device_code, plan=parts.plan_text)
    return source, ""


def _proposal(
    request: ProposalRequest,
    source: KernelSource,
    messages: tuple[ChatMessage, ...],
    usage: tuple[TokenUsage, ...],
) -> Proposal:
    operator = effective_operator(request)
    parents = _parents(request, operator)
    candidate = Candidate(
        source=source,
        parents=tuple(p.candidate.digest for p in parents),
        operator=operator,
        generation=1 + max(p.candidate.generation for p in parents) if parents else 0,
        prompt_digest=prompt_digest(messages),
        model=usage[-1].model,
    )
    text = render(source.language.value, source.device_code, source.plan)
    return Proposal(text=text, candidate=candidate, usage=usage)


def _parents(request: ProposalRequest, operator: Operator) -> tuple[Elite, ...]:
    """Return the elites that a child of `operator` is made from."""
    selection = request.selection
    if selection.parent is None:
        return ()
    if operator is Operator.COMBINE:
        return (selection.parent, selection.inspirations[0])
    return (selection.parent,)

"""The generator: a selection becomes a prompt, a model's reply becomes a candidate.

Knows nothing of LiteLLM, of gRPC, or of what a candidate is worth.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from generator_svc.budget import Budget, Spending, expected_spending
from generator_svc.exchange_log import Exchange, ExchangeLog
from generator_svc.llm.assignment import Assignment
from generator_svc.llm.catalogue import RECIPES
from generator_svc.llm.interface import (
    ChatMessage,
    FinishReason,
    LanguageModels,
    ModelReply,
    ModelRequest,
    prompt_digest,
)
from generator_svc.model_choice import ModelChooser, UniformChooser
from generator_svc.prompt_views import clip
from generator_svc.prompt_writer import PromptWriter, effective_operator
from kernel_foundry.domain.archive import Elite
from kernel_foundry.domain.candidate import Candidate, KernelSource, Operator
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.plain import to_json
from kernel_foundry.domain.request import Proposal, ProposalRequest, TokenUsage
from kernel_foundry.errors import LlmConfigurationError, LlmQuotaError, LlmUnavailableError
from kernel_foundry.plan import ExtractionError, render, split

_MAX_ATTEMPTS = 2
"""The first reply, and one more after a reply without a whole candidate."""

_DEFAULT_MAX_OUTPUT_TOKENS = 32_768
"""Room for a reasoning model to think and then write two blocks."""

_LEAST_OUTPUT_TOKENS = 8_192
"""A lower limit would mostly buy replies that are cut off."""

_MAX_REPEATED_REPLY_CHARS = 6_000
"""How much of a useless reply is sent back with the request to do better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """What stays the same over the attempts of one proposal."""

    request: ProposalRequest
    models: tuple[str, ...]
    """The chosen one, then the fallbacks."""
    assignment: str


class Generator:
    """A `kernel_foundry.ports.Generator` that asks language models.

    Args:
        models: Every model that can be reached.
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
        exchanges: ExchangeLog,
        prompts: PromptWriter | None = None,
        chooser: ModelChooser | None = None,
        max_output_tokens: int = _DEFAULT_MAX_OUTPUT_TOKENS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._models = models
        self._exchanges = exchanges
        self._prompts = prompts or PromptWriter()
        self._chooser = chooser or UniformChooser()
        self._max_output_tokens = max_output_tokens
        self._clock = clock
        self._budget = Budget()

    async def propose(self, request: ProposalRequest) -> Proposal:
        """See `Generator.propose`."""
        call = await self._prepare(request)
        language = request.admission.device.language
        messages = self._prompts.write(request)
        usage: tuple[TokenUsage, ...] = ()
        text, failure = "", ""
        for _ in range(_MAX_ATTEMPTS):
            try:
                reply = await self._ask(call, messages, usage)
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

    async def list_models(self) -> tuple[str, ...]:
        """See `Generator.list_models`."""
        return await self._models.list_models()

    async def close(self) -> None:
        """See `Generator.close`."""
        await self._models.close()

    async def _prepare(self, request: ProposalRequest) -> _Call:
        """Choose a model, with the request's others to fall back on; all must be usable."""
        names = tuple(dict.fromkeys(request.models)) or (await self.list_models())[:1]
        await self._models.check(names)
        chosen = self._chooser.choose(request, names)
        models = (chosen, *(name for name in names if name != chosen))
        assignment = ""
        if RECIPES in models:
            # Structured models must see the operator that is recorded.
            selection = replace(request.selection, operator=effective_operator(request))
            assignment = to_json(
                Assignment(
                    admission=request.admission,
                    selection=selection,
                    language=request.admission.device.language,
                    seed=request.seed,
                )
            )
        return _Call(request=request, models=models, assignment=assignment)

    async def _ask(
        self, call: _Call, messages: tuple[ChatMessage, ...], usage: tuple[TokenUsage, ...]
    ) -> ModelReply:
        """Make one call within the caps and store the exchange."""
        request = call.request
        spent = Spending(
            cost_usd=request.spent_usd + sum(u.cost_usd for u in usage),
            tokens=request.spent_tokens + sum(u.input_tokens + u.output_tokens for u in usage),
        )
        limit, expected = await self._affordable(call, messages, spent)
        with self._budget.reserve(request.run, request.caps, spent, expected):
            reply = await self._models.complete(
                ModelRequest(
                    models=call.models,
                    messages=messages,
                    max_output_tokens=limit,
                    assignment=call.assignment,
                )
            )
        await self._exchanges.record(
            Exchange(
                run=request.run,
                asked=call.models[0],
                seed=request.seed,
                messages=messages,
                reply=reply.text,
                finish=reply.finish,
                usage=reply.usage,
                recorded_unix_s=self._clock(),
            )
        )
        return reply

    async def _affordable(
        self, call: _Call, messages: tuple[ChatMessage, ...], spent: Spending
    ) -> tuple[int, Spending]:
        """Return the output limit to ask with, and what the call then costs at most.

        The limit is halved while the caps do not allow it, so that the last of a budget still
        buys replies; below the least useful limit the budget refuses.
        """
        request = call.request
        facts = tuple([(name, await self._models.facts(name)) for name in call.models])
        own = [f.max_output_tokens for _, f in facts if f.max_output_tokens is not None]
        limit = min([self._max_output_tokens, *own])
        while True:
            expected = expected_spending(facts, messages, limit, request.caps)
            fits = self._budget.allows(request.run, request.caps, spent, expected)
            if fits or limit // 2 < _LEAST_OUTPUT_TOKENS:
                return limit, expected
            limit //= 2

    def _ask_again(
        self, reply: ModelReply, language: Language, reason: str
    ) -> tuple[ChatMessage, ...]:
        # Providers refuse empty messages.
        said = clip(reply.text, _MAX_REPEATED_REPLY_CHARS) or "(an empty reply)"
        return (
            ChatMessage(role="assistant", content=said),
            self._prompts.retry(language, reason),
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

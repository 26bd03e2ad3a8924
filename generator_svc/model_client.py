"""One call to a model: within the caps, counted, recorded.

Prompts and replies are the callers' matter.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from generator_svc.caps import (
    RequestRate,
    Reservations,
    Spending,
    counted,
    expected_spending,
    larger,
)
from generator_svc.ledger import RequestCounter, RunLedger
from generator_svc.llm.interface import LanguageModels, ModelFacts, ModelReply, ModelRequest
from kernel_foundry.domain.exchange import ChatMessage, Exchange, ExchangePurpose
from kernel_foundry.domain.request import BudgetCaps

_MAX_OUTPUT_TOKENS: Final = 32_768
"""Output limit of a reply, unless the model's own is lower: room for a reasoning model to think and
then write two blocks."""

_LEAST_OUTPUT_TOKENS = 8_192
"""A lower limit would mostly buy replies that are cut off."""

_Facts = tuple[tuple[str, ModelFacts], ...]
"""The facts about each model of a question, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """What stays the same over the attempts of one question."""

    run: str
    purpose: ExchangePurpose
    selection: int | None
    models: tuple[str, ...]
    """The chosen one, then the fallbacks."""
    seed: int
    caps: BudgetCaps
    spent: Spending
    """What the caller knows to be spent; the ledger may know more."""
    assignment: str = ""
    """For structured models."""


class ModelClient:
    """Asks models.

    Args:
        models: Every model that can be reached.
        ledger: Where calls are recorded.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        models: LanguageModels,
        ledger: RunLedger,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._models = models
        self._ledger = ledger
        self._clock = clock
        self._reservations = Reservations()
        self._rate = RequestRate()
        self._asking: set[asyncio.Task[Any] | None] = set()

    async def ask(
        self, question: ModelCall, messages: tuple[ChatMessage, ...], *, attempt: int = 0
    ) -> ModelReply:
        """Make one call and enter it in the ledger; its requests are entered if it fails, too.

        Raises:
            LlmQuotaError, LlmUnavailableError, LlmConfigurationError: as `LanguageModels.complete`;
                the first one also when the caps leave no room for the call.
            StoreUnavailableError: the ledger cannot be written.
        """
        task = asyncio.current_task()
        self._asking.add(task)
        try:
            return await self._ask(question, messages, attempt)
        finally:
            self._asking.discard(task)

    def forget_run(self, run: str) -> None:
        """Forget what a run has spent, as far as its caps count it here."""
        self._reservations.forget(run)

    async def close(self) -> None:
        """End the calls in flight, so that what they took is in the ledger before those close."""
        tasks = [task for task in self._asking if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(
        self, question: ModelCall, messages: tuple[ChatMessage, ...], attempt: int
    ) -> ModelReply:
        spent = larger(question.spent, await self._ledger.spent(question.run))
        facts = tuple([(name, await self._models.facts(name)) for name in question.models])
        limits, sizes = self._sizes(question, messages, facts)
        counter = RequestCounter()
        try:
            async with self._reservations.hold(question.run, question.caps, spent, *sizes) as held:
                reply = await self._complete(question, messages, facts, limits[held.size], counter)
                usage = reply.usage
                tokens = usage.input_tokens + usage.output_tokens
                held.settle(Spending(cost_usd=usage.cost_usd, tokens=tokens))
        except BaseException:  # a cancelled call has sent its requests, too
            await _to_the_end(self._ledger.record_failure(question.run, counter))
            raise
        exchange = Exchange(
            run=question.run,
            purpose=question.purpose,
            selection=question.selection,
            attempt=attempt,
            asked=question.models[0],
            seed=question.seed,
            messages=messages,
            reply=reply.text,
            finish=reply.finish,
            usage=reply.usage,
            recorded_unix_s=self._clock(),
        )
        # Paid for: it must be in the ledger though nobody waits any more.
        await _to_the_end(self._ledger.record(exchange, counter))
        return reply

    async def _complete(
        self,
        question: ModelCall,
        messages: tuple[ChatMessage, ...],
        facts: _Facts,
        limit: int,
        counter: RequestCounter,
    ) -> ModelReply:
        prompt = expected_spending(facts, messages, 0, question.caps)
        most = question.caps.requests_per_minute
        reply = await self._models.complete(
            ModelRequest(
                models=question.models,
                messages=messages,
                max_output_tokens=limit,
                assignment=question.assignment,
                on_request=counter,
                before_request=lambda: self._rate.wait(question.run, most),
                on_lost=lambda _model: self._reservations.lost(question.run, prompt),
            )
        )
        known = dict(facts).get(reply.usage.model)
        return reply if known is None else counted(reply, known, messages)

    def _sizes(
        self, question: ModelCall, messages: tuple[ChatMessage, ...], facts: _Facts
    ) -> tuple[tuple[int, ...], tuple[Spending, ...]]:
        """Return the output limits to ask with, the largest first, and what each costs at most.

        Each is half of the one before, down to the least useful one, so that the last of a budget
        still buys replies.
        """
        own = [f.max_output_tokens for _, f in facts if f.max_output_tokens is not None]
        limits = [min([_MAX_OUTPUT_TOKENS, *own])]
        while limits[-1] // 2 >= _LEAST_OUTPUT_TOKENS:
            limits.append(limits[-1] // 2)
        sizes = [expected_spending(facts, messages, limit, question.caps) for limit in limits]
        return tuple(limits), tuple(sizes)


async def _to_the_end(entry: Coroutine[Any, Any, None]) -> None:
    """Await an entry in the ledger; a caller that is cancelled meanwhile waits for it, too.

    However often it is cancelled: a search that ends cancels once, Ctrl-C then once more.
    """
    entering = asyncio.ensure_future(entry)
    cancelled: asyncio.CancelledError | None = None
    while not entering.done():
        try:
            await asyncio.wait({entering})
        except asyncio.CancelledError as error:
            cancelled = error
    entering.result()
    if cancelled is not None:
        raise cancelled

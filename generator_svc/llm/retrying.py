"""Asks models until one answers: retries where they help, then the next model.

One attempt is one HTTP request, so that requests can be counted, paced and capped one by one;
LiteLLM's own retries and fallbacks are off.
Source: back-off with jitter, aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from generator_svc.llm.catalogue import RECIPES
from generator_svc.llm.interface import ModelReply, ModelRequest
from kernel_foundry.errors import KernelFoundryError, LlmQuotaError, LlmUnavailableError


class FailedAttempt(Exception):  # noqa: N818  it ends an attempt, not the call
    """One request without a usable answer.

    Args:
        error: What the caller gets when no attempt succeeds.
        is_transient: Asking the same model again may help.
        is_lost: The answer never came whole, so the request may have been billed.
        retry_after_seconds: How long the provider wants to be left alone; None: it did not say.
    """

    def __init__(
        self,
        error: KernelFoundryError,
        *,
        is_transient: bool,
        is_lost: bool = False,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.is_transient = is_transient
        self.is_lost = is_lost
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRetryPolicy:
    """How often and after which pauses a model is asked again."""

    retry_count: int = 3
    """Further attempts with each model."""
    first_back_off_seconds: float = 1.0
    """Longest pause before the first retry; doubles with each further one."""
    longest_back_off_seconds: float = 30.0
    longest_retry_after_seconds: float = 60.0
    """A provider that asks for a longer pause is not asked again by this call."""


Attempt = Callable[[str], Awaitable[ModelReply]]
"""Sends one request to one model; raises `FailedAttempt`."""


class Retries:
    """Asks until a model answers or none is left.

    Args:
        policy: How often and after which pauses.
        rng: Of the jitter.
        sleep: Waits that many seconds.
    """

    def __init__(
        self,
        policy: ModelRetryPolicy,
        *,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._policy = policy
        self._rng = rng or random.Random()
        self._sleep = sleep

    async def ask(self, request: ModelRequest, attempt: Attempt) -> ModelReply:
        """Return the first answer of the request's models, asked in order.

        Raises:
            KernelFoundryError: as `LanguageModels.complete`; what speaks most for trying
                later if the models failed in several ways.
        """
        failures: list[KernelFoundryError] = []
        count = _CallAttempts(request, attempt)
        for model in request.models:
            reply = await self._ask_one(model, count, failures)
            if reply is not None:
                return reply
        raise _most_hopeful(failures)

    async def _ask_one(
        self, model: str, count: "_CallAttempts", failures: list[KernelFoundryError]
    ) -> ModelReply | None:
        """Return the answer of `model`, or None and add to `failures` why there is none."""
        for retry in range(self._policy.retry_count + 1):
            try:
                return await count.send(model)
            except FailedAttempt as failed:
                failure = failed
            pause_s = self._pause_s(failure, retry)
            if pause_s is None or retry == self._policy.retry_count:
                break
            await self._sleep(pause_s)
        failures.append(failure.error)
        return None

    def _pause_s(self, failure: FailedAttempt, retry: int) -> float | None:
        """Return how long to wait before asking again; None: do not."""
        if not failure.is_transient:
            return None
        policy = self._policy
        longest_s = min(policy.first_back_off_seconds * 2.0**retry, policy.longest_back_off_seconds)
        # Not less than half: a pause of nothing would help nobody.
        back_off_s = longest_s * self._rng.uniform(0.5, 1.0)
        if failure.retry_after_seconds is None:
            return back_off_s
        if failure.retry_after_seconds > policy.longest_retry_after_seconds:
            return None
        # Calls in flight were told the same moment; the jitter keeps them from coming together.
        return failure.retry_after_seconds + back_off_s - longest_s / 2


class _CallAttempts:
    """The requests of one call, announced one by one."""

    def __init__(self, request: ModelRequest, attempt: Attempt) -> None:
        self._request = request
        self._attempt = attempt
        self._is_retry = False

    async def send(self, model: str) -> ModelReply:
        if model == RECIPES:  # answers in this process
            return await self._attempt(model)
        await self._request.before_request()
        self._request.on_request(model, self._is_retry)
        self._is_retry = True
        try:
            return await self._attempt(model)
        except FailedAttempt as failed:
            if failed.is_lost:
                self._request.on_lost(model)
            raise
        except asyncio.CancelledError:
            self._request.on_lost(model)
            raise


def _most_hopeful(failures: list[KernelFoundryError]) -> KernelFoundryError:
    """Return the failure that decides: one that passes, else a quota, else the first."""
    for kind in (LlmUnavailableError, LlmQuotaError):
        for failure in failures:
            if isinstance(failure, kind):
                return failure
    return failures[0]

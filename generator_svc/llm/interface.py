"""The interface of language models: requests and replies.

LiteLLM is one implementation; a fake is another.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from kernel_foundry.domain.exchange import ChatMessage, FinishReason
from kernel_foundry.domain.request import TokenUsage


def _count_nothing(_model: str, _is_retry: bool) -> None:
    """Count nothing."""


def _lose_nothing(_model: str) -> None:
    """Remember nothing."""


async def _wait_for_nothing() -> None:
    """Let every request go at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call."""

    models: tuple[str, ...]
    """The model to ask, then those to fall back on when it does not answer."""
    messages: tuple[ChatMessage, ...]
    max_output_tokens: int
    assignment: str = ""
    """The request as JSON of `Assignment`; only structured models (recipes) see it."""
    on_request: Callable[[str, bool], None] = _count_nothing
    """Told the model, and whether it is a retry, before each HTTP request. A retry is every
    request of this call after its first, also one that goes to a fallback."""
    before_request: Callable[[], Awaitable[None]] = _wait_for_nothing
    """Awaited before each HTTP request; it may wait, or raise and so end the call."""
    on_lost: Callable[[str], None] = _lose_nothing
    """Told the model of each request whose answer never came whole: whether and how much the
    provider billed for it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """One answer."""

    text: str
    finish: FinishReason
    usage: TokenUsage
    """Its `model` is the one that answered, which may be a fallback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The facts about a model that are known before it is asked."""

    input_usd_per_token: float | None
    """None: the cost table does not know the model."""
    output_usd_per_token: float | None
    max_output_tokens: int | None
    """None: not known."""
    max_input_tokens: int | None = None
    """Most tokens of a prompt; None: not known."""
    counts_tokens: bool = True
    """False for a model that is no language model and uses no tokens (recipes)."""


class LanguageModels(Protocol):
    """Every model that can be reached from here."""

    async def check(self, models: tuple[str, ...]) -> None:
        """Make sure that every model can be called.

        Raises:
            LlmConfigurationError: unknown provider, or a key that is not set.
        """
        ...

    async def facts(self, model: str) -> ModelFacts:
        """Return price and limits of `model`."""
        ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request, with retries and fallbacks.

        Raises:
            LlmQuotaError: the provider's quota is used up.
            LlmUnavailableError: no model answers.
            LlmConfigurationError: the provider refuses key, model or request.
        """
        ...

    async def list_models(self) -> tuple[str, ...]:
        """Return the models that can be used now, the default first."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...

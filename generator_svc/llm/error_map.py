"""LiteLLM's and OpenAI's exceptions to ours, by class and HTTP status, never by message.

Imports LiteLLM, so it is itself imported only on first use.
"""

from typing import Final

import openai
from litellm import exceptions

from generator_svc.llm.recipes_provider import RecipesBugError
from kernel_foundry.errors import (
    KernelFoundryError,
    LlmConfigurationError,
    LlmQuotaError,
    LlmUnavailableError,
)

PROVIDER_ERRORS: Final = (openai.OpenAIError, exceptions.BudgetExceededError)
"""Bases of everything that a call may raise; LiteLLM's own classes derive from OpenAI's."""

_CLASSES: Final[tuple[tuple[type[Exception], type[KernelFoundryError], str], ...]] = (
    (RecipesBugError, KernelFoundryError, "has a bug"),
    (openai.RateLimitError, LlmQuotaError, "is over its rate limit or quota"),
    (exceptions.PaymentRequiredError, LlmQuotaError, "wants to be paid first"),
    (exceptions.BudgetExceededError, LlmQuotaError, "is over its budget"),
    (openai.AuthenticationError, LlmConfigurationError, "refuses the key"),
    (openai.PermissionDeniedError, LlmConfigurationError, "is not allowed with this key"),
    (openai.NotFoundError, LlmConfigurationError, "is unknown to its provider"),
    (
        exceptions.ContextWindowExceededError,
        LlmConfigurationError,
        "has too small a context for the prompt; take one with a larger context",
    ),
    (openai.BadRequestError, LlmConfigurationError, "refuses the request"),
    (openai.UnprocessableEntityError, LlmConfigurationError, "refuses the request"),
    (openai.APITimeoutError, LlmUnavailableError, "did not answer in time"),
    (Exception, LlmUnavailableError, "does not answer"),
)
"""First match wins, so a subclass stands before its base."""

_UNCLASSED: Final[dict[int, tuple[type[KernelFoundryError], str]]] = {
    402: (LlmQuotaError, "wants to be paid first"),
    403: (LlmConfigurationError, "is not allowed with this key"),
}
"""Statuses that LiteLLM leaves as a bare `APIError` for some providers."""

_MAX_DETAIL_CHARS: Final = 500
"""Providers put whole HTML pages into messages."""


def translate(error: Exception, model: str) -> KernelFoundryError:
    """Return our error for what calling `model` raised; the provider's words are kept."""
    ours, phrase = _classify(error)
    return ours(
        f"model {model!r} {phrase}: {str(error)[:_MAX_DETAIL_CHARS]}",
        model=model,
        provider_error=type(error).__name__,
    )


def _classify(error: Exception) -> tuple[type[KernelFoundryError], str]:
    status = getattr(error, "status_code", None)
    if type(error) is exceptions.APIError and status in _UNCLASSED:
        return _UNCLASSED[status]
    return next((ours, phrase) for kind, ours, phrase in _CLASSES if isinstance(error, kind))

"""LiteLLM's and OpenAI's exceptions to ours, by class, HTTP status and error code.

Never by message. Imports LiteLLM, so it is itself imported only on first use.
"""

from collections.abc import Iterator
from typing import Any, Final

import httpx
import openai
from litellm import exceptions

from generator_svc.llm.keys import without_keys
from generator_svc.llm.recipes_provider import RecipesBugError
from generator_svc.llm.retrying import FailedAttempt
from kernel_foundry.errors import (
    KernelFoundryError,
    LlmConfigurationError,
    LlmQuotaError,
    LlmUnavailableError,
)

PROVIDER_ERRORS: Final = (openai.OpenAIError, exceptions.BudgetExceededError)
"""Bases of everything that a call may raise; LiteLLM's own classes derive from OpenAI's."""

_UNPAID: Final = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
)
"""Error codes of a 429 that stays until somebody pays."""

_CLASSES: Final[tuple[tuple[type[Exception], type[KernelFoundryError], str], ...]] = (
    (RecipesBugError, KernelFoundryError, "has a bug"),
    (openai.RateLimitError, LlmUnavailableError, "is over its rate limit"),
    (exceptions.PaymentRequiredError, LlmQuotaError, "requires payment (402)"),
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
    402: (LlmQuotaError, "requires payment (402)"),
    403: (LlmConfigurationError, "is not allowed with this key"),
}
"""Statuses that LiteLLM leaves as a bare `APIError` for some providers."""

_MALFORMED_STATUS: Final = 422
"""What LiteLLM makes of a 200 whose body holds an error instead of a completion."""

_MAX_DETAIL_CHARS: Final = 500
"""Providers put whole HTML pages into messages."""


def failed_attempt(error: Exception, model: str) -> FailedAttempt:
    """Return the failed attempt for an error that a request to `model` raised."""
    status = _http_status(error)
    ours, phrase = _classify(error, status)
    detail = without_keys(str(error))[:_MAX_DETAIL_CHARS]
    return FailedAttempt(
        ours(
            f"model {model!r} {phrase}: {detail}",
            model=model,
            provider_error=type(error).__name__,
        ),
        # 409 has no class of its own: a conflict stays one.
        is_transient=ours is LlmUnavailableError and status != 409,
        is_lost=ours is LlmUnavailableError and status is None and not _is_unsent(error),
        retry_after_seconds=_retry_after_s(error),
    )


def malformed(model: str, what: str) -> FailedAttempt:
    """Return the failure of an answer that is JSON of another shape."""
    return FailedAttempt(
        LlmUnavailableError(f"model {model!r} answered {what}", model=model),
        is_transient=True,
        is_lost=True,
    )


def late(model: str, seconds: float) -> FailedAttempt:
    """Return the failure of an answer that took longer than `seconds`."""
    return FailedAttempt(
        LlmUnavailableError(f"model {model!r} did not answer in {seconds:g} s", model=model),
        is_transient=True,
        is_lost=True,
    )


def _classify(error: Exception, status: int | None) -> tuple[type[KernelFoundryError], str]:
    claimed = getattr(error, "status_code", None)
    if claimed == _MALFORMED_STATUS and status is None:
        return LlmUnavailableError, "did not answer with a completion"
    if isinstance(error, openai.RateLimitError) and _codes(error) & _UNPAID:
        return LlmQuotaError, "is over its quota"
    if type(error) is exceptions.APIError and claimed in _UNCLASSED:
        return _UNCLASSED[claimed]
    return next((ours, phrase) for kind, ours, phrase in _CLASSES if isinstance(error, kind))


def _codes(error: Exception) -> set[str]:
    body: Any = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(inner, dict):
        return set()
    return {value for name in ("code", "type") if isinstance(value := inner.get(name), str)}


def _http_status(error: Exception) -> int | None:
    """Return the status that was received; LiteLLM claims 500 where there was none."""
    for one in _chain(error):
        if isinstance(one, httpx.HTTPStatusError):
            return one.response.status_code
    return None


def _is_unsent(error: Exception) -> bool:
    return any(isinstance(one, httpx.ConnectError | httpx.ConnectTimeout) for one in _chain(error))


def _retry_after_s(error: Exception) -> float | None:
    """Return the Retry-After of the answer, in its form of seconds."""
    for one in _chain(error):
        if isinstance(one, httpx.HTTPStatusError):
            try:
                seconds = float(one.response.headers["retry-after"])
            except (KeyError, ValueError):  # absent, or a date, which no LLM provider sends
                return None
            return seconds if seconds >= 0.0 else None  # not a number is neither
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and what it was raised from, the outermost first."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__

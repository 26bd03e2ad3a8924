"""LiteLLM, set up: the custom provider registered, routers made, one request sent.

Imports LiteLLM, so it is itself imported only on first use (by `litellm_models`), after the
environment that keeps LiteLLM off the network at import is set.
"""

import asyncio
import functools
import math
import time
import warnings
from typing import Any, Final

import litellm
from litellm.llms.custom_httpx.async_client_cleanup import close_litellm_async_clients
from litellm.router import Router

from generator_svc.llm.answer_size import limit_answers
from generator_svc.llm.assignment import METADATA_KEY
from generator_svc.llm.catalogue import RECIPES
from generator_svc.llm.error_map import PROVIDER_ERRORS, failed_attempt, late, malformed
from generator_svc.llm.interface import ModelFacts, ModelReply, ModelRequest
from generator_svc.llm.keys import keep_keys_out_of_logs, without_keys, without_secrets
from generator_svc.llm.recipes_provider import PROVIDER, RecipesProvider
from generator_svc.llm.retrying import FailedAttempt
from generator_svc.replies.plain_text import plain_text
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.exchange import FinishReason
from kernel_foundry.domain.request import TokenUsage
from kernel_foundry.errors import LlmConfigurationError

_SLACK_SECONDS: Final = 1.0
"""How much later than LiteLLM's own limit ours ends an attempt: its message says more."""

_MOST_TOKENS: Final = 10**9
"""Most tokens of one call: no model reads or writes more, so a larger number is not believed."""


def set_up() -> None:
    """Silence LiteLLM and register our provider; doing it twice changes nothing."""
    keep_keys_out_of_logs()
    limit_answers()
    # A reply of another shape is an error of its own; the warning would print the reply.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.drop_params = True
    if all(entry["provider"] != PROVIDER for entry in litellm.custom_provider_map):
        litellm.custom_provider_map.append(
            {"provider": PROVIDER, "custom_handler": RecipesProvider()}
        )
    litellm.utils.custom_llm_setup()


def check(model: str) -> None:
    """Raise `LlmConfigurationError` unless provider and keys of `model` are there."""
    try:
        litellm.get_llm_provider(model)
    except PROVIDER_ERRORS as error:
        raise LlmConfigurationError(
            f"model {model!r} names no provider that LiteLLM knows: expected "
            f"provider/model, such as openai/gpt-5, or {RECIPES!r}",
            model=model,
        ) from error
    missing = litellm.validate_environment(model)["missing_keys"]
    if missing:
        names = ", ".join(missing)
        raise LlmConfigurationError(
            f"model {model!r} needs the environment variable {names}: set it, or take "
            f"--model {RECIPES}",
            model=model,
            variable=names,
        )


def facts(model: str) -> ModelFacts:
    """Return the facts about `model` from LiteLLM's cost table."""
    try:
        info = litellm.get_model_info(model)
    except litellm.exceptions.ModelNotMappedError:
        return ModelFacts(
            input_usd_per_token=None, output_usd_per_token=None, max_output_tokens=None
        )
    # `get_model_info` gives 0 for a price that the table lacks; the table itself does not.
    entry = litellm.model_cost.get(info["key"], {})
    input_usd = entry.get("input_cost_per_token")
    if input_usd is not None and _caches_what_is_marked(model):
        # What is cached costs more when it is written: a cap has to hold then, too.
        input_usd = max(input_usd, entry.get("cache_creation_input_token_cost") or 0.0)
    return ModelFacts(
        input_usd_per_token=input_usd,
        output_usd_per_token=entry.get("output_cost_per_token"),
        max_output_tokens=info.get("max_output_tokens"),
        max_input_tokens=info.get("max_input_tokens"),
    )


@functools.cache
def router(model: str, timeout_seconds: float) -> Router:
    """Return the router that asks `model`, once for each call.

    Retries and fallbacks are `Retries`'s, which announces every request. No cool-downs: a
    model that failed is asked again by the next proposal, which has its own back-off.
    """
    return Router(
        model_list=[
            {
                "model_name": model,
                "litellm_params": {"model": f"{PROVIDER}/all" if model == RECIPES else model},
                "model_info": {"id": model},
            }
        ],
        num_retries=0,
        timeout=timeout_seconds,
        disable_cooldowns=True,
    )


async def attempt(model: str, request: ModelRequest, timeout_seconds: float) -> ModelReply:
    """Ask `model` once, in one HTTP request.

    Raises:
        FailedAttempt: no usable answer came.
    """
    messages: list[Any] = [{"role": m.role, "content": m.content} for m in request.messages]
    if _caches_what_is_marked(model):
        messages[0]["cache_control"] = {"type": "ephemeral"}
    started_s = time.monotonic()
    failure: FailedAttempt
    try:
        # LiteLLM's own limit is for each piece of the answer.
        async with asyncio.timeout(timeout_seconds + _SLACK_SECONDS):
            response = await router(model, timeout_seconds).acompletion(
                model=model,
                messages=messages,
                max_tokens=request.max_output_tokens,
                metadata={METADATA_KEY: request.assignment} if model == RECIPES else {},
            )
        return _read(response, model, (time.monotonic() - started_s) * 1e3)
    except TimeoutError:
        failure = late(model, timeout_seconds)
    except PROVIDER_ERRORS as error:
        if _is_content_filter(error):
            latency_ms = (time.monotonic() - started_s) * 1e3
            return _refused_by_filter(without_keys(str(error)), model, latency_ms)
        failure = failed_attempt(error, model)
    # Raised out here: the provider's own exception may hold a key, and would be its context.
    raise failure


def _caches_what_is_marked(model: str) -> bool:
    """Whether a provider caches a prompt's beginning only where a mark says up to where.

    Claude, whoever serves it. Others do so by themselves, or would be sent the beginning in a
    request of its own (Gemini).
    """
    return "claude" in model and litellm.utils.supports_prompt_caching(model)


async def embed(model: str, texts: list[str], timeout_seconds: float) -> list[Any]:
    """Return the vectors of `texts` by `model`, in order, from one HTTP request.

    Raises:
        FailedAttempt: no answer came.
    """
    failure: FailedAttempt
    try:
        async with asyncio.timeout(timeout_seconds + _SLACK_SECONDS):
            response = await litellm.aembedding(
                model=model, input=texts, timeout=timeout_seconds, max_retries=0
            )
        return [item["embedding"] for item in response.data]
    except TimeoutError:
        failure = late(model, timeout_seconds)
    except PROVIDER_ERRORS as error:
        failure = failed_attempt(error, model)
    except (KeyError, TypeError):
        failure = malformed(model, "without vectors")
    raise failure  # out here, as in `attempt`


async def close() -> None:
    """Close LiteLLM's connections, which are shared by all routers, and forget the routers."""
    router.cache_clear()
    await close_litellm_async_clients()
    # It keeps the closed ones otherwise, and gives them to the next router of this process.
    litellm.in_memory_llm_clients_cache.flush_cache()


def _read(response: Any, model: str, latency_ms: float) -> ModelReply:
    """Return the reply in `response`; cut and empty ones are replies, too."""
    if not response.choices:
        raise malformed(model, "without a choice")
    choice = response.choices[0]
    text, refusal = choice.message.content or "", _refusal(choice.message)
    finish = FinishReason.LENGTH if choice.finish_reason == "length" else FinishReason.STOP
    if refusal or choice.finish_reason == "content_filter":
        finish = FinishReason.REFUSED
        text = refusal or text or "the provider's content filter withheld the reply"
    elif len(text) > LONGEST_CANDIDATE:
        # Twice what output limits allow: the server ignores them.
        finish = FinishReason.LENGTH
    return ModelReply(
        text=plain_text(without_secrets(text))[:LONGEST_CANDIDATE],
        finish=finish,
        usage=_usage(response, model, latency_ms),
    )


def _refusal(message: Any) -> str:
    fields = getattr(message, "provider_specific_fields", None) or {}
    # Usually a text, but nobody has looked at it yet.
    return str(fields.get("refusal") or getattr(message, "refusal", None) or "")


def _usage(response: Any, model: str, latency_ms: float) -> TokenUsage:
    """Return the usage that the provider reports; 0 if it reports none, or nonsense."""
    said = getattr(response, "usage", None)
    counts = [getattr(said, name, None) or 0 for name in ("prompt_tokens", "completion_tokens")]
    hidden = response._hidden_params
    cost_usd = hidden.get("response_cost") if isinstance(hidden, dict) else None
    if not all(isinstance(count, int) and 0 <= count <= _MOST_TOKENS for count in counts):
        counts, cost_usd = [0, 0], None
    if not isinstance(cost_usd, float) or not math.isfinite(cost_usd) or cost_usd < 0.0:
        cost_usd = 0.0
    return TokenUsage(
        model=model,
        input_tokens=int(counts[0]),
        output_tokens=int(counts[1]),
        cost_usd=cost_usd,
        latency_ms=latency_ms,
    )


def _is_content_filter(error: BaseException) -> bool:
    """Whether a provider declined what it was asked; OpenAI's code, or what LiteLLM made of it."""
    return (
        isinstance(error, litellm.exceptions.ContentPolicyViolationError)
        or getattr(error, "code", None) == "content_policy_violation"
    )


def _refused_by_filter(reason: str, model: str, latency_ms: float) -> ModelReply:
    usage = TokenUsage(
        model=model, input_tokens=0, output_tokens=0, cost_usd=0.0, latency_ms=latency_ms
    )
    return ModelReply(text=reason, finish=FinishReason.REFUSED, usage=usage)

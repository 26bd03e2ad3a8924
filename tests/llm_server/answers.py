"""What the server can answer, from a good completion to a connection that just ends."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

PROMPT_TOKENS: Final = 1000
COMPLETION_TOKENS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int = 200
    document: Mapping[str, Any] | None = None
    """Sent as JSON; a completion gets the name of the model that was asked. None: `body`."""
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    """Beside content type and length."""
    delay_seconds: float = 0.0
    """Before anything is sent."""
    sent_share: float = 1.0
    """Of the body; the connection ends after it, although the whole length was announced."""
    trickle_seconds: float = 0.0
    """Between one byte of the body and the next."""
    hangs: bool = False
    """Nothing is answered until the server closes."""
    is_dropped: bool = False
    """The connection ends without an answer."""


def good(
    text: str | None,
    *,
    finish_reason: str = "stop",
    refusal: str | None = None,
    prompt_tokens: int = PROMPT_TOKENS,
    completion_tokens: int = COMPLETION_TOKENS,
) -> Answer:
    return Answer(
        document={
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "choices": [
                {
                    "index": 0,
                    "finish_reason": finish_reason,
                    "message": {"role": "assistant", "content": text, "refusal": refusal},
                }
            ],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            },
        }
    )


def slow(text: str, seconds: float) -> Answer:
    """Return a good completion that takes its time."""
    return replace(good(text), delay_seconds=seconds)


def truncated(text: str = "half a rep") -> Answer:
    """Return a completion that ended at its output limit."""
    return good(text, finish_reason="length")


def empty(*, is_null: bool = False) -> Answer:
    """Return a completion without a text: an empty one, or none at all."""
    return good(None if is_null else "")


def refusal(reason: str = "I will not") -> Answer:
    """Return a completion in which the model declines."""
    return good(None, refusal=reason)


def filtered() -> Answer:
    """Return a completion that a content filter withheld."""
    return good(None, finish_reason="content_filter")


def cut_body(text: str = "lost") -> Answer:
    """Return a completion whose connection ends in the middle of the JSON."""
    return replace(good(text), sent_share=0.5)


def dropped() -> Answer:
    """Return no answer: the connection ends after the request."""
    return Answer(is_dropped=True)


def hang() -> Answer:
    """Return an answer that never comes."""
    return Answer(hangs=True)


def garbage(body: bytes = b"<html>bad gateway</html>", content_type: str = "text/html") -> Answer:
    """Return a body that is no JSON, with status 200."""
    return Answer(body=body, content_type=content_type)


def wrong_json(document: Mapping[str, Any] = MappingProxyType({"choices": []})) -> Answer:
    """Return JSON that is no completion, with status 200."""
    return Answer(document=document)


def error(status: int, code: str, message: str = "") -> Answer:
    """Return an error as OpenAI words it."""
    kind = "invalid_request_error" if status == 400 else code
    words = message or f"prepared {code}"
    return Answer(status=status, document={"error": {"message": words, "type": kind, "code": code}})


def rate_limited(retry_after_seconds: float | None = None) -> Answer:
    """Return a 429 that passes; it may say when."""
    answer = error(429, "rate_limit_exceeded")
    if retry_after_seconds is None:
        return answer
    return replace(answer, headers=(("Retry-After", f"{retry_after_seconds:g}"),))


def quota() -> Answer:
    """Return the 429 that does not pass: nothing is left to spend."""
    return error(429, "insufficient_quota")


FAULTS: Final[Mapping[str, Callable[[], Answer]]] = MappingProxyType(
    {
        "slow": lambda: slow("late", 0.2),
        "rate_limited": lambda: rate_limited(0.05),
        "server_error": lambda: error(500, "server_error"),
        "overloaded": lambda: error(503, "overloaded"),
        "truncated": truncated,
        "cut_body": cut_body,
        "garbage": garbage,
        "wrong_json": wrong_json,
        "null_content": lambda: empty(is_null=True),
        "empty": empty,
        "refusal": refusal,
        "dropped": dropped,
        "hang": hang,
    }
)
"""Every kind of trouble that passes, by name; `quota` does not pass and is not among them."""

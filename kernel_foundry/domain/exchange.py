"""Exchanges with language models: what was asked, what came back, what it took."""

from dataclasses import dataclass
from enum import StrEnum

from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.request import TokenUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of a conversation."""

    role: str
    """"system", "user" or "assistant"."""
    content: str


class FinishReason(StrEnum):
    """Why a reply ended."""

    STOP = "stop"
    LENGTH = "length"
    """Cut at the output limit."""
    REFUSED = "refused"
    """The model, or a filter before it, declines; the reply's text says why."""


class ExchangePurpose(StrEnum):
    """The purpose of a request to a model."""

    PROPOSAL = "proposal"
    META_PROMPT = "meta_prompt"
    """A better text of guidance for later prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One prompt and one reply."""

    run: str
    purpose: ExchangePurpose = ExchangePurpose.PROPOSAL
    selection: int | None = None
    """`Selection.sequence` that a proposal answers; None for other purposes."""
    attempt: int = 0
    """0 for the first reply to a selection, 1 for one that was asked for again."""
    asked: str
    """The model asked; `usage.model` is the one that answered."""
    seed: int
    """The run's seed, which decides the answers of structured models."""
    messages: tuple[ChatMessage, ...]
    reply: str
    finish: FinishReason
    usage: TokenUsage
    recorded_unix_s: float
    sequence: int = 0
    """1-based position among the run's exchanges; 0 before it is recorded."""


def prompt_digest(messages: tuple[ChatMessage, ...]) -> str:
    """Return the digest of a conversation, whichever model it goes to."""
    return content_digest(*(part for m in messages for part in (m.role, m.content)))

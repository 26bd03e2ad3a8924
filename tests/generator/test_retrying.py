"""When a model is asked again, and after which pause; no time passes here."""

import random

import pytest

from generator_svc.llm.interface import ModelReply, ModelRequest
from generator_svc.llm.retrying import FailedAttempt, ModelRetryPolicy, Retries
from kernel_foundry.domain.exchange import ChatMessage, FinishReason
from kernel_foundry.domain.request import TokenUsage
from kernel_foundry.errors import LlmConfigurationError, LlmUnavailableError

_POLICY = ModelRetryPolicy(
    retry_count=4,
    first_back_off_seconds=1.0,
    longest_back_off_seconds=4.0,
    longest_retry_after_seconds=60.0,
)


class Play:
    def __init__(self, *script: FailedAttempt | ModelReply) -> None:
        self.script = list(script)
        self.asked: list[str] = []
        self.pauses_s: list[float] = []

    async def attempt(self, model: str) -> ModelReply:
        """Play the next entry."""
        self.asked.append(model)
        entry = self.script.pop(0)
        if isinstance(entry, FailedAttempt):
            raise entry
        return entry

    async def ask(self, *models: str, seed: int = 1) -> ModelReply:
        async def note(seconds: float) -> None:
            self.pauses_s.append(seconds)

        request = ModelRequest(
            models=models,
            messages=(ChatMessage(role="user", content="?"),),
            max_output_tokens=1,
        )
        retries = Retries(_POLICY, rng=random.Random(seed), sleep=note)
        return await retries.ask(request, self.attempt)


def _busy(retry_after_seconds: float | None = None) -> FailedAttempt:
    error = LlmUnavailableError("busy", model="m")
    return FailedAttempt(error, is_transient=True, retry_after_seconds=retry_after_seconds)


def _refused() -> FailedAttempt:
    return FailedAttempt(LlmConfigurationError("no", model="m"), is_transient=False)


_REPLY = ModelReply(
    text="hi",
    finish=FinishReason.STOP,
    usage=TokenUsage(model="m", input_tokens=1, output_tokens=1, cost_usd=0.0, latency_ms=1.0),
)


async def test_pauses_double_up_to_a_limit_and_jitter() -> None:
    """Each between half and all of 1, 2, 4, 4 seconds, and not the same for two callers."""
    one, other = (Play(_busy(), _busy(), _busy(), _busy(), _REPLY) for _ in range(2))
    assert await one.ask("m") is _REPLY
    await other.ask("m", seed=2)
    for pause_s, longest_s in zip(one.pauses_s, (1.0, 2.0, 4.0, 4.0), strict=True):
        assert longest_s / 2 <= pause_s <= longest_s
    assert one.pauses_s != other.pauses_s


async def test_the_provider_says_how_long() -> None:
    """Not earlier than that, and not all at the same moment."""
    play = Play(_busy(20.0), _REPLY)
    await play.ask("m")
    assert 20.0 <= play.pauses_s[0] <= 20.5


async def test_a_wait_that_is_too_long_ends_the_attempts() -> None:
    """The next model is asked instead."""
    play = Play(_busy(61.0), _REPLY)
    await play.ask("m", "n")
    assert (play.asked, play.pauses_s) == (["m", "n"], [])


async def test_nothing_is_waited_for_behind_the_last_attempt() -> None:
    """Five attempts have four pauses."""
    play = Play(*(_busy() for _ in range(5)))
    with pytest.raises(LlmUnavailableError):
        await play.ask("m")
    assert (len(play.asked), len(play.pauses_s)) == (5, 4)


async def test_a_refusal_is_final() -> None:
    """Each model says no once; the first one's reason is told."""
    play = Play(_refused(), _refused())
    with pytest.raises(LlmConfigurationError):
        await play.ask("m", "n")
    assert (play.asked, play.pauses_s) == (["m", "n"], [])

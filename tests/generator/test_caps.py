"""Hard caps: a call that could exceed a cap is not made."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from generator_svc.caps import RequestRate, Reservations, Spending, expected_spending
from generator_svc.llm.interface import ModelFacts
from generator_svc.prompting.writer import PromptWriter
from kernel_foundry.domain.exchange import ChatMessage
from kernel_foundry.domain.mechanisms import EXPERIENCE
from kernel_foundry.domain.request import BudgetCaps, ProposalRequest
from kernel_foundry.errors import LlmConfigurationError, LlmQuotaError

_NOTHING = Spending(cost_usd=0.0, tokens=0)
_FREE = ModelFacts(
    input_usd_per_token=0.0,
    output_usd_per_token=0.0,
    max_output_tokens=None,
    counts_tokens=False,
)
_UNPRICED = ModelFacts(input_usd_per_token=None, output_usd_per_token=None, max_output_tokens=None)


@pytest.mark.parametrize(
    "caps", [BudgetCaps(cost_usd=0.011), BudgetCaps(tokens=900)], ids=["usd", "tokens"]
)
async def test_a_call_that_could_exceed_a_cap_is_not_made(
    request_: ProposalRequest, samples: Any, make_generator: Any, caps: BudgetCaps
) -> None:
    """The upper estimate counts before the call: 1000 output tokens at most, 0.01 USD."""
    generator, models = make_generator([samples.REPLY])
    with pytest.raises(LlmQuotaError):
        await generator.propose(replace(request_, caps=caps))
    assert models.asked == []


async def test_a_call_within_the_caps_is_made(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """Caps that leave room for the estimate refuse nothing."""
    generator, _ = make_generator([samples.REPLY])
    roomy = replace(request_, caps=BudgetCaps(cost_usd=1.0, tokens=100_000))
    assert (await generator.propose(roomy)).candidate is not None


async def test_what_was_spent_before_counts(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """The same caps refuse a run that has spent them."""
    generator, _ = make_generator([samples.REPLY])
    spent = replace(request_, caps=BudgetCaps(cost_usd=1.0), spent_usd=0.995)
    with pytest.raises(LlmQuotaError, match="USD cap of 1"):
        await generator.propose(spent)


async def test_a_run_that_was_forgotten_does_not_cap_the_next_of_its_name(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """Else a service that lives long would hold a deleted run's spending against a new run."""
    generator, _ = make_generator([samples.REPLY, samples.REPLY])
    capped = replace(request_, caps=BudgetCaps(cost_usd=1.0))
    with pytest.raises(LlmQuotaError):
        await generator.propose(replace(capped, spent_usd=0.995))
    await generator.forget_run(request_.run)
    assert (await generator.propose(capped)).candidate is not None


async def test_the_retry_counts_what_the_first_call_cost(
    request_: ProposalRequest, make_generator: Any
) -> None:
    """A cap with room for one call only: the reply is reported, the retry is not made."""
    generator, models = make_generator(["nothing"])
    messages = PromptWriter().write(request_).messages
    one_call = expected_spending((("m", _UNPRICED),), messages, 1000, BudgetCaps())
    proposal = await generator.propose(
        replace(request_, caps=BudgetCaps(tokens=one_call.tokens + 100), without=(EXPERIENCE,))
    )
    assert (proposal.candidate, len(models.asked), len(proposal.usage)) == (None, 1, 1)
    assert "token cap" in proposal.failure


async def _refuses(
    reservations: Reservations, run: str, caps: BudgetCaps, *calls: Spending
) -> bool:
    try:
        async with reservations.hold(run, caps, _NOTHING, *calls):
            return False
    except LlmQuotaError:
        return True


async def _call(reservations: Reservations, caps: BudgetCaps, taken: int, log: list[str]) -> None:
    expected = Spending(cost_usd=0.0, tokens=60)
    async with reservations.hold("r", caps, _NOTHING, expected) as held:
        log.append("sent")
        await asyncio.sleep(0)
        held.settle(Spending(cost_usd=0.0, tokens=taken))
        log.append("settled")


async def test_a_call_waits_for_the_room_that_others_may_yet_leave() -> None:
    """Two calls that fit one by one do not fit together; what the first leaves is the second's."""
    log: list[str] = []
    reservations, caps = Reservations(), BudgetCaps(tokens=100)
    await asyncio.gather(*(_call(reservations, caps, 20, log) for _ in range(3)))
    assert log == ["sent", "settled"] * 3


async def test_a_call_is_refused_when_others_left_no_room() -> None:
    """It waited in vain."""
    log: list[str] = []
    reservations, caps = Reservations(), BudgetCaps(tokens=100)
    calls = [_call(reservations, caps, 50, log) for _ in range(2)]
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(e) for e in ended] == [type(None), LlmQuotaError]
    assert log == ["sent", "settled"]


async def test_a_call_that_failed_leaves_its_room() -> None:
    """And who was cancelled while waiting held none."""
    reservations, caps = Reservations(), BudgetCaps(tokens=100)
    call = Spending(cost_usd=0.0, tokens=100)

    async def fail() -> None:
        async with reservations.hold("r", caps, _NOTHING, call):
            await asyncio.sleep(0)
            raise LookupError

    failing, waiting = (
        asyncio.create_task(work) for work in (fail(), _call(reservations, caps, 0, []))
    )
    await asyncio.sleep(0)
    waiting.cancel()
    ended = await asyncio.gather(failing, waiting, return_exceptions=True)
    assert [type(e) for e in ended] == [LookupError, asyncio.CancelledError]
    async with reservations.hold("r", caps, _NOTHING, call):
        pass


async def test_who_waited_takes_what_is_left() -> None:
    """The largest size that the others left room for; not a smaller one for being early."""
    reservations, caps, held = Reservations(), BudgetCaps(tokens=100), []
    sizes = [Spending(cost_usd=0.0, tokens=tokens) for tokens in (80, 40, 20)]

    async def call(taken: int) -> None:
        async with reservations.hold("r", caps, _NOTHING, *sizes) as reservation:
            held.append(reservation.size)
            await asyncio.sleep(0)
            reservation.settle(Spending(cost_usd=0.0, tokens=taken))

    await asyncio.gather(call(10), call(35), call(30), call(20))
    assert held == [0, 0, 1, 2]
    assert await _refuses(reservations, "r", caps, *sizes)


async def test_runs_do_not_share_a_budget() -> None:
    """What one run has in flight is nothing to another."""
    reservations, caps = Reservations(), BudgetCaps(tokens=100)
    expected = Spending(cost_usd=0.0, tokens=60)
    async with (
        reservations.hold("r", caps, _NOTHING, expected),
        reservations.hold("s", caps, _NOTHING, expected),
    ):
        pass


async def test_a_reached_cap_refuses_even_what_is_free() -> None:
    """A run that is over stays over, whichever model is asked."""
    spent = Spending(cost_usd=1.0, tokens=0)
    with pytest.raises(LlmQuotaError):
        async with Reservations().hold("r", BudgetCaps(cost_usd=1.0), spent, _NOTHING):
            pass


async def test_a_cap_of_zero_allows_what_is_free() -> None:
    message = (ChatMessage(role="user", content="x" * 300),)
    caps = BudgetCaps(cost_usd=0.0, tokens=0)
    expected = expected_spending((("recipes", _FREE),), message, 1000, caps)
    assert expected == _NOTHING
    async with Reservations().hold("r", caps, _NOTHING, expected):
        pass


def test_the_dearest_fallback_is_expected() -> None:
    """Any of the models may answer, so the estimate is that of the dearest."""
    cheap = replace(_FREE, counts_tokens=True, output_usd_per_token=1e-6)
    dear = replace(cheap, output_usd_per_token=1e-3)
    message = (ChatMessage(role="user", content="x"),)
    models = (("cheap", cheap), ("dear", dear), ("recipes", _FREE))
    expected = expected_spending(models, message, 100, BudgetCaps(cost_usd=1.0))
    assert expected.cost_usd == pytest.approx(0.1)


def test_a_usd_cap_needs_a_price() -> None:
    """A cap that cannot be held is refused instead of ignored."""
    message = (ChatMessage(role="user", content="x"),)
    models = (("mystery", _UNPRICED),)
    with pytest.raises(LlmConfigurationError, match="mystery"):
        expected_spending(models, message, 100, BudgetCaps(cost_usd=1.0))
    assert expected_spending(models, message, 100, BudgetCaps(tokens=9)).tokens > 100


async def test_what_ended_since_the_sum_was_taken_counts() -> None:
    """A caller may have read what is spent before another call ended."""
    reservations, caps = Reservations(), BudgetCaps(tokens=100)
    expected = Spending(cost_usd=0.0, tokens=60)
    async with reservations.hold("r", caps, _NOTHING, expected) as held:
        held.settle(Spending(cost_usd=0.0, tokens=50))
    assert await _refuses(reservations, "r", caps, expected)
    assert not await _refuses(reservations, "s", caps, expected)


async def test_what_is_settled_counts_once() -> None:
    """Also when the caller's sum has it, too."""
    reservations, caps = Reservations(), BudgetCaps(tokens=100)
    async with reservations.hold("r", caps, _NOTHING, _NOTHING) as held:
        held.settle(Spending(cost_usd=0.0, tokens=50))
    half = Spending(cost_usd=0.0, tokens=50)
    async with reservations.hold("r", caps, half, half):
        pass


async def test_a_lost_attempt_counts() -> None:
    """Its prompt was sent, whatever became of the answer."""
    reservations, caps = Reservations(), BudgetCaps(cost_usd=1.0)
    call = Spending(cost_usd=0.4, tokens=1)
    async with reservations.hold("r", caps, _NOTHING, call):
        reservations.lost("r", Spending(cost_usd=0.3, tokens=1))
    assert not await _refuses(reservations, "r", caps, call)
    reservations.lost("r", Spending(cost_usd=0.31, tokens=1))
    assert await _refuses(reservations, "r", caps, call)


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def clock(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        """Let the time pass, and others run."""
        assert seconds > 0.0
        await asyncio.sleep(0)
        self.now_s += seconds


async def _sent(rate: RequestRate, time: Time, run: str, most: int | None) -> float:
    await rate.wait(run, most)
    return time.now_s


async def test_no_minute_has_more_requests_than_its_cap() -> None:
    """Whichever 60 seconds are looked at, and however many wait at once."""
    time = Time()
    rate = RequestRate(clock=time.clock, sleep=time.sleep)
    sent_s = await asyncio.gather(*(_sent(rate, time, "r", 5) for _ in range(23)))
    assert sent_s == sorted(sent_s)
    for earlier_s, later_s in zip(sent_s, sent_s[5:], strict=False):
        assert later_s - earlier_s >= 60.0
    assert sent_s[-1] - sent_s[0] == pytest.approx(4 * 61.0)


async def test_requests_spread_over_the_minute_wait_for_the_oldest_only() -> None:
    """The window slides."""
    time = Time()
    rate = RequestRate(clock=time.clock, sleep=time.sleep)
    for _ in range(3):
        await rate.wait("r", 3)
        await time.sleep(10.0)
    assert await _sent(rate, time, "r", 3) == pytest.approx(1061.0)
    assert await _sent(rate, time, "r", 3) == pytest.approx(1071.0)


async def test_runs_do_not_share_a_minute() -> None:
    """What one run sends delays no other; a run without a cap is not delayed at all."""
    time = Time()
    rate = RequestRate(clock=time.clock, sleep=time.sleep)
    for run, most in (("r", 1), ("s", 1), ("t", None), ("t", None)):
        assert await _sent(rate, time, run, most) == 1000.0


async def test_who_stops_waiting_takes_no_place() -> None:
    """A cancelled proposal holds nobody up."""
    time, never = Time(), asyncio.Event()

    async def sleep(_: float) -> None:
        await never.wait()

    rate = RequestRate(clock=time.clock, sleep=sleep)
    await rate.wait("r", 1)
    waiting = asyncio.create_task(rate.wait("r", 1))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    time.now_s += 61.0
    await rate.wait("r", 1)


async def test_a_rate_of_zero_is_refused() -> None:
    """Waiting would never end."""
    with pytest.raises(LlmQuotaError, match="requests a minute"):
        await RequestRate().wait("r", 0)

"""Hard caps on money, tokens and requests a minute, which count calls still in flight.

Each call's maximum cost is reserved first. Of a call without a complete answer only the prompt is
counted: what the provider bills for the rest is not known here.
"""

import asyncio
import math
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final, cast

from generator_svc.llm.interface import ModelFacts, ModelReply
from kernel_foundry.domain.exchange import ChatMessage, FinishReason
from kernel_foundry.domain.request import BudgetCaps
from kernel_foundry.errors import LlmConfigurationError, LlmQuotaError

_BYTES_PER_TOKEN = 3
"""UTF-8 bytes of a token, lower bound: source text takes 3 to 4, so tokens are over-counted."""

_TOKENS_PER_MESSAGE = 8
"""Role and separators of one message, upper bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Money and tokens, spent or expected."""

    cost_usd: float
    tokens: int

    def __add__(self, other: "Spending") -> "Spending":
        """Return both together."""
        return Spending(cost_usd=self.cost_usd + other.cost_usd, tokens=self.tokens + other.tokens)


NOTHING: Final = Spending(cost_usd=0.0, tokens=0)


class Reservations:
    """Refuses calls that could exceed a run's caps.

    Every request says what the run has spent. This class adds what calls in flight may still cost,
    so that several at once cannot exceed a cap together, and what calls cost that ended since the
    caller took its sum.
    """

    def __init__(self) -> None:
        self._reserved: dict[str, dict[object, Spending]] = defaultdict(dict)
        self._known: dict[str, Spending] = defaultdict(lambda: NOTHING)
        self._freed = asyncio.Event()
        """Set when a call ends; then another takes its place."""

    @asynccontextmanager
    async def hold(
        self, run: str, caps: BudgetCaps, spent: Spending, *sizes: Spending
    ) -> AsyncIterator["Reservation"]:
        """Reserve the maximum cost of one call while it lasts; `settle` counts the real one.

        Waits while only calls in flight leave no room, since most take far less than their maximum.

        Args:
            run: The call's run.
            caps: The run's caps.
            spent: The run's spending as far as the caller knows.
            sizes: Maximum costs, one for each way to make the call, the dearest first. The first
                one that the caps leave room for is reserved.

        Raises:
            LlmQuotaError: a cap is reached, or leaves room for none of `sizes`.
        """
        while (size := self._fitting(run, caps, spent, sizes)) is None:
            await self._freed.wait()
        key = object()
        self._reserved[run][key] = sizes[size]
        try:
            yield Reservation(self, run, size)
        finally:
            del self._reserved[run][key]
            if not self._reserved[run]:
                del self._reserved[run]
            self._freed.set()
            self._freed = asyncio.Event()

    def forget(self, run: str) -> None:
        """Forget a run's spending: a new run of its name starts from nothing."""
        self._known.pop(run, None)

    def lost(self, run: str, spending: Spending) -> None:
        """Count the prompt of an attempt without an answer, which may be billed."""
        self._known[run] += spending

    def _fitting(
        self, run: str, caps: BudgetCaps, spent: Spending, sizes: tuple[Spending, ...]
    ) -> int | None:
        """Return the index of the size to hold; None: not yet; raise if there never will be."""
        refusals = [self._refusal(run, caps, spent, size) for size in sizes]
        if None not in refusals:
            raise cast("LlmQuotaError", refusals[-1])
        index = refusals.index(None)
        total = sum(self._reserved.get(run, {}).values(), self._known[run]) + sizes[index]
        has_room = not (
            _is_over(caps.cost_usd, 0.0, total.cost_usd) or _is_over(caps.tokens, 0, total.tokens)
        )
        return index if has_room else None

    def _refusal(
        self, run: str, caps: BudgetCaps, spent: Spending, expected: Spending
    ) -> LlmQuotaError | None:
        spent = self._known[run] = larger(self._known[run], spent)
        total = spent + expected
        if _is_over(caps.cost_usd, spent.cost_usd, total.cost_usd):
            return _over("USD", caps.cost_usd, spent.cost_usd, total.cost_usd)
        if _is_over(caps.tokens, spent.tokens, total.tokens):
            return _over("token", caps.tokens, spent.tokens, total.tokens)
        return None


class Reservation:
    """The reserved maximum cost of one call.

    Args:
        reservations: Where it is reserved.
        run: The call's run.
        size: Index of the reserved one among the `sizes` of `Reservations.hold`.
    """

    def __init__(self, reservations: Reservations, run: str, size: int) -> None:
        self._reservations = reservations
        self._run = run
        self.size = size

    def settle(self, actual: Spending) -> None:
        """Count the call's real cost from now on, whatever sum callers know."""
        self._reservations._known[self._run] += actual


_WINDOW_SECONDS: Final = 61.0
"""A second more than a minute, since requests may arrive closer together than they left."""


@dataclass(slots=True)
class _Window:
    sent_s: deque[float] = field(default_factory=deque)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the request that waits, so that requests leave in the order in which they came."""


class RequestRate:
    """Holds requests back so that a run makes no more of them in any minute than its cap allows.

    Args:
        clock: Seconds; rises.
        sleep: Waits that many seconds.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._windows: dict[str, _Window] = {}

    async def wait(self, run: str, most_per_minute: int | None) -> None:
        """Return when a request of `run` may leave; None: at once.

        Raises:
            LlmQuotaError: the cap is zero, so none may ever leave.
        """
        if most_per_minute is None:
            return
        if most_per_minute < 1:
            raise LlmQuotaError(
                f"the run's cap is {most_per_minute} requests a minute: raise the cap to go on",
                cap=str(most_per_minute),
                unit="requests a minute",
            )
        self._forget_idle()
        window = self._windows.setdefault(run, _Window())
        async with window.turn:
            while (pause_s := self._pause_s(window.sent_s, most_per_minute)) > 0.0:
                await self._sleep(pause_s)
            window.sent_s.append(self._clock())

    def _pause_s(self, sent_s: deque[float], most: int) -> float:
        """Return how long until fewer than `most` requests are in the window."""
        now_s = self._clock()
        while sent_s and now_s - sent_s[0] >= _WINDOW_SECONDS:
            sent_s.popleft()
        if len(sent_s) < most:
            return 0.0
        return sent_s[len(sent_s) - most] + _WINDOW_SECONDS - now_s

    def _forget_idle(self) -> None:
        """Drop the windows of runs that have sent nothing for a minute and wait for nothing."""
        limit_s = self._clock() - _WINDOW_SECONDS
        self._windows = {
            run: window
            for run, window in self._windows.items()
            if window.turn.locked() or (window.sent_s and window.sent_s[-1] > limit_s)
        }


def expected_spending(
    models: tuple[tuple[str, ModelFacts], ...],
    messages: tuple[ChatMessage, ...],
    max_output_tokens: int,
    caps: BudgetCaps,
) -> Spending:
    """Return the most that one call may cost, whichever of `models` answers it.

    Raises:
        LlmConfigurationError: there is a USD cap and a model whose price is not known.
    """
    input_tokens = _prompt_tokens(messages)
    most = Spending(cost_usd=0.0, tokens=0)
    for name, facts in models:
        if not facts.counts_tokens:
            continue
        cost_usd = 0.0
        if caps.cost_usd is not None:
            cost_usd = _cost_usd(name, facts, input_tokens, max_output_tokens)
        most = Spending(
            cost_usd=max(most.cost_usd, cost_usd), tokens=input_tokens + max_output_tokens
        )
    return most


def counted(reply: ModelReply, facts: ModelFacts, messages: tuple[ChatMessage, ...]) -> ModelReply:
    """Return `reply` with an upper estimate of usage that its provider did not report.

    Otherwise caps would not hold with a server that counts no tokens, or with a model's name that
    the cost table lacks.
    """
    usage = reply.usage
    is_silent = not usage.input_tokens and not usage.output_tokens
    if not facts.counts_tokens or (is_silent and reply.finish is FinishReason.REFUSED):
        return reply
    input_tokens = usage.input_tokens or _prompt_tokens(messages)
    output_tokens = usage.output_tokens or _tokens(reply.text)
    cost_usd = usage.cost_usd or (
        input_tokens * (facts.input_usd_per_token or 0.0)
        + output_tokens * (facts.output_usd_per_token or 0.0)
    )
    return replace(
        reply,
        usage=replace(
            usage, input_tokens=input_tokens, output_tokens=output_tokens, cost_usd=cost_usd
        ),
    )


def _prompt_tokens(messages: tuple[ChatMessage, ...]) -> int:
    return sum(_tokens(m.content) + _TOKENS_PER_MESSAGE for m in messages)


def _tokens(text: str) -> int:
    return math.ceil(len(text.encode()) / _BYTES_PER_TOKEN)


def _cost_usd(name: str, facts: ModelFacts, input_tokens: int, output_tokens: int) -> float:
    if facts.input_usd_per_token is None or facts.output_usd_per_token is None:
        raise LlmConfigurationError(
            f"the price of model {name!r} is not known, so a USD cap cannot be held: cap tokens "
            "instead, or take a model of LiteLLM's cost table",
            model=name,
        )
    return input_tokens * facts.input_usd_per_token + output_tokens * facts.output_usd_per_token


def larger(one: Spending, other: Spending) -> Spending:
    """Return the larger sums: each side may know of calls that the other does not."""
    return Spending(
        cost_usd=max(one.cost_usd, other.cost_usd), tokens=max(one.tokens, other.tokens)
    )


def _is_over(cap: float | None, spent: float, total: float) -> bool:
    """Tell whether the cap forbids a call; a cap of 0 allows what costs nothing."""
    return cap is not None and (spent >= cap > 0 or total > cap)


def _over(what: str, cap: float | None, spent: float, total: float) -> LlmQuotaError:
    return LlmQuotaError(
        f"the run's {what} cap of {cap} is reached: {spent:g} spent, and the next call could "
        f"make it {total:g}; raise the cap to go on",
        cap=str(cap),
        unit=what,
        spent=f"{spent:g}",
    )

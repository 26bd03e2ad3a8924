"""Hard caps on money and tokens, held against calls that are still in flight.

Knows nothing of models: it gets an upper estimate of a call before the call is made.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from generator_svc.llm.interface import ModelFacts
from kernel_foundry.domain.exchange import ChatMessage
from kernel_foundry.domain.request import BudgetCaps
from kernel_foundry.errors import LlmConfigurationError, LlmQuotaError

_BYTES_PER_TOKEN = 3
"""UTF-8 bytes of a token, from below: source text takes 3 to 4 (so tokens are over-counted)."""

_TOKENS_PER_MESSAGE = 8
"""Role and separators of one message, from above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Money and tokens, spent or expected."""

    cost_usd: float
    tokens: int

    def __add__(self, other: "Spending") -> "Spending":
        """Return both together."""
        return Spending(cost_usd=self.cost_usd + other.cost_usd, tokens=self.tokens + other.tokens)


class Budget:
    """Refuses calls that could exceed a run's caps.

    What a run has spent comes with every request; what its calls in flight may yet cost is
    kept here, so that several at once cannot exceed a cap together.
    """

    def __init__(self) -> None:
        self._reserved: dict[str, dict[object, Spending]] = defaultdict(dict)

    def allows(self, run: str, caps: BudgetCaps, spent: Spending, expected: Spending) -> bool:
        """Tell whether `reserve` would succeed now."""
        return self._refusal(run, caps, spent, expected) is None

    @contextmanager
    def reserve(
        self, run: str, caps: BudgetCaps, spent: Spending, expected: Spending
    ) -> Iterator[None]:
        """Hold `expected` for the time of one call.

        Raises:
            LlmQuotaError: a cap is reached, or spent, reserved and expected together exceed it.
        """
        refusal = self._refusal(run, caps, spent, expected)
        if refusal is not None:
            raise refusal
        key = object()
        self._reserved[run][key] = expected
        try:
            yield
        finally:
            del self._reserved[run][key]
            if not self._reserved[run]:
                del self._reserved[run]

    def _refusal(
        self, run: str, caps: BudgetCaps, spent: Spending, expected: Spending
    ) -> LlmQuotaError | None:
        total = sum(self._reserved.get(run, {}).values(), spent) + expected
        if _is_over(caps.cost_usd, spent.cost_usd, total.cost_usd):
            return _over("USD", caps.cost_usd, spent.cost_usd, total.cost_usd)
        if _is_over(caps.tokens, spent.tokens, total.tokens):
            return _over("token", caps.tokens, spent.tokens, total.tokens)
        return None


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
    input_tokens = sum(
        math.ceil(len(m.content.encode()) / _BYTES_PER_TOKEN) + _TOKENS_PER_MESSAGE
        for m in messages
    )
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


def _cost_usd(name: str, facts: ModelFacts, input_tokens: int, output_tokens: int) -> float:
    if facts.input_usd_per_token is None or facts.output_usd_per_token is None:
        raise LlmConfigurationError(
            f"the price of model {name!r} is not known, so a USD cap cannot be held: cap tokens "
            "instead, or take a model of LiteLLM's cost table",
            model=name,
        )
    return input_tokens * facts.input_usd_per_token + output_tokens * facts.output_usd_per_token


def _is_over(cap: float | None, spent: float, total: float) -> bool:
    """Tell whether the cap forbids a call; a cap of 0 allows what costs nothing."""
    return cap is not None and (spent >= cap > 0 or total > cap)


def _over(what: str, cap: float | None, spent: float, total: float) -> LlmQuotaError:
    return LlmQuotaError(
        f"the run's {what} cap of {cap} is reached: {spent:g} spent, and with what is in flight "
        f"the next call could make it {total:g}; raise the cap to go on",
        cap=str(cap),
        unit=what,
        spent=f"{spent:g}",
    )

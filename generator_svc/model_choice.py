"""Which model is asked: a bandit on gain per dollar, over the models that the user allows.

Thompson sampling. How often a model gains is a Poisson rate with a Gamma posterior, in units of the
typical gain, so that rare large gains and frequent small ones are compared fairly; whether it
answers at all is a Beta posterior. Both discount the past slowly, so that a model that stopped
paying off, or never answered, is tried again now and then. A model without a past starts as the
average one. `learning.py` defines a gain.
Source: Agrawal and Goyal 2012 (Thompson sampling); Raj and Kalyani 2017 (discounted)
"""

import math
import random
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from kernel_foundry.domain.mechanisms import MODEL_WEIGHTS
from kernel_foundry.domain.request import ProposalRequest
from kernel_foundry.domain.verdict_limits import MOST_FITNESS

EVALUATION_USD: Final = 0.001
"""Cost of judging a proposal: a second of a rented GPU. It keeps the gain per dollar of free models
finite."""

_DECAY: Final = 0.99
"""Weight of an outcome relative to the next one: about the last 100 count."""

_OTHER_RUN: Final = 0.3
"""Weight of an outcome of another run, which had another task."""

_KEPT: Final = 500
"""Newest outcomes that are used; older ones would have no weight."""

_PRIOR_OUTCOMES: Final = (2.0, 25.0)
"""Fewest and most outcomes of the average model that the prior of each model is worth."""


class ModelChooser(Protocol):
    """Chooses a model for a proposal, and learns from the proposal's outcome."""

    def choose(self, request: ProposalRequest, models: tuple[str, ...]) -> str:
        """Return one of `models`, by its bare name; the same state gets the same answer."""
        ...

    def credit(
        self, model: str, *, run: str, gain: float, usd: float, answered: bool = True
    ) -> None:
        """Learn from the outcome of one proposal of `model`.

        Args:
            model: Its bare name.
            run: The proposal's run.
            gain: Fitness gained over the parent, 0 when worse or failed; of a seed its fitness.
            usd: What the proposal cost.
            answered: False when the model gave no reply at all.
        """
        ...


def models_for(entries: tuple[str, ...], role: str) -> tuple[str, ...]:
    """Return the models that serve an expert: its own ("memory=openai/gpt-5"), then everybody's.

    Entries of other experts are left out, unless there is nothing else.
    """
    parts = [_parts(entry) for entry in entries]
    own = [model for owner, model in parts if owner and owner == role]
    plain = [model for owner, model in parts if not owner]
    return tuple(dict.fromkeys([*own, *plain] or [model for _, model in parts]))


def named_models(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return every model that the entries name, for whichever expert."""
    return tuple(dict.fromkeys(model for _, model in map(_parts, entries)))


def _parts(entry: str) -> tuple[str, str]:
    """Return (role or "", model); a "=" behind a provider or an agent is the model's own."""
    role, sign, model = entry.partition("=")
    return (role, model) if sign and not {"/", ":"} & set(role) else ("", entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOutcome:
    """The outcome of one proposal of a model; see `ModelChooser.credit`."""

    model: str
    gain: float
    usd: float
    run: str = ""
    answered: bool = True


class BanditChooser:
    """Chooses the models that gain most per dollar most often.

    Args:
        history: Outcomes of earlier proposals, the oldest first.
    """

    def __init__(self, history: Iterable[ModelOutcome] = ()) -> None:
        self._outcomes: deque[ModelOutcome] = deque(filter(_is_sound, history), maxlen=_KEPT)

    def choose(self, request: ProposalRequest, models: tuple[str, ...]) -> str:
        """See `ModelChooser.choose`."""
        eligible = _eligible(models, request.selection.island)
        rng = _rng(request)
        if len(eligible) == 1:
            return eligible[0]
        if MODEL_WEIGHTS in request.without:
            return rng.choice(eligible)
        records = self._records(request.run)
        average = sum(records.values(), _Record())
        # One draw a model, in the order of names: the order of the user's list changes nothing.
        draws = {
            model: _draw(records.get(model, _Record()), average, rng) for model in sorted(eligible)
        }
        return max(draws, key=lambda model: draws[model])

    def credit(
        self, model: str, *, run: str, gain: float, usd: float, answered: bool = True
    ) -> None:
        """See `ModelChooser.credit`."""
        self._outcomes.append(
            ModelOutcome(model=model, gain=max(gain, 0.0), usd=usd, run=run, answered=answered)
        )

    def _records(self, run: str) -> dict[str, "_Record"]:
        records: dict[str, _Record] = {}
        weight = 1.0
        for outcome in reversed(self._outcomes):
            record = records.setdefault(outcome.model, _Record())
            record.add(outcome, weight * (1.0 if outcome.run == run else _OTHER_RUN))
            weight *= _DECAY
        return records


@dataclass(slots=True)
class _Record:
    answers: float = 0.0
    silences: float = 0.0
    gain: float = 0.0
    wins: float = 0.0
    """Outcomes with a gain."""
    usd: float = 0.0

    def add(self, outcome: ModelOutcome, weight: float) -> None:
        """Count an outcome."""
        self.answers += weight * outcome.answered
        self.silences += weight * (not outcome.answered)
        self.gain += weight * outcome.gain
        self.wins += weight * (outcome.gain > 0.0)
        self.usd += weight * (outcome.usd + EVALUATION_USD * outcome.answered)

    def __add__(self, other: "_Record") -> "_Record":
        """Return the sums of both."""
        return _Record(
            answers=self.answers + other.answers,
            silences=self.silences + other.silences,
            gain=self.gain + other.gain,
            wins=self.wins + other.wins,
            usd=self.usd + other.usd,
        )


def _is_sound(outcome: ModelOutcome) -> bool:
    """Return whether a store's row has usable numbers: NaN would make gammavariate loop forever."""
    return 0.0 <= outcome.gain <= MOST_FITNESS and 0.0 <= outcome.usd < math.inf


def _draw(record: _Record, average: _Record, rng: random.Random) -> float:
    """Return a gain per dollar drawn from what is believed of a model.

    The unit of gain is the same for all models, so it is left out of the comparison.
    """
    unit = average.gain / average.wins if average.wins else 1.0
    # The average model's rate, always above 0: a model that has not gained yet may.
    rate = (average.gain / unit + 1.0) / (average.answers + 2.0)
    least, most = _PRIOR_OUTCOMES
    prior_outcomes = min(max(1.0 / rate, least), most)
    shape = rate * prior_outcomes + record.gain / unit
    gain_rate = rng.gammavariate(shape, 1.0 / (prior_outcomes + record.answers))
    usual_usd = (average.usd + EVALUATION_USD) / (average.answers + 1.0)
    usd = (record.usd + usual_usd) / (record.answers + 1.0)
    # Most models answer most of the time.
    answers = rng.betavariate(4.0 + record.answers, 1.0 + record.silences)
    return answers * gain_rate / usd


def _eligible(models: tuple[str, ...], role: str) -> tuple[str, ...]:
    """Return the models to choose among: an expert's own ones have priority."""
    own = tuple(dict.fromkeys(m for owner, m in map(_parts, models) if owner and owner == role))
    return own or models_for(models, role)


def _rng(request: ProposalRequest) -> random.Random:
    return random.Random(f"{request.run}/{request.seed}/{request.selection.sequence}")

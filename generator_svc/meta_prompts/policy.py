"""Which guidance is shown, and what becomes of an edited one: arithmetic on what each was worth.

Knows nothing of texts, stores and models. Its input is who there is (`Member`) and what proposals
made under them gained (`Tally`); equal input gives equal answers.

A gain is the fitness that a proposal won over its parent, 0 when it was worse or failed: the
archive keeps the parent, so a loss costs the search no more than the try, and an unclipped loss
would measure how good the parents were. Means are never compared over everything: a repair gains
more than a change to a fast kernel, the first hour of a run more than the last. Gains are compared
within a stratum (same run, same kind of move, same period), by the model

    gain = level of the stratum + effect of the prompt + noise,

where the effect of the seed is 0 and every other one is drawn towards its parent's, and so in the
end towards the seed's, as if `SHRINKAGE` credits had shown no difference.
Source: two-way additive model with a ridge; UCB1 of Auer et al. 2002; constants chosen on simulated
runs (`tests/generator/test_meta_prompts_policy.py`, figures in docs/meta-prompts.md).
"""

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

SHRINKAGE: Final = 4.0
"""Credits' worth of belief that an edit changed nothing."""

EXPLORATION: Final = 0.25
"""Weight of what is not known of an accepted prompt, in standard deviations of a gain."""

TRIAL_PERIOD: Final = 4
"""Of so many proposals in a row, one goes to what is on trial."""

LEAST_CREDITS: Final = 8
"""Before so many, nobody judges a prompt on trial."""

TRIAL_CREDITS: Final = 20
"""With so many, the trial ends either way."""

RESUMED_CREDITS: Final = 8
"""How many more what is proposed again gets at most."""

PROMOTE_ABOVE: Final = 0.95
"""How probable it must be that a prompt is better than its parent to be accepted early."""

DROP_BELOW: Final = 0.35
"""How improbable it must be to be dropped early: a new try is cheap, a bad prompt is not."""

KEEP_ABOVE: Final = 0.8
"""How probable it must be at the end of the trial."""

MOST_FAILURES: Final = 6
"""Edits in a row that came to nothing, beyond which the pause does not grow any more."""

_USUAL_DEVIATION: Final = 1.0
"""Of a gain, in fitness, where one in ten proposals wins a lot. Believed as if `_USUAL_CREDITS`
credits had shown it, lest the first lucky gain among failures look like a sure thing."""

_USUAL_CREDITS: Final = 8.0

_MAX_SWEEPS: Final = 50

_SETTLED: Final = 1e-4
"""Fitness by which effects may still move when they count as solved: far below what is judged."""


class PromptState(StrEnum):
    """Where a prompt stands."""

    SEED = "seed"
    TRIAL = "trial"
    """New: gets a limited share of the proposals until it has paid."""
    ACCEPTED = "accepted"
    DROPPED = "dropped"


ESTABLISHED: Final = (PromptState.SEED, PromptState.ACCEPTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A prompt of one language's population, those that were dropped included."""

    id: int
    parent: int | None
    """The one that it was edited from; None for the seed."""
    state: PromptState


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What the proposals of one stratum that were made under one prompt gained."""

    prompt: int
    stratum: str
    count: int
    gain_sum: float
    gain_square_sum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What is known of one prompt."""

    mean: float
    """Fitness gained a proposal, over what the seed would have gained there."""
    count: int
    """Proposals behind it."""
    comparable: float
    """How many of them say something: those in a stratum without others say nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """What is known of every prompt."""

    effects: Mapping[int, Effect]
    deviation: float
    """Standard deviation of a gain within its stratum."""

    def of(self, prompt: int | None) -> Effect:
        """Return what is known of `prompt`; nothing for one that is not there."""
        nothing = Effect(mean=0.0, count=0, comparable=0.0)
        return nothing if prompt is None else self.effects.get(prompt, nothing)

    def better_than_parent(self, member: Member) -> float:
        """Return the probability that `member` is better than its parent."""
        own = self.of(member.id)
        lead = own.mean - self.of(member.parent).mean
        error = self.deviation / math.sqrt(own.comparable + SHRINKAGE)
        return 0.5 * (1.0 + math.erf(lead / error / math.sqrt(2.0)))


def estimate(members: Sequence[Member], tallies: Sequence[Tally]) -> Estimates:
    """Return the effects that explain `tallies` best, each drawn towards its parent's."""
    strata: dict[str, list[Tally]] = defaultdict(list)
    own: dict[int, list[Tally]] = defaultdict(list)
    for tally in tallies:
        strata[tally.stratum].append(tally)
        own[tally.prompt].append(tally)
    means, levels = _solve(members, strata, own)
    sizes = {name: sum(t.count for t in group) for name, group in strata.items()}
    effects = {
        member.id: Effect(
            mean=means[member.id],
            count=sum(t.count for t in own[member.id]),
            comparable=sum(t.count * (1.0 - t.count / sizes[t.stratum]) for t in own[member.id]),
        )
        for member in members
    }
    return Estimates(effects=effects, deviation=_deviation(tallies, means, levels))


def choose(
    members: Sequence[Member], estimates: Estimates, *, run: str, seed: int, sequence: int
) -> int:
    """Return the prompt for a proposal.

    One proposal of `TRIAL_PERIOD` in a row goes to what is on trial, at a place that changes so
    that it meets no rhythm of the search: the oldest until it is judged, and those that had their
    trial before behind the new ones. The others go to the established one with the highest upper
    confidence bound (Auer et al. 2002, UCB1, with the deviation measured).
    """
    trials = [m.id for m in members if m.state is PromptState.TRIAL]
    block, place = divmod(sequence, TRIAL_PERIOD)
    if trials and random.Random(f"{run}/{seed}/{block}").randrange(TRIAL_PERIOD) == place:
        return min(trials, key=lambda p: (estimates.of(p).count >= TRIAL_CREDITS, p))
    established = [m for m in members if m.state in ESTABLISHED]
    total = sum(estimates.of(m.id).count for m in established)
    random.Random(f"{run}/{seed}/{sequence}").shuffle(established)  # ties fall evenly
    return max(established, key=lambda m: _upper_bound(estimates, m.id, total)).id


def judge(members: Sequence[Member], estimates: Estimates, *, credited: int) -> PromptState | None:
    """Return what becomes of the prompt that was credited last; None: it stays what it is.

    Only that one: what has got no new credit since it was judged is not judged again.
    """
    member = next(m for m in members if m.id == credited)
    count = estimates.of(credited).count
    if member.state is not PromptState.TRIAL or count < LEAST_CREDITS:
        return None
    chance = estimates.better_than_parent(member)
    beyond = count - TRIAL_CREDITS
    is_last = beyond >= 0 and beyond % RESUMED_CREDITS == 0
    if chance >= (KEEP_ABOVE if is_last else PROMOTE_ABOVE):
        return PromptState.ACCEPTED
    return PromptState.DROPPED if is_last or chance <= DROP_BELOW else None


def edit_pause(shortest: int, edits: Sequence[PromptState | None]) -> int:
    """Return how many credits to wait for before the next edit is asked for.

    Twice as long after each two edits in a row that came to nothing: trials take proposals from
    what is known to work, and editors who do not find anything better seldom do so next time.

    Args:
        shortest: The pause after a success.
        edits: What has become of the newest edits, newest first; None: nothing was added.
    """
    failures = 0
    for state in edits:
        if state in ESTABLISHED:
            break
        failures += state is not PromptState.TRIAL
    return shortest << min(failures, MOST_FAILURES) // 2


def least_missed(members: Sequence[Member], estimates: Estimates) -> int | None:
    """Return the accepted prompt that is worth least; None when there is none to spare."""
    accepted = [m.id for m in members if m.state is PromptState.ACCEPTED]
    return min(accepted, key=lambda p: (estimates.of(p).mean, -p)) if accepted else None


def to_edit(
    members: Sequence[Member], estimates: Estimates, records: Mapping[int, int], *, least: int
) -> int | None:
    """Return the established prompt to make a better one from.

    The best one of those with at least `least` records, which an editor needs to see; else the
    one with the most; None when there are no records of any.

    Args:
        members: The population.
        estimates: What its prompts are worth.
        records: How many records there are of each prompt.
        least: How many make a diagnosis.
    """
    known = [m.id for m in members if m.state in ESTABLISHED and records.get(m.id, 0) > 0]
    enough = [p for p in known if records[p] >= least]
    if enough:
        return max(enough, key=lambda p: (estimates.of(p).mean, -p))
    return max(known, key=lambda p: (records[p], -p)) if known else None


def _solve(
    members: Sequence[Member],
    strata: Mapping[str, Sequence[Tally]],
    own: Mapping[int, Sequence[Tally]],
) -> tuple[dict[int, float], dict[str, float]]:
    """Return effects and levels, each found from the other by turns."""
    means = {member.id: 0.0 for member in members}
    levels = _levels(strata, means)
    movable = [m for m in members if m.state is not PromptState.SEED]
    for _ in range(_MAX_SWEEPS):
        moved = 0.0
        for member in movable:
            tallies = own.get(member.id, ())
            drawn_to = 0.0 if member.parent is None else means.get(member.parent, 0.0)
            surplus = sum(t.gain_sum - t.count * levels[t.stratum] for t in tallies)
            count = sum(t.count for t in tallies)
            mean = (surplus + SHRINKAGE * drawn_to) / (count + SHRINKAGE)
            moved = max(moved, abs(mean - means[member.id]))
            means[member.id] = mean
        levels = _levels(strata, means)
        if moved < _SETTLED:
            break
    return means, levels


def _levels(strata: Mapping[str, Sequence[Tally]], means: Mapping[int, float]) -> dict[str, float]:
    """Return what the seed would gain in each stratum: never less than nothing.

    Without that bound, one that gained nothing where a good one gained nothing either would be
    thought to have done well in bad times.
    """
    return {
        name: max(0.0, sum(t.gain_sum - t.count * means.get(t.prompt, 0.0) for t in group))
        / sum(t.count for t in group)
        for name, group in strata.items()
    }


def _deviation(
    tallies: Sequence[Tally], means: Mapping[int, float], levels: Mapping[str, float]
) -> float:
    """Return the standard deviation of what effects and levels leave unexplained."""
    count = sum(t.count for t in tallies)
    squares = 0.0
    for tally in tallies:
        expected = levels[tally.stratum] + means.get(tally.prompt, 0.0)
        squares += tally.gain_square_sum - 2.0 * expected * tally.gain_sum
        squares += tally.count * expected**2
    freedom = max(0.0, count - len(levels) - len({t.prompt for t in tallies}))
    believed = _USUAL_CREDITS * _USUAL_DEVIATION**2
    return math.sqrt((max(squares, 0.0) + believed) / (freedom + _USUAL_CREDITS))


def _upper_bound(estimates: Estimates, prompt: int, total: int) -> float:
    effect = estimates.of(prompt)
    unknown = math.sqrt(math.log(1 + total) / (effect.count + SHRINKAGE))
    return effect.mean + EXPLORATION * estimates.deviation * unknown

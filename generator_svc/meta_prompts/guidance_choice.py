"""Chooses the guidance set for a proposal, and accepts or drops edited ones.

Equal input gives equal answers. The input is the population (`PopulationMember`) and the gains of
the proposals that were made with each set (`Tally`), both from `tables`.

A gain is a proposal's fitness minus its parent's, and 0 if it was worse or failed: the archive
keeps the parent, so a loss costs the search only the attempt, and an unclipped loss would measure
how good the parents were. The worth of a set is the mean of its gains, each relative to the mean
gain of its run, since tasks differ; it is shrunk towards 0 as if `SHRINKAGE` more proposals had
gained exactly that mean.
Source: UCB1 of Auer et al. 2002; constants chosen on simulated runs
(`tests/generator/test_guidance_choice.py`, figures in docs/meta-prompts.md).
"""

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

SHRINKAGE: Final = 4.0
"""Proposals of mean gain that are added to each set's own ones."""

EXPLORATION: Final = 0.25
"""Weight of the uncertainty about an established set, in standard deviations of a gain."""

TRIAL_PERIOD: Final = 4
"""One of so many proposals in a row goes to the set on trial."""

TRIAL_CREDITS: Final = 8
"""Verdicts that end a trial. Longer trials judge better, but try fewer edits, which costs more."""

_USUAL_DEVIATION: Final = 1.0
"""Standard deviation of a gain, in fitness, when one in ten proposals wins a lot. It counts as much
as `_USUAL_CREDITS` proposals, so that the first lucky gain among failures does not look certain."""

_USUAL_CREDITS: Final = 8.0


class PromptState(StrEnum):
    """The state of a guidance set."""

    SEED = "seed"
    TRIAL = "trial"
    """New: it gets a limited share of the proposals until it has `TRIAL_CREDITS` verdicts."""
    ACCEPTED = "accepted"
    DROPPED = "dropped"


ESTABLISHED: Final = (PromptState.SEED, PromptState.ACCEPTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationMember:
    """A guidance set of one language's population, which includes dropped ones."""

    id: int
    parent: int | None
    """The set that it was edited from; None for the seed."""
    state: PromptState


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The gains of one run's proposals that were made with one guidance set."""

    prompt: int
    run: str
    count: int
    gain_sum: float
    gain_square_sum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """The worth of one guidance set."""

    mean: float
    """Mean gain relative to that of its runs, shrunk towards 0."""
    count: int
    """Proposals that it is the mean of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worths:
    """The worth of every guidance set."""

    by_prompt: Mapping[int, Worth]
    deviation: float
    """Standard deviation of a gain within its run."""

    def of(self, prompt: int | None) -> Worth:
        """Return the worth of `prompt`; 0 of no proposals if it was never credited."""
        nothing = Worth(mean=0.0, count=0)
        return nothing if prompt is None else self.by_prompt.get(prompt, nothing)


def worths(tallies: Sequence[Tally]) -> Worths:
    """Return the worth of each guidance set in `tallies`."""
    of_run: dict[str, list[Tally]] = defaultdict(list)
    for tally in tallies:
        of_run[tally.run].append(tally)
    means = {
        run: sum(t.gain_sum for t in group) / sum(t.count for t in group)
        for run, group in of_run.items()
    }
    surplus: dict[int, float] = defaultdict(float)
    count: dict[int, int] = defaultdict(int)
    squares = _USUAL_CREDITS * _USUAL_DEVIATION**2
    for tally in tallies:
        mean = means[tally.run]
        surplus[tally.prompt] += tally.gain_sum - tally.count * mean
        count[tally.prompt] += tally.count
        squares += tally.gain_square_sum - 2.0 * mean * tally.gain_sum + tally.count * mean**2
    return Worths(
        by_prompt={
            prompt: Worth(mean=surplus[prompt] / (count[prompt] + SHRINKAGE), count=count[prompt])
            for prompt in count
        },
        deviation=math.sqrt(squares / (sum(count.values()) + _USUAL_CREDITS)),
    )


def choose(
    members: Sequence[PopulationMember], known: Worths, *, run: str, seed: int, sequence: int
) -> int:
    """Return the guidance set for a proposal.

    One proposal of `TRIAL_PERIOD` in a row goes to the oldest set on trial, at a changing position,
    so that it follows no rhythm of the search. The others go to the established set with the
    highest upper confidence bound (Auer et al. 2002, UCB1, with the measured deviation).
    """
    trials = [m.id for m in members if m.state is PromptState.TRIAL]
    block, place = divmod(sequence, TRIAL_PERIOD)
    if trials and random.Random(f"{run}/{seed}/{block}").randrange(TRIAL_PERIOD) == place:
        return min(trials)
    established = [m.id for m in members if m.state in ESTABLISHED]
    total = sum(known.of(prompt).count for prompt in established)
    random.Random(f"{run}/{seed}/{sequence}").shuffle(established)  # ties fall evenly
    return max(established, key=lambda prompt: _upper_bound(known, prompt, total))


def next_state(member: PopulationMember, known: Worths) -> PromptState:
    """Return the new state of a set that was credited; a trial ends with `TRIAL_CREDITS`."""
    own, parent = known.of(member.id), known.of(member.parent)
    if member.state is not PromptState.TRIAL or own.count < TRIAL_CREDITS:
        return member.state
    return PromptState.ACCEPTED if own.mean > parent.mean else PromptState.DROPPED


def least_missed(members: Sequence[PopulationMember], known: Worths) -> int:
    """Return the set to drop from a full population: an accepted one if there is any.

    The seed is never dropped, so the population must have another set.
    """
    others = [m for m in members if m.state in (PromptState.ACCEPTED, PromptState.TRIAL)]
    return min(others, key=lambda m: (m.state is PromptState.TRIAL, known.of(m.id).mean, -m.id)).id


def to_edit(
    members: Sequence[PopulationMember], known: Worths, records: Mapping[int, int], *, least: int
) -> int | None:
    """Return the best established set that an editor can improve, or None.

    Args:
        members: The population.
        known: The worth of its sets.
        records: Number of records of each set that an editor can see.
        least: Fewest records for a diagnosis; a set with fewer is left alone.
    """
    enough = [m.id for m in members if m.state in ESTABLISHED and records.get(m.id, 0) >= least]
    return max(enough, key=lambda prompt: (known.of(prompt).mean, -prompt), default=None)


def _upper_bound(known: Worths, prompt: int, total: int) -> float:
    worth = known.of(prompt)
    unknown = math.sqrt(math.log(1 + total) / (worth.count + SHRINKAGE))
    return worth.mean + EXPLORATION * known.deviation * unknown

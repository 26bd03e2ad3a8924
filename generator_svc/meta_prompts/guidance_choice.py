"""Which guidance is shown, and what becomes of an edited one: arithmetic on what each was worth.

Equal input gives equal answers. The input is who there is (`PopulationMember`) and what proposals
made under them gained (`Tally`), both from `tables`.

A gain is the fitness that a proposal won over its parent, 0 when it was worse or failed: the
archive keeps the parent, so a loss costs the search no more than the try, and an unclipped loss
would measure how good the parents were. What a prompt is worth is the mean of its gains, each over
the mean gain of its run, since tasks differ; it is drawn towards 0 as if `SHRINKAGE` proposals had
gained just that.
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
"""Proposals' worth of belief that a prompt is as good as any."""

EXPLORATION: Final = 0.25
"""Weight of what is not known of an established prompt, in standard deviations of a gain."""

TRIAL_PERIOD: Final = 4
"""Of so many proposals in a row, one goes to what is on trial."""

TRIAL_CREDITS: Final = 8
"""With so many, a trial ends. Longer ones judge better, but try fewer edits, which costs more."""

_USUAL_DEVIATION: Final = 1.0
"""Of a gain, in fitness, where one in ten proposals wins a lot. Believed as if `_USUAL_CREDITS`
proposals had shown it, lest the first lucky gain among failures look like a sure thing."""

_USUAL_CREDITS: Final = 8.0


class PromptState(StrEnum):
    """Where a prompt stands."""

    SEED = "seed"
    TRIAL = "trial"
    """New: gets a limited share of the proposals until it has `TRIAL_CREDITS`."""
    ACCEPTED = "accepted"
    DROPPED = "dropped"


ESTABLISHED: Final = (PromptState.SEED, PromptState.ACCEPTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationMember:
    """A prompt of one language's population, those that were dropped included."""

    id: int
    parent: int | None
    """The one that it was edited from; None for the seed."""
    state: PromptState


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What the proposals of one run that were made under one prompt gained."""

    prompt: int
    run: str
    count: int
    gain_sum: float
    gain_square_sum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What is known of one prompt."""

    mean: float
    """Fitness gained a proposal, over the mean of its runs, drawn towards 0."""
    count: int
    """Proposals behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worths:
    """What is known of every prompt."""

    by_prompt: Mapping[int, Worth]
    deviation: float
    """Standard deviation of a gain within its run."""

    def of(self, prompt: int | None) -> Worth:
        """Return what is known of `prompt`; nothing for one that was never credited."""
        nothing = Worth(mean=0.0, count=0)
        return nothing if prompt is None else self.by_prompt.get(prompt, nothing)


def worths(tallies: Sequence[Tally]) -> Worths:
    """Return what `tallies` say of each prompt that is in them."""
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
    """Return the prompt for a proposal.

    One proposal of `TRIAL_PERIOD` in a row goes to the oldest one on trial, at a place that
    changes so that it meets no rhythm of the search. The others go to the established one with the
    highest upper confidence bound (Auer et al. 2002, UCB1, with the deviation measured).
    """
    trials = [m.id for m in members if m.state is PromptState.TRIAL]
    block, place = divmod(sequence, TRIAL_PERIOD)
    if trials and random.Random(f"{run}/{seed}/{block}").randrange(TRIAL_PERIOD) == place:
        return min(trials)
    established = [m.id for m in members if m.state in ESTABLISHED]
    total = sum(known.of(prompt).count for prompt in established)
    random.Random(f"{run}/{seed}/{sequence}").shuffle(established)  # ties fall evenly
    return max(established, key=lambda prompt: _upper_bound(known, prompt, total))


def judge(member: PopulationMember, known: Worths) -> PromptState:
    """Return the state of a prompt that was credited; a trial ends with `TRIAL_CREDITS`."""
    own, parent = known.of(member.id), known.of(member.parent)
    if member.state is not PromptState.TRIAL or own.count < TRIAL_CREDITS:
        return member.state
    return PromptState.ACCEPTED if own.mean > parent.mean else PromptState.DROPPED


def least_missed(members: Sequence[PopulationMember], known: Worths) -> int:
    """Return the prompt to drop from a full population: an accepted one if there is any.

    The seed is never dropped; there must be another one.
    """
    others = [m for m in members if m.state in (PromptState.ACCEPTED, PromptState.TRIAL)]
    return min(others, key=lambda m: (m.state is PromptState.TRIAL, known.of(m.id).mean, -m.id)).id


def to_edit(
    members: Sequence[PopulationMember], known: Worths, records: Mapping[int, int], *, least: int
) -> int | None:
    """Return the established prompt to make a better one from: the best; None when there is none.

    Args:
        members: The population.
        known: What its prompts are worth.
        records: How many records there are of each prompt, for an editor to see.
        least: How many make a diagnosis; a prompt with fewer is left alone.
    """
    enough = [m.id for m in members if m.state in ESTABLISHED and records.get(m.id, 0) >= least]
    return max(enough, key=lambda prompt: (known.of(prompt).mean, -prompt), default=None)


def _upper_bound(known: Worths, prompt: int, total: int) -> float:
    worth = known.of(prompt)
    unknown = math.sqrt(math.log(1 + total) / (worth.count + SHRINKAGE))
    return worth.mean + EXPLORATION * known.deviation * unknown

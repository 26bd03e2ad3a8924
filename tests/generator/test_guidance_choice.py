"""Which guidance is shown, simulated: gains are drawn, everything else is the real code."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace

import pytest

from generator_svc.meta_prompts import guidance_choice
from generator_svc.meta_prompts.guidance_choice import PopulationMember, PromptState, Tally
from generator_svc.meta_prompts.population import CREDITS_BETWEEN_EDITS

SEED = PopulationMember(id=1, parent=None, state=PromptState.SEED)


class World:
    """A run after another, in which a proposal pays with a probability that its prompt decides.

    Repairs gain four times as much as changes, and all gains shrink while a run goes on.
    """

    def __init__(self, seed: int, *, seed_chance: float, edit: Callable[[float], float]) -> None:
        self._random = random.Random(seed)
        self._edit = edit
        self._sums: dict[tuple[int, str], list[float]] = defaultdict(list)
        self._waited = 0
        self.members = [SEED]
        self.chances = {SEED.id: seed_chance}
        self.uses: Counter[int] = Counter()

    def run(self, name: str, proposals: int) -> None:
        for sequence in range(proposals):
            self._propose(name, sequence)

    def share_of(self, is_meant: Callable[[float], bool]) -> float:
        meant = sum(count for p, count in self.uses.items() if is_meant(self.chances[p]))
        return meant / self.uses.total()

    def worths(self) -> guidance_choice.Worths:
        return guidance_choice.worths(
            [tally(p, run, *gains) for (p, run), gains in self._sums.items()]
        )

    def _propose(self, run: str, sequence: int) -> None:
        known = self.worths()
        chosen = guidance_choice.choose(self.members, known, run=run, seed=0, sequence=sequence)
        self.uses[chosen] += 1
        most = 2.4 if self._random.random() < 0.3 else 0.6
        pays = self._random.random() < self.chances[chosen]
        gain = self._random.random() * most / (1 + sequence / 50) if pays else 0.0
        self._sums[chosen, run].append(gain)
        self._judge_and_edit(chosen)

    def _judge_and_edit(self, credited: int) -> None:
        known = self.worths()
        member = self.members[credited - 1]
        self.members[credited - 1] = replace(
            member, state=guidance_choice.next_state(member, known)
        )
        self._waited += 1
        is_free = all(m.state is not PromptState.TRIAL for m in self.members)
        if is_free and self._waited >= CREDITS_BETWEEN_EDITS:
            self._waited = 0
            parent = guidance_choice.to_edit(self.members, known, self.uses, least=5)
            child = PopulationMember(
                id=len(self.members) + 1, parent=parent, state=PromptState.TRIAL
            )
            assert parent is not None
            self.members.append(child)
            self.chances[child.id] = self._edit(self.chances[parent])


def worlds(seed_chance: float, edit: Callable[[float], float], *, count: int = 4) -> list[World]:
    made = [World(seed, seed_chance=seed_chance, edit=edit) for seed in range(count)]
    for world in made:
        for number in range(3):
            world.run(f"run {number}", 80)
    return made


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def tally(prompt: int, run: str, *gains: float) -> Tally:
    return Tally(
        prompt=prompt,
        run=run,
        count=len(gains),
        gain_sum=sum(gains),
        gain_square_sum=sum(g * g for g in gains),
    )


@pytest.mark.slow
def test_a_better_prompt_is_found_and_gets_most_of_the_uses() -> None:
    made = worlds(0.15, lambda chance: min(0.8, chance + 0.65))
    assert mean([w.share_of(lambda chance: chance > 0.5) for w in made]) > 0.7
    late = [w.uses.copy() for w in made]
    for world in made:
        world.run("one more", 40)
    better = [
        sum(n for p, n in (w.uses - before).items() if w.chances[p] > 0.5) / 40
        for w, before in zip(made, late, strict=True)
    ]
    assert mean(better) > 0.9


@pytest.mark.slow
def test_worse_prompts_are_dropped_after_bounded_uses_and_cost_a_bounded_share() -> None:
    made = worlds(0.6, lambda _: 0.05)
    for world in made:
        dropped = [m.id for m in world.members if m.state is PromptState.DROPPED]
        assert dropped
        assert max(world.uses[p] for p in dropped) <= guidance_choice.TRIAL_CREDITS
        assert not any(m.state is PromptState.ACCEPTED for m in world.members)
    assert mean([w.uses[SEED.id] / w.uses.total() for w in made]) >= 0.75


@pytest.mark.slow
def test_where_most_edits_change_nothing_or_harm_the_better_ones_win() -> None:
    rng = random.Random(1)
    made = worlds(0.15, lambda chance: rng.choice((chance, chance, 0.02, min(0.8, chance + 0.4))))
    for world in made:
        world.run("one more", 80)
    assert mean([w.share_of(lambda chance: chance < 0.1) for w in made]) < 0.2
    assert mean([w.share_of(lambda chance: chance > 0.4) for w in made]) > 0.4


def test_the_same_state_and_request_get_the_same_prompt() -> None:
    members = [SEED, PopulationMember(id=2, parent=1, state=PromptState.ACCEPTED)]
    known = guidance_choice.worths([])
    picks = {
        (seed, sequence): guidance_choice.choose(
            members, known, run="r", seed=seed, sequence=sequence
        )
        for seed in range(4)
        for sequence in range(20)
    }
    assert set(picks.values()) == {1, 2}
    for (seed, sequence), pick in picks.items():
        assert pick == guidance_choice.choose(members, known, run="r", seed=seed, sequence=sequence)


def test_at_most_one_proposal_in_four_goes_to_a_trial() -> None:
    members = [
        SEED,
        PopulationMember(id=2, parent=1, state=PromptState.TRIAL),
        PopulationMember(id=3, parent=1, state=PromptState.TRIAL),
    ]
    known = guidance_choice.worths([])
    picks = [
        guidance_choice.choose(members, known, run="r", seed=5, sequence=sequence)
        for sequence in range(400)
    ]
    blocks = [picks[i : i + 4] for i in range(0, 400, 4)]
    assert all(block.count(2) == 1 and block.count(3) == 0 for block in blocks)
    assert {block.index(2) for block in blocks} == {0, 1, 2, 3}


def test_gains_count_from_the_mean_of_their_run() -> None:
    """Prompt 2 had the easy run to itself: that says nothing for it."""
    easy, hard = [2.0, 2.4, 1.6, 2.0] * 2, [0.0, 0.4, 0.0, 0.4] * 2
    trial = PopulationMember(id=2, parent=1, state=PromptState.TRIAL)
    apart = guidance_choice.worths([tally(2, "easy", *easy), tally(1, "hard", *hard)])
    assert apart.of(2).mean == pytest.approx(apart.of(1).mean, abs=1e-9)
    both = guidance_choice.worths([tally(2, "hard", *easy), tally(1, "hard", *hard)])
    assert both.of(2).mean > both.of(1).mean + 0.5
    assert guidance_choice.next_state(trial, both) is PromptState.ACCEPTED
    assert guidance_choice.next_state(SEED, both) is PromptState.SEED


def test_few_gains_are_drawn_towards_the_mean_of_their_run() -> None:
    one = guidance_choice.worths([tally(1, "a", *[0.0] * 40), tally(2, "a", 0.5)])
    many = guidance_choice.worths([tally(1, "a", *[0.0] * 40), tally(2, "a", *[0.5] * 20)])
    assert 0.0 < one.of(2).mean < 0.15
    assert 0.2 < many.of(2).mean < 0.5
    assert one.of(3) == guidance_choice.Worth(mean=0.0, count=0)


def test_a_trial_ends_with_its_last_credit() -> None:
    trial = PopulationMember(id=2, parent=1, state=PromptState.TRIAL)
    gains = [0.0, 0.2] * (guidance_choice.TRIAL_CREDITS // 2)
    fewer = guidance_choice.worths([tally(1, "a", *gains), tally(2, "a", *gains[:-1])])
    assert guidance_choice.next_state(trial, fewer) is PromptState.TRIAL
    enough = guidance_choice.worths([tally(1, "a", *gains), tally(2, "a", *gains)])
    assert guidance_choice.next_state(trial, enough) is PromptState.DROPPED
    better = guidance_choice.worths(
        [tally(1, "a", *gains), tally(2, "a", *[g + 0.1 for g in gains])]
    )
    assert guidance_choice.next_state(trial, better) is PromptState.ACCEPTED


def test_the_accepted_prompt_that_is_worth_least_makes_room() -> None:
    accepted = PromptState.ACCEPTED
    members = [
        SEED,
        PopulationMember(id=2, parent=1, state=accepted),
        PopulationMember(id=3, parent=1, state=accepted),
        PopulationMember(id=4, parent=1, state=PromptState.TRIAL),
        PopulationMember(id=5, parent=1, state=PromptState.DROPPED),
    ]
    known = guidance_choice.worths(
        [tally(2, "a", 0.4, 0.4), tally(3, "a", 0.2, 0.1), tally(4, "a", 0.0)]
    )
    assert guidance_choice.least_missed(members, known) == 3
    assert guidance_choice.least_missed([SEED, members[3]], known) == 4


def test_the_best_prompt_with_enough_records_is_edited() -> None:
    members = [SEED, PopulationMember(id=2, parent=1, state=PromptState.ACCEPTED)]
    known = guidance_choice.worths([tally(1, "a", 0.0, 0.1), tally(2, "a", 0.3, 0.4)])
    assert guidance_choice.to_edit(members, known, {1: 9, 2: 5}, least=5) == 2
    assert guidance_choice.to_edit(members, known, {1: 9, 2: 4}, least=5) == 1
    assert guidance_choice.to_edit(members, known, {1: 4}, least=5) is None

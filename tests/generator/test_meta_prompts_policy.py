"""Which guidance is shown, simulated: gains are drawn, everything else is the real policy."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace

import pytest

from generator_svc.meta_prompts import policy
from generator_svc.meta_prompts.policy import Member, PromptState, Tally

SEED = Member(id=1, parent=None, state=PromptState.SEED)


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

    def tallies(self) -> list[Tally]:
        return [
            Tally(
                prompt=prompt,
                stratum=stratum,
                count=len(gains),
                gain_sum=sum(gains),
                gain_square_sum=sum(g * g for g in gains),
            )
            for (prompt, stratum), gains in self._sums.items()
        ]

    def _propose(self, run: str, sequence: int) -> None:
        estimates = policy.estimate(self.members, self.tallies())
        chosen = policy.choose(self.members, estimates, run=run, seed=0, sequence=sequence)
        self.uses[chosen] += 1
        move, most = ("repair", 2.4) if self._random.random() < 0.3 else ("change", 0.6)
        pays = self._random.random() < self.chances[chosen]
        gain = self._random.random() * most / (1 + sequence / 50) if pays else 0.0
        self._sums[chosen, f"{run}/{move}/{sequence // 32}"].append(gain)
        self._judge_and_edit(chosen)

    def _judge_and_edit(self, credited: int) -> None:
        estimates = policy.estimate(self.members, self.tallies())
        state = policy.judge(self.members, estimates, credited=credited)
        if state is not None:
            self.members[credited - 1] = replace(self.members[credited - 1], state=state)
        self._waited += 1
        edits = [m.state for m in reversed(self.members[1:])][: policy.MOST_FAILURES]
        trials = edits.count(PromptState.TRIAL)
        if trials < 2 and self._waited >= policy.edit_pause(10, edits):
            self._waited = 0
            parent = policy.to_edit(self.members, estimates, self.uses, least=5)
            child = Member(id=len(self.members) + 1, parent=parent, state=PromptState.TRIAL)
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


def tally(prompt: int, stratum: str, *gains: float) -> Tally:
    return Tally(
        prompt=prompt,
        stratum=stratum,
        count=len(gains),
        gain_sum=sum(gains),
        gain_square_sum=sum(g * g for g in gains),
    )


@pytest.mark.slow
def test_a_better_prompt_is_found_and_gets_most_of_the_uses() -> None:
    made = worlds(0.15, lambda chance: min(0.8, chance + 0.65))
    assert mean([w.share_of(lambda chance: chance > 0.5) for w in made]) > 0.5
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
        assert max(world.uses[p] for p in dropped) <= policy.TRIAL_CREDITS
        assert not any(m.state is PromptState.ACCEPTED for m in world.members)
    assert mean([w.uses[SEED.id] / w.uses.total() for w in made]) > 0.75


@pytest.mark.slow
def test_noise_among_equals_does_not_push_out_the_seed() -> None:
    made = worlds(0.4, lambda chance: chance)
    trials = sum(len(w.members) - 1 for w in made)
    accepted = sum(m.state is PromptState.ACCEPTED for w in made for m in w.members)
    assert accepted / trials < 0.15
    assert mean([w.uses[SEED.id] / w.uses.total() for w in made]) > 0.55


def test_the_same_state_and_request_get_the_same_prompt() -> None:
    members = [SEED, Member(id=2, parent=1, state=PromptState.ACCEPTED)]
    estimates = policy.estimate(members, [])
    picks = {
        (seed, sequence): policy.choose(members, estimates, run="r", seed=seed, sequence=sequence)
        for seed in range(4)
        for sequence in range(20)
    }
    assert set(picks.values()) == {1, 2}
    for (seed, sequence), pick in picks.items():
        again = policy.choose(members, estimates, run="r", seed=seed, sequence=sequence)
        assert pick == again


def test_at_most_one_proposal_in_four_goes_to_a_trial() -> None:
    members = [
        SEED,
        Member(id=2, parent=1, state=PromptState.TRIAL),
        Member(id=3, parent=1, state=PromptState.TRIAL),
    ]
    estimates = policy.estimate(members, [])
    picks = [
        policy.choose(members, estimates, run="r", seed=5, sequence=sequence)
        for sequence in range(400)
    ]
    blocks = [picks[i : i + 4] for i in range(0, 400, 4)]
    assert all(block.count(2) == 1 and block.count(3) == 0 for block in blocks)
    assert {block.index(2) for block in blocks} == {0, 1, 2, 3}


def test_a_trial_that_goes_on_waits_for_new_ones() -> None:
    members = [
        SEED,
        Member(id=2, parent=1, state=PromptState.TRIAL),
        Member(id=3, parent=1, state=PromptState.TRIAL),
    ]
    gains = [0.1] * policy.TRIAL_CREDITS
    known = policy.estimate(members, [tally(1, "a", *gains), tally(2, "a", *gains)])
    picks = {
        policy.choose(members, known, run="r", seed=5, sequence=sequence) for sequence in range(40)
    }
    assert picks == {1, 3}


def test_gains_of_different_strata_are_not_compared() -> None:
    """Trial 2 had the easy run to itself: that says nothing for it."""
    members = [SEED, Member(id=2, parent=1, state=PromptState.TRIAL)]
    easy, hard = [2.0, 2.4, 1.6, 2.0] * 2, [0.0, 0.4, 0.0, 0.4] * 2
    apart = policy.estimate(members, [tally(2, "easy", *easy), tally(1, "hard", *hard)])
    assert apart.of(2).mean == pytest.approx(0.0, abs=1e-3)
    assert apart.of(2).comparable == 0.0
    assert policy.judge(members, apart, credited=2) is None
    both = policy.estimate(members, [tally(2, "hard", *easy), tally(1, "hard", *hard)])
    assert both.of(2).mean > 0.1
    assert policy.judge(members, both, credited=2) is PromptState.ACCEPTED
    assert policy.judge(members, both, credited=1) is None


def test_few_credits_are_drawn_towards_the_parent() -> None:
    members = [
        SEED,
        Member(id=2, parent=1, state=PromptState.ACCEPTED),
        Member(id=3, parent=2, state=PromptState.TRIAL),
    ]
    good, bad = [0.3] * 40, [0.0] * 40
    known = policy.estimate(members, [tally(1, "a", *bad), tally(2, "a", *good)])
    assert 0.2 < known.of(2).mean < 0.3
    assert known.of(3).mean == pytest.approx(known.of(2).mean, abs=1e-4)
    tried = policy.estimate(
        members, [tally(1, "a", *bad), tally(2, "a", *good), tally(3, "a", 0.0)]
    )
    assert 0.6 * known.of(2).mean < tried.of(3).mean < known.of(2).mean


def test_an_undecided_trial_ends() -> None:
    members = [SEED, Member(id=2, parent=1, state=PromptState.TRIAL)]
    gains = [0.0, 0.2] * (policy.TRIAL_CREDITS // 2)
    fewer = policy.estimate(members, [tally(1, "a", *gains), tally(2, "a", *gains[:-1])])
    assert policy.judge(members, fewer, credited=2) is None
    enough = policy.estimate(members, [tally(1, "a", *gains), tally(2, "a", *gains)])
    assert policy.judge(members, enough, credited=2) is PromptState.DROPPED
    resumed = [0.0, 0.2] * ((policy.TRIAL_CREDITS + policy.RESUMED_CREDITS) // 2)
    more = policy.estimate(members, [tally(1, "a", *resumed), tally(2, "a", *resumed[:-1])])
    assert policy.judge(members, more, credited=2) is None
    again = policy.estimate(members, [tally(1, "a", *resumed), tally(2, "a", *resumed)])
    assert policy.judge(members, again, credited=2) is PromptState.DROPPED


def test_edits_that_came_to_nothing_make_the_pause_longer() -> None:
    dropped, accepted = PromptState.DROPPED, PromptState.ACCEPTED
    assert policy.edit_pause(10, []) == 10
    assert policy.edit_pause(10, [dropped, accepted]) == 10
    assert policy.edit_pause(10, [dropped, None]) == 20
    assert policy.edit_pause(10, [PromptState.TRIAL, dropped, dropped, accepted]) == 20
    assert policy.edit_pause(10, [None] * 20) == 80


def test_the_best_prompt_with_enough_records_is_edited() -> None:
    members = [SEED, Member(id=2, parent=1, state=PromptState.ACCEPTED)]
    estimates = policy.estimate(members, [tally(1, "a", 0.0, 0.1), tally(2, "a", 0.3, 0.4)])
    assert policy.to_edit(members, estimates, {1: 9, 2: 5}, least=5) == 2
    assert policy.to_edit(members, estimates, {1: 9, 2: 4}, least=5) == 1
    assert policy.to_edit(members, estimates, {}, least=5) is None

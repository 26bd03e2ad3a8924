"""The bandit over models: it converges on gain per dollar, keeps looking, and is reproducible."""

import math
import random
from collections import Counter
from dataclasses import dataclass, replace

import pytest

from generator_svc.model_choice import (
    EVALUATION_USD,
    BanditChooser,
    ModelChooser,
    ModelOutcome,
    models_for,
)
from kernel_foundry.domain.request import ProposalRequest

_ROUNDS = 400


class UniformChooser:
    """Learns nothing: what a bandit has to beat."""

    def choose(self, request: ProposalRequest, models: tuple[str, ...]) -> str:
        """See `ModelChooser.choose`."""
        return random.Random(f"{request.seed} {request.selection.sequence}").choice(models)

    def credit(
        self, model: str, *, run: str, gain: float, usd: float, answered: bool = True
    ) -> None:
        """See `ModelChooser.credit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A simulated model."""

    win_share: float
    gain: float
    usd: float
    answers: bool = True

    @property
    def value(self) -> float:
        """Expected gain per dollar."""
        return self.win_share * self.gain / (self.usd + EVALUATION_USD)


def _play(
    chooser: ModelChooser, request: ProposalRequest, arms: dict[str, Arm], rounds: int = _ROUNDS
) -> list[str]:
    rng, chosen = random.Random(f"world {request.seed}"), []
    for sequence in range(rounds):
        asked = replace(request, selection=replace(request.selection, sequence=sequence))
        model = chooser.choose(asked, tuple(arms))
        arm = arms[model]
        gain = arm.gain * rng.uniform(0.5, 1.5) if rng.random() < arm.win_share else 0.0
        chooser.credit(
            model,
            run=request.run,
            gain=gain if arm.answers else 0.0,
            usd=arm.usd if arm.answers else 0.0,
            answered=arm.answers,
        )
        chosen.append(model)
    return chosen


def _efficiency(chosen: list[str], arms: dict[str, Arm]) -> float:
    """Return the expected gain per dollar of those choices, 1 for the best model alone."""
    gain = sum(arms[m].win_share * arms[m].gain for m in chosen)
    usd = sum(arms[m].usd + EVALUATION_USD for m in chosen)
    return gain / usd / max(arm.value for arm in arms.values())


_WORLDS = {
    "same price, one gains more often": {
        "a": Arm(win_share=0.30, gain=0.05, usd=0.02),
        "b": Arm(win_share=0.08, gain=0.05, usd=0.02),
    },
    "same gain, one is cheaper": {
        "a": Arm(win_share=0.15, gain=0.05, usd=0.005),
        "b": Arm(win_share=0.15, gain=0.05, usd=0.03),
    },
    "dearer but worth it": {
        "a": Arm(win_share=0.40, gain=0.08, usd=0.03),
        "b": Arm(win_share=0.05, gain=0.03, usd=0.01),
    },
    "free against paid": {
        "a": Arm(win_share=0.10, gain=0.04, usd=0.0),
        "b": Arm(win_share=0.30, gain=0.04, usd=0.03),
    },
    "three": {
        "a": Arm(win_share=0.25, gain=0.05, usd=0.01),
        "b": Arm(win_share=0.10, gain=0.05, usd=0.01),
        "c": Arm(win_share=0.25, gain=0.05, usd=0.04),
    },
}


@pytest.mark.parametrize("arms", _WORLDS.values(), ids=_WORLDS)
def test_it_converges_to_the_best_gain_per_dollar(
    request_: ProposalRequest, arms: dict[str, Arm]
) -> None:
    """Over 400 proposals, 85 % of the best model's gain per dollar at the end, on average."""
    learnt, uniform = [], []
    for seed in range(12):
        asked = replace(request_, seed=seed)
        learnt.append(_efficiency(_play(BanditChooser(), asked, arms)[_ROUNDS // 2 :], arms))
        uniform.append(_efficiency(_play(UniformChooser(), asked, arms)[_ROUNDS // 2 :], arms))
    assert sum(learnt) / len(learnt) >= 0.85
    assert sum(learnt) > sum(uniform)


def test_a_model_that_never_answers_is_abandoned_but_tried_again(
    request_: ProposalRequest,
) -> None:
    """It costs nothing and brings nothing: few requests, but not none."""
    arms = {
        "works": Arm(win_share=0.1, gain=0.05, usd=0.02),
        "silent": Arm(win_share=0.0, gain=0.0, usd=0.0, answers=False),
    }
    late = [_play(BanditChooser(), replace(request_, seed=seed), arms)[100:] for seed in range(8)]
    shares = [chosen.count("silent") / len(chosen) for chosen in late]
    assert max(shares) <= 0.15
    assert sum(chosen.count("silent") for chosen in late) >= 8


def test_a_model_that_became_better_is_found(request_: ProposalRequest) -> None:
    """The past fades."""
    before = {
        "a": Arm(win_share=0.3, gain=0.05, usd=0.01),
        "b": Arm(win_share=0.02, gain=0.05, usd=0.01),
    }
    after = {"a": before["b"], "b": before["a"]}
    chooser = BanditChooser()
    assert Counter(_play(chooser, request_, before)[-100:]).most_common(1)[0][0] == "a"
    assert Counter(_play(chooser, request_, after)[-100:]).most_common(1)[0][0] == "b"


def test_a_new_model_is_explored(request_: ProposalRequest) -> None:
    """However good the known one is."""
    history = [
        ModelOutcome(model="old", gain=0.05 * (i % 4 == 0), usd=0.01, run="r") for i in range(200)
    ]
    arms = {
        "old": Arm(win_share=0.25, gain=0.05, usd=0.01),
        "new": Arm(win_share=0.25, gain=0.05, usd=0.01),
    }
    first = [
        _play(BanditChooser(history), replace(request_, seed=seed), arms, 20) for seed in range(10)
    ]
    assert all("new" in chosen for chosen in first)


def test_the_same_state_gives_the_same_choice(request_: ProposalRequest) -> None:
    """Seeded by the request; neither the time nor the order of the models counts."""
    history = [ModelOutcome(model="ab"[i % 2], gain=0.01 * (i % 5), usd=0.01) for i in range(60)]
    asked = [
        replace(request_, selection=replace(request_.selection, sequence=i)) for i in range(50)
    ]
    one = [BanditChooser(history).choose(request, ("a", "b")) for request in asked]
    other = [BanditChooser(history).choose(request, ("b", "a")) for request in asked]
    assert one == other
    assert len(set(one)) == 2


def test_without_model_weights_each_has_the_same_chance(request_: ProposalRequest) -> None:
    """The ablation: what was learnt is ignored."""
    history = [ModelOutcome(model="a", gain=0.5, usd=0.0) for _ in range(100)]
    chooser = BanditChooser([*history, *[ModelOutcome(model="b", gain=0.0, usd=1.0)] * 100])
    without = replace(request_, without=("model_weights",))
    counts = Counter(
        chooser.choose(
            replace(without, selection=replace(request_.selection, sequence=i)), ("a", "b")
        )
        for i in range(400)
    )
    assert 150 <= counts["a"] <= 250


def test_an_experts_own_model_has_priority(request_: ProposalRequest) -> None:
    chooser = BanditChooser()
    entries = ("openai/plain", "memory=openai/own", "compute=openai/other")
    chosen = {
        role: {
            chooser.choose(
                replace(request_, selection=replace(request_.selection, island=role, sequence=i)),
                entries,
            )
            for i in range(20)
        }
        for role in ("memory", "fusion", "")
    }
    plain = {"openai/plain"}
    assert chosen == {"memory": {"openai/own"}, "fusion": plain, "": plain}


def test_names_for_an_expert() -> None:
    """Its own first, everybody's to fall back on; a model's own "=" is no role."""
    entries = ("openai/plain", "memory=openai/own", "azure/a=b", "compute=openai/other")
    assert models_for(entries, "memory") == ("openai/own", "openai/plain", "azure/a=b")
    assert models_for(entries, "fusion") == ("openai/plain", "azure/a=b")
    assert models_for(("memory=openai/own",), "fusion") == ("openai/own",)


@pytest.mark.parametrize("gain", [math.inf, math.nan, 1e308])
def test_a_gain_in_the_store_that_is_none_is_left_out(
    request_: ProposalRequest, gain: float
) -> None:
    """A draw from a distribution of no numbers never ends."""
    sound = ModelOutcome(model="a", gain=0.1, usd=0.01)
    arms = ("a", "b")
    with_outlier = BanditChooser([sound, ModelOutcome(model="b", gain=gain, usd=0.01)])
    assert with_outlier.choose(request_, arms) == BanditChooser([sound]).choose(request_, arms)

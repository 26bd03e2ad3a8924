"""Edits on their way from prompt to candidate: where they are offered, taken, and asked again."""

from dataclasses import replace
from typing import Any

import pytest

from kernel_foundry.domain.archive import Selection
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.request import ProposalRequest
from tests.generator.reply_samples import edit

EDITS = edit("// a", "// edited") + edit("1, 1", "2, 1")


def _selected(request: ProposalRequest, operator: Operator, *elites: Any) -> ProposalRequest:
    selection = Selection(operator=operator, parent=elites[0], inspirations=elites[1:])
    return replace(request, selection=selection)


@pytest.mark.parametrize("operator", [Operator.MUTATE, Operator.TEMPLATISE])
async def test_edits_of_the_parent_become_a_candidate(
    request_: ProposalRequest, samples: Any, make_generator: Any, operator: Operator
) -> None:
    """The candidate is whole, and a child of what was edited."""
    parent = samples.passed_elite("a")
    generator, models = make_generator([EDITS])
    proposal = await generator.propose(_selected(request_, operator, parent))
    assert proposal.candidate is not None
    assert proposal.candidate.parents == (parent.candidate.digest,)
    assert proposal.candidate.source.device_code == f"// edited\n{samples.DEVICE_CODE}"
    assert proposal.candidate.source.plan == samples.PLAN.replace("[1, 1]", "[2, 1]")
    assert "<<<<<<< SEARCH" in models.asked[0].messages[-1].content


async def test_a_failed_parent_is_repaired_by_edits(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    generator, models = make_generator([edit("// a", "// mended")])
    request = _selected(request_, Operator.MUTATE, samples.failed_elite("a"))
    candidate = (await generator.propose(request)).candidate
    assert (candidate.operator, candidate.source.plan) == (Operator.REPAIR, samples.PLAN)
    assert "<<<<<<< SEARCH" in models.asked[0].messages[-1].content


async def test_edits_that_fit_nowhere_are_asked_again_with_the_nearest_lines(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    wrong = edit("void copy_all(const half* x, half* out, int count) {}", "")
    generator, models = make_generator([wrong, EDITS])
    request = _selected(request_, Operator.MUTATE, samples.passed_elite("a"))
    assert (await generator.propose(request)).candidate is not None
    again = models.asked[1].messages[-1].content
    assert "lines 1 to 3 of the device code" in again
    assert "void copy_all(const float* x, float* out, int count) {}" in again


@pytest.mark.parametrize("operator", [Operator.SEED, Operator.COMBINE])
async def test_edits_are_neither_offered_nor_taken_without_one_parent(
    request_: ProposalRequest, samples: Any, make_generator: Any, operator: Operator
) -> None:
    """Of two candidates it would not be clear which one is edited."""
    if operator is Operator.COMBINE:
        elites = (samples.passed_elite("a"), samples.passed_elite("b"))
        request_ = _selected(request_, operator, *elites)
    generator, models = make_generator([EDITS, samples.REPLY])
    candidate = (await generator.propose(request_)).candidate
    assert candidate.source.device_code == samples.DEVICE_CODE
    assert "<<<<<<< SEARCH" not in models.asked[0].messages[-1].content
    assert "reply with a whole one" in models.asked[1].messages[-1].content

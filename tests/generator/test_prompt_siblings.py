"""A prompt tells what was made of the same parent before, and how that ended."""

from dataclasses import replace
from typing import Any

import pytest

from generator_svc.held_out import held_out_of
from generator_svc.prompting.siblings import MOST_SIBLINGS, remark_on
from generator_svc.prompting.writer import PromptWriter
from generator_svc.replies.reasoning import LONGEST_IDEA, idea_of
from generator_svc.store.proposals import Sibling
from kernel_foundry.domain.archive import Selection
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.check import Check, CheckKind, CheckResult, Trust
from kernel_foundry.domain.mechanisms import DIAGNOSIS, SIBLINGS
from kernel_foundry.domain.request import ProposalOutcome, ProposalRequest
from tests.generator.conftest import HELD_OUT, REPLY, Samples, failed_elite, passed_elite

TRIED = (
    Sibling(
        idea="It keeps the row in registers.",
        outcome="wrong_result",
        speedup=None,
        remark="precision: 9 bits",
    ),
    Sibling(idea="It loads ahead.", outcome="passed", speedup=2.2, remark=""),
    Sibling(idea="It splits the rows.", outcome=None, speedup=None, remark=""),
)


def _user(request: ProposalRequest, siblings: tuple[Sibling, ...] = TRIED) -> str:
    return PromptWriter().write(request, siblings=siblings).messages[1].content


def _mutation(request: ProposalRequest) -> ProposalRequest:
    selection = Selection(operator=Operator.MUTATE, parent=passed_elite("parent"))
    return replace(request, selection=selection)


def test_each_sibling_has_its_ending_and_its_writers_words(request_: ProposalRequest) -> None:
    """The parent is twice as fast as the baseline: a child at 2.2 is 1.1 times as fast."""
    user = _user(_mutation(request_))
    assert "- WRONG_RESULT (precision: 9 bits): It keeps the row in registers.\n" in user
    assert "- PASSED, 1.1x the parent's speed: It loads ahead.\n" in user
    assert "- no verdict yet: It splits the rows.\n" in user


def test_what_has_no_parent_is_compared_with_the_baseline(request_: ProposalRequest) -> None:
    assert "- PASSED, 2.2x the speed of the fastest PyTorch baseline: It l" in _user(request_)


def test_making_tunable_shows_no_siblings(request_: ProposalRequest) -> None:
    asked = _mutation(request_)
    tunable = replace(asked, selection=replace(asked.selection, operator=Operator.TEMPLATISE))
    assert _user(tunable) == _user(tunable, ())


def test_remarks_are_findings_and_ideas_may_be_banned(request_: ProposalRequest) -> None:
    asked = _mutation(request_)
    assert "- WRONG_RESULT: It keeps" in _user(replace(asked, without=(DIAGNOSIS,)))
    banned = replace(asked.selection, banned_tricks=("loads ahead",))
    assert "- PASSED, 1.1x the parent's speed\n" in _user(replace(asked, selection=banned))


def test_a_remark_tells_nothing_of_hidden_workloads(request_: ProposalRequest) -> None:
    held_out = held_out_of(request_.task, request_.admission)
    failed = failed_elite("x").evaluation
    assert HELD_OUT not in remark_on(failed, held_out)
    assert remark_on(failed, held_out).startswith("compile_error: unknown type")
    assert remark_on(failed, None) == "compile_error"  # after a restart nothing else is sure


def test_a_suspect_sibling_says_why(request_: ProposalRequest) -> None:
    held_out = held_out_of(request_.task, request_.admission)
    checks = tuple(
        Check(
            kind=CheckKind.ARITHMETIC,
            result=result,
            workload=workload,
            note=f"faster than {workload}",
        )
        for result, workload in (
            (CheckResult.PASSED, "default"),
            (CheckResult.SUSPECT, "default"),
            (CheckResult.SUSPECT, HELD_OUT),
        )
    )
    evaluation = replace(passed_elite("x").evaluation, trust=Trust.SUSPECT, checks=checks)
    assert remark_on(evaluation, held_out) == "arithmetic: faster than default; arithmetic"
    assert remark_on(passed_elite("x").evaluation, held_out) == ""


@pytest.mark.parametrize(
    ("reply", "idea"),
    [
        (f"It reads once.\nTwice is slow.\n{REPLY}", "It reads once. Twice is slow. Here it is."),
        (f"<think>hm</think>\n# Plan\nIt reads once.\n{REPLY}", "It reads once. Here it is."),
        ("Loads.\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "Loads."),
        (REPLY.removeprefix("Here it is.\n"), ""),
        ("Short. " + "long " * 100, "Short."),
        ("", ""),
    ],
)
def test_an_idea_is_how_the_reasoning_begins(reply: str, idea: str) -> None:
    assert idea_of(reply) == idea


def test_a_long_idea_is_cut() -> None:
    idea = idea_of("word " * 1_000)
    assert len(idea) <= LONGEST_IDEA
    assert idea.endswith("…")


async def test_a_generator_remembers_what_it_proposed_of_a_parent(
    request_: ProposalRequest, samples: Samples, make_generator: Any
) -> None:
    """Two prompts one after the other differ; the newest siblings alone are shown."""
    generator, models = make_generator([f"Idea {n}.\n{REPLY}" for n in range(MOST_SIBLINGS + 3)])

    async def ask(sequence: int, **fields: Any) -> str:
        selection = replace(request_.selection, sequence=sequence)
        await generator.propose(replace(request_, selection=selection, **fields))
        return str(models.asked[-1].messages[1].content)

    assert "Idea" not in await ask(0)
    assert "- no verdict yet: Idea 0. Here it is.\n" in await ask(1)
    failed = samples.failed_elite("x")
    await generator.report(
        ProposalOutcome(
            run=request_.run,
            selection=0,
            candidate=failed.candidate,
            evaluation=failed.evaluation,
        )
    )
    user = await ask(2)
    assert "- COMPILE_ERROR (compile_error: unknown type, seen on" in user
    assert HELD_OUT not in user
    for sequence in range(3, MOST_SIBLINGS + 1):
        user = await ask(sequence)
    assert "Idea 0." in user
    user = await ask(MOST_SIBLINGS + 1)
    assert "Idea 0." not in user
    assert "Idea 1." in user
    assert "Idea" not in await ask(MOST_SIBLINGS + 2, without=(SIBLINGS,))
    await generator.close()

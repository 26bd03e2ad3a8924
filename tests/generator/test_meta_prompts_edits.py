"""Replies of an editor of guidance: what applies, and what is refused with a reason."""

from dataclasses import replace

import pytest

from generator_svc.held_out import HeldOut
from generator_svc.meta_prompts.section_edits import MAX_EDITS, edited
from generator_svc.meta_prompts.sections import MAX_SECTION_CHARS, Sections, seed_sections
from kernel_foundry.domain.language import Language

SECTIONS = Sections(
    philosophy="- Be right first.",
    strategies="- Read wide.\n- Write wide.",
    pitfalls="- Mask the tail.\n- Guard the border.",
    analysis="- Read the findings.",
)
HIDDEN = HeldOut(names=("rows=3,cols=1001",), sizes=frozenset({1001, 64}))


def edit(section: str, search: str, text: str) -> str:
    lines = [f"<<<<<<< SEARCH {section}", search, "=======", text, ">>>>>>> REPLACE"]
    return "\n".join(line for line in lines if line) + "\n"


def refused(reply: str) -> str:
    result = edited(SECTIONS, reply, (HIDDEN,))
    assert result.sections is None
    assert result.failure
    return result.failure


def test_edits_replace_add_and_delete_lines() -> None:
    reply = (
        "Tails fail.\n\n"
        + edit("pitfalls", "- Mask the tail.", "- Mask loads and stores of the tail.")
        + edit("Analysis", "", "- Look at flat indices.")
        + "and\n"
        + edit("[strategies]", "- Write wide.", "")
    )
    result = edited(SECTIONS, reply, (HIDDEN,))
    assert result.failure == ""
    assert result.diagnosis == "Tails fail."
    assert result.sections == Sections(
        philosophy="- Be right first.",
        strategies="- Read wide.",
        pitfalls="- Mask loads and stores of the tail.\n- Guard the border.",
        analysis="- Read the findings.\n- Look at flat indices.",
    )


def test_edits_in_reasoning_are_not_meant() -> None:
    draft = edit("pitfalls", "- Mask the tail.", "- A draft.")
    reply = f"<think>\n{draft}</think>\nNow.\n" + edit("analysis", "", "- Meant.")
    result = edited(SECTIONS, reply, ())
    assert result.sections == replace(SECTIONS, analysis="- Read the findings.\n- Meant.")
    assert result.diagnosis == "Now."


def test_one_edit_that_does_not_apply_refuses_all() -> None:
    reply = edit("analysis", "", "- New.") + edit("pitfalls", "- Mask the head.", "- X.")
    assert "pitfalls" in refused(reply)
    assert "Mask the head" in refused(reply)


def test_a_text_found_twice_is_refused() -> None:
    assert "2 times" in refused(edit("strategies", "wide.", "narrow."))


def test_a_text_of_another_section_is_refused() -> None:
    assert "0 times" in refused(edit("analysis", "- Read wide.", "- Read wider."))


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I would change the pitfalls.",
        "<<<<<<< SEARCH pitfalls\n- Mask the tail.\n=======\n- Cut",
        "- Mask the tail.\n=======\n- X.\n>>>>>>> REPLACE\n",
        edit("analysis", "", "- New.") + "<<<<<<< SEARCH pitfalls\n- Mask",
    ],
)
def test_broken_markers_are_refused(reply: str) -> None:
    refused(reply)


def test_an_unknown_section_is_refused() -> None:
    assert "tips" in refused(edit("tips", "", "- X."))
    assert "philosophy" in refused(edit("", "- Mask the tail.", "- X."))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("```cuda\nint i;\n```", "code fence"),
        ("~~~\nint i;\n~~~", "code fence"),
        ("## Task", "heading"),
        ("Reply\n---", "heading"),
        ("<h1>Reply</h1>", "heading"),
        ("- X." + "x" * MAX_SECTION_CHARS, "characters"),
        ("- Mind rows=3,cols=1001.", "workload"),
        ("- A row of 1001 has a tail.", "workload"),
    ],
)
def test_what_cannot_be_shown_to_writers_is_refused(text: str, reason: str) -> None:
    assert reason in refused(edit("pitfalls", "", text))


def test_powers_of_two_may_be_named() -> None:
    result = edited(SECTIONS, edit("strategies", "", "- Try 64 lanes."), (HIDDEN,))
    assert result.sections is not None


def test_an_emptied_section_and_no_change_are_refused() -> None:
    assert "empty" in refused(edit("philosophy", "- Be right first.", ""))
    assert "nothing" in refused(edit("philosophy", "- Be right first.", "- Be right first."))


def test_too_many_edits_are_refused() -> None:
    assert str(MAX_EDITS) in refused(edit("analysis", "", "- New.") * (MAX_EDITS + 1))


@pytest.mark.parametrize("language", list(Language))
def test_the_seeds_obey_the_rules_of_edits(language: Language) -> None:
    seed = seed_sections(language)
    result = edited(seed, edit("analysis", "", "- One more line."), ())
    assert result.failure == ""
    for text in (seed.philosophy, seed.strategies, seed.pitfalls, seed.analysis):
        assert all(line.startswith("- ") for line in text.splitlines())
        assert len(text) < MAX_SECTION_CHARS / 2

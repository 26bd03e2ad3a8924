"""Search/replace edits of the parent: found in one place, all or none, or a reason to act on."""

from dataclasses import replace

import pytest

from generator_svc.replies.edits import MAX_EDITS
from generator_svc.replies.extraction import ExtractedReply, ReplyForm, extract
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.language import Language
from tests.generator.reply_samples import (
    CUDA_CODE,
    DEVICE_CODE,
    FASTER,
    PARENT,
    PLAN,
    device_block,
    edit,
    plan_block,
)

SLOW_LINE = "  out[i] = by * x[i];"
FAST_LINE = "  out[i] = by * sycl::fabs(x[i]);"
SWAP = edit(SLOW_LINE, FAST_LINE)
WIDER = edit("    count = x.numel()", "    count = 2 * x.numel()")


def _extract(
    text: str, parent: KernelSource | None = PARENT, *, is_cut: bool = False
) -> ExtractedReply:
    return extract(text, language=Language.SYCL, parent=parent, is_cut=is_cut)


def _failure(text: str) -> str:
    found = _extract(text)
    assert (found.source, found.form) == (None, ReplyForm.EDITS)
    return found.failure


WRITTEN = {
    "bare": SWAP,
    "between prose": f"I take the absolute value.\n\n{SWAP}\nThat is all.",
    "in a fence": f"```\n{SWAP}```",
    "in a device fence": f"```sycl\n{SWAP}```",
    "with a file hint": f"### device code\nkernel.cpp\n```cpp\n{SWAP}```",
    "hint on the marker": SWAP.replace("SEARCH", "SEARCH device code"),
    "fences inside the markers": edit(f"```sycl\n{SLOW_LINE}\n```", f"```sycl\n{FAST_LINE}\n```"),
    "longer markers": SWAP.replace("<<<<<<<", "<<<<<<<<").replace(">>>>>>>", ">>>>>>"),
    "CRLF": SWAP.replace("\n", "\r\n"),
    "trailing whitespace": edit(SLOW_LINE + "  \t", FAST_LINE),
    "without indentation": edit(SLOW_LINE.strip(), FAST_LINE.strip()),
    "more indentation": edit("    " + SLOW_LINE, "    " + FAST_LINE),
    "all of it indented": "\n".join("    " + line for line in SWAP.splitlines()),
    "blank lines at the ends": edit(f"\n{SLOW_LINE}\n\n", f"\n{FAST_LINE}\n"),
    "a part of a line": edit("by * x[i]", "by * sycl::fabs(x[i])"),
    "said twice": SWAP + SWAP,
    "after reasoning": f"<think>\n{WIDER}</think>\n{SWAP}",
    "with the result shown": f"{SWAP}\nNow it reads:\n{device_block(FASTER)}",
    "with the parent shown": f"The candidate was:\n{device_block()}{plan_block()}\n{SWAP}",
    "with a part of the result shown": f"{SWAP}\n{device_block(FASTER[:-2])}{plan_block()}",
    "with a part of the parent shown": f"{device_block(DEVICE_CODE[:-2])}{plan_block()}{SWAP}",
    "with a snippet": f"```sycl\nby * x[i]\n```\n{SWAP}",
}


@pytest.mark.parametrize("name", WRITTEN)
def test_an_edit_is_applied(name: str) -> None:
    found = _extract(WRITTEN[name])
    expected = replace(PARENT, device_code=FASTER)
    assert found == ExtractedReply(source=expected, form=ReplyForm.EDITS)


def test_several_edits_change_both_parts() -> None:
    """Several fences, several edits in one fence, in any order."""
    expected = replace(PARENT, device_code=FASTER, plan=PLAN.replace("x.numel()", "2 * x.numel()"))
    for text in (
        SWAP + WIDER,
        WIDER + SWAP,
        f"```\n{WIDER}\n{SWAP}```",
        f"```\n{SWAP}```\n{WIDER}",
    ):
        assert _extract(text).source == expected


def test_lines_are_inserted_and_removed() -> None:
    guard = "  if (i >= count) {\n    return;\n  }"
    assert _extract(edit(guard, "")).source == replace(
        PARENT, device_code=DEVICE_CODE.replace(guard + "\n", "")
    )
    assert _extract(edit("  }", "  }\n  // here")).source == replace(
        PARENT, device_code=DEVICE_CODE.replace("  }\n", "  }\n  // here\n")
    )


def test_an_exact_place_wins_over_similar_ones() -> None:
    """Indentation tells two places apart as long as it is copied exactly."""
    parent = replace(PARENT, plan="def launch(x):\n    f()\n    if x:\n        f()")
    found = _extract(edit("        f()", "        g()"), parent).source
    assert found is not None
    assert found.plan == "def launch(x):\n    f()\n    if x:\n        g()"


def test_a_shifted_replacement_keeps_its_own_steps() -> None:
    """Every line moves by as much as the search had to; blank lines stay blank."""
    new = "if (i < count) {\n\n  out[i] = 0.0f;\n}"
    found = _extract(edit("out[i] = by * x[i];", new)).source
    assert found is not None
    assert "  if (i < count) {\n\n    out[i] = 0.0f;\n  }\n}" in found.device_code


def test_a_text_that_is_not_there_shows_what_is_nearest() -> None:
    failure = _failure(SWAP + edit("  out[i] = by + x[i];", "  out[i] = 0;"))
    assert failure == (
        "edit 2 of 2 was not applied, so none was: its SEARCH is not in the candidate; nearest are "
        "lines 5 to 8 of the device code:\n    return;\n  }\n  out[i] = by * x[i];\n}\n"
        "Copy the lines as they stand there, or reply with the whole candidate"
    )
    assert "no line of it is like `@`" in _failure(edit("@", "b"))


def test_long_lines_are_shortened_in_a_failure() -> None:
    assert len(_failure(edit("q" * 100_000, "b"))) < 400


REFUSED = {
    "in two places": (edit("count", "size"), "in several places"),
    "an empty search": (edit("", "int i;"), "the edit has an empty SEARCH"),
    "a blank search": (edit("  \n", "int i;"), "the edit has an empty SEARCH"),
    "the same lines": (
        SWAP + WIDER + edit(SLOW_LINE, "  out[i] = 0;"),
        "edits 1 and 3 change the same lines of the device code",
    ),
    "no change": (edit(SLOW_LINE, SLOW_LINE), "changes nothing"),
    "no end": (SWAP + "<<<<<<< SEARCH\na\n=======\nb\n", "edit 2 of 2 has no >>>>>>> REPLACE"),
    "no end before the next": (f"<<<<<<< SEARCH\na\n=======\nb\n{SWAP}", "edit 1 of 2 has no >>>>"),
    "no middle": ("<<<<<<< SEARCH\na\n>>>>>>> REPLACE", "the edit has no ======= line"),
    "no begin": (f"{SWAP}\na\n=======\nb\n>>>>>>> REPLACE", "edit 2 of 2 has no <<<<<<< SEARCH"),
    "two middles": (SWAP.replace("=======\n", "=======\n=======\n"), "has two ======= lines"),
    "an open fence": (f"```\n{SWAP}", "edits may be missing"),
    "too many": (SWAP * (MAX_EDITS + 1), "reply with the whole candidate"),
    "edited and written out": (
        SWAP + device_block(DEVICE_CODE.replace("by *", "by +")),
        "edits the device code and also writes it out differently",
    ),
    "written out in the other language": (
        WIDER + device_block(CUDA_CODE),
        "the device code is cuda",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unusable_edits_are_refused_with_the_reason(name: str) -> None:
    text, reason = REFUSED[name]
    assert reason in _failure(text)


def test_both_parts_are_searched() -> None:
    """What is in the device code once and in the plan once is in two places."""
    parent = replace(PARENT, device_code=f"{DEVICE_CODE}\n#", plan=f"{PLAN}\n#")
    found = _extract(edit("#", "# edited"), parent)
    assert found.source is None
    assert "(line 9 of the device code, line 7 of the plan); add neighbouring" in found.failure


def test_edits_of_a_reply_that_was_cut_off_are_not_applied() -> None:
    """The next one may be missing, and half a change is a wrong one."""
    assert _extract(SWAP, is_cut=True).failure.startswith(
        "the reply was cut off at its output limit; edits may be missing"
    )


def test_a_whole_candidate_wins_over_edits() -> None:
    other = DEVICE_CODE.replace("by *", "by +")
    found = _extract(SWAP + device_block(other) + plan_block())
    assert found == ExtractedReply(source=replace(PARENT, device_code=other), form=ReplyForm.WHOLE)


def test_a_whole_candidate_wins_with_a_part_that_stays() -> None:
    """And over edits that do not apply."""
    whole = device_block(DEVICE_CODE.replace("by *", "by +")) + plan_block()
    for edits in (SWAP, edit("nowhere", "else")):
        found = _extract(edits + whole)
        assert found.form is ReplyForm.WHOLE
        assert found.source is not None
        assert "by +" in found.source.device_code


def test_edits_of_one_part_go_with_the_other_written_out() -> None:
    plan = PLAN.replace("256", "512")
    found = _extract(SWAP + plan_block(plan))
    assert found.source == replace(PARENT, device_code=FASTER, plan=plan)


def test_a_part_is_either_edited_or_written_out() -> None:
    text = WIDER + plan_block(PLAN.replace("256", "512"))
    assert "edits the plan and also writes it out" in _failure(text)


def test_a_part_that_is_written_out_must_be_all_of_it() -> None:
    part = 'extern "C" void other(float* x) {}'
    assert "leaves out `scale`" in _failure(WIDER + device_block(part))

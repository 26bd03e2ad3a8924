"""A reply is taken apart into device code and plan, or refused with a reason."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.plan import ExtractionError, ExtractionReason, render, split
from kernel_foundry.plan.candidate_text import first_lines

KERNEL = 'extern "C" __global__ void k() {}'
PLAN = "def launch(x, out):\n    k[1, 1]()"
FOUND = KernelSource(language=Language.CUDA, device_code=KERNEL, plan=PLAN)


def test_text_around_the_blocks_is_ignored() -> None:
    found = split(f"Sure!\n\n```cuda\n{KERNEL}\n```\nand\n```python\n{PLAN}\n```\nDone.")
    assert found == FOUND


@pytest.mark.parametrize(
    ("word", "code", "language"),
    [
        ("SYCL", KERNEL, "sycl"),
        ("cu", KERNEL, "cuda"),
        ("cpp", KERNEL, "cuda"),
        ("c++ title=x", 'extern "C" NP((nd_range_kernel<1>)) void k() {}', "sycl"),
    ],
)
def test_language_of_the_block(word, code, language) -> None:
    """The word after the fence, or for C++ the code, tells the language."""
    assert split(f"```{word}\n{code}\n```\n~~~py\n{PLAN}\n~~~").language == language


def test_last_complete_pair_wins() -> None:
    """A model that revises itself means its last answer; CRLF and plan-first are fine."""
    text = render(FOUND) + render(
        KernelSource(language=Language.SYCL, device_code="last " + KERNEL, plan=PLAN)
    )
    assert split(text).device_code == "last " + KERNEL
    swapped = f"```python\r\n{PLAN}\r\n```\r\n```sycl\r\n{KERNEL}\r\n```"
    assert split(swapped).device_code == KERNEL


def test_illustrations_are_skipped() -> None:
    """Snippets without a kernel or without launch are no candidate blocks."""
    text = f"```python\nimport torch\n```\n```cuda\nx += 1;\n```\n{render(FOUND)}"
    assert split(text).plan == PLAN


def test_answer_inside_an_outer_fence() -> None:
    """A whole reply wrapped as Markdown."""
    assert split(f"````markdown\n{render(FOUND)}````\n") == FOUND


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", ExtractionReason.MISSING_DEVICE_CODE),
        ("no blocks here", ExtractionReason.MISSING_DEVICE_CODE),
        (f"```python\n{PLAN}\n```", ExtractionReason.MISSING_DEVICE_CODE),
        (f"```cpp\nint x;\n```\n```python\n{PLAN}\n```", ExtractionReason.MISSING_DEVICE_CODE),
        (f"```cuda\n{KERNEL}\n```", ExtractionReason.MISSING_PLAN),
        (f"```cuda\n{KERNEL}", ExtractionReason.UNCLOSED_BLOCK),
        (f"```cuda\n{KERNEL}\n```\n```python\ndef la", ExtractionReason.UNCLOSED_BLOCK),
        (render(FOUND) + f"```cuda\n{KERNEL}", ExtractionReason.UNCLOSED_BLOCK),
        (
            f"```cuda\n{KERNEL}\n```\n```cuda\n{KERNEL}\n```\n```python\n{PLAN}\n```",
            ExtractionReason.CONFLICTING_BLOCKS,
        ),
        (
            render(FOUND) + f"```python\n{PLAN}\n```",
            ExtractionReason.CONFLICTING_BLOCKS,
        ),
    ],
)
def test_unusable_reply_is_refused_with_a_reason(text, reason) -> None:
    """Missing, cut off, or ambiguous."""
    with pytest.raises(ExtractionError) as caught:
        split(text)
    assert caught.value.reason == reason
    assert str(caught.value) == caught.value.message


@pytest.mark.parametrize(
    "text",
    ["~" * 1_000_000 + "`", "``` " + " " * 1_000_000 + "`", "```cuda\n" * 125_000],
    ids=["tildes", "blanks", "fences"],
)
def test_a_megabyte_is_refused(text) -> None:
    """What grows with the text's square never ends; the message stays short."""
    with pytest.raises(ExtractionError) as caught:
        split(text)
    assert len(caught.value.message) < 300


def test_a_message_names_the_first_of_many_lines() -> None:
    many = f"```cuda\n{KERNEL}\n```\n" * 100
    with pytest.raises(ExtractionError, match=r"line 2, 5, 8, 11, 14, 17, … has no partner"):
        split(f"{many}```python\n{PLAN}\n```")


@settings(max_examples=200)
@given(
    language=st.sampled_from([Language.SYCL, Language.CUDA]),
    device_code=st.text(alphabet=st.sampled_from("`~ab\n #{}é\f"), max_size=60),
    plan=st.text(alphabet=st.sampled_from("`~ab\n #()\t"), max_size=60),
)
def test_split_undoes_render(language, device_code, plan) -> None:
    """Whatever the contents, with fences and blank lines of their own."""
    source = KernelSource(language=language, device_code=device_code, plan=plan)
    assert split(render(source)) == source


def test_lines_of_a_block_are_found_in_the_text() -> None:
    text = f"Sure!\r\n```cuda\n{KERNEL}\n```\nand\n```python\n{PLAN}\n```\n"
    device_code, plan = first_lines(text)
    lines = text.splitlines()
    assert (lines[device_code - 1], lines[plan - 1]) == (KERNEL, PLAN.splitlines()[0])

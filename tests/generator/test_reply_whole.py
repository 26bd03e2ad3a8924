"""A whole candidate is found however a model wraps it, and refused with a reason when it is not."""

import json
from dataclasses import replace

import pytest

from generator_svc.replies.extraction import ExtractedReply, ReplyForm, extract
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE, KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.plan import render, split
from tests.generator.reply_samples import (
    CUDA_CODE,
    DEVICE_CODE,
    FASTER,
    PARENT,
    PLAN,
    device_block,
    plan_block,
)

WHOLE = device_block() + plan_block()


def _extract(
    text: str, parent: KernelSource | None = None, *, is_cut: bool = False
) -> ExtractedReply:
    return extract(text, language=Language.SYCL, parent=parent, is_cut=is_cut)


def _indented(text: str, by: str) -> str:
    return "".join(by + line for line in text.splitlines(keepends=True))


WRAPPED = {
    "plain": WHOLE,
    "prose around it": f"Sure, here it is:\n\n{WHOLE}\nThis is faster, since `x` is read once.",
    "plan first": plan_block() + device_block(),
    "tildes": device_block(fence="~~~") + plan_block(fence="~~~~"),
    "no tags": device_block(word="") + plan_block(word=""),
    "C++ tag": device_block(word="cpp") + plan_block(word="py"),
    "tags with attributes": device_block(word="{.sycl}") + plan_block(word="python title=plan.py"),
    "wrong device tag": device_block(word="cuda") + plan_block(),
    "swapped tags": device_block(word="python") + plan_block(word="sycl"),
    "strange tags": device_block(word="opencl") + plan_block(word="starlark"),
    "CRLF": WHOLE.replace("\n", "\r\n"),
    "old Macintosh": WHOLE.replace("\n", "\r"),
    "byte order mark": "\ufeff" + WHOLE,
    "NUL": WHOLE.replace("const int i", "const\0 int i"),
    "in a list": f"1. The kernels:\n\n{_indented(device_block(), '   ')}\n"
    f"2. The plan:\n\n{_indented(plan_block(), '     ')}",
    "indented by tabs": _indented(WHOLE, "\t"),
    "in a longer fence": f"````markdown\n{WHOLE}````\n",
    "in a fence as long": f"```markdown\nThe candidate:\n{WHOLE}```\n",
    "in a bare fence": f"```\n{WHOLE}```\n",
    "bare blocks in a longer fence": f"````md\n{device_block(word='')}{plan_block(word='')}````\n",
    "answer tag": f"<answer>\n{WHOLE}</answer>",
    "answer tag on the fence": f"<answer>{WHOLE.rstrip()}</answer>",
    "nested tags": f"<response><candidate>{WHOLE.rstrip()}</candidate></response>\n",
    "first closing fence forgotten": WHOLE.replace("\n```\n```python", "\n```python"),
    "reasoning": f"<think>\n{device_block(FASTER)}{plan_block()}</think>\n{WHOLE}",
    "reasoning with an open fence": f"<think>\n```sycl\nint i = 0;\n</think>\n{WHOLE}",
    "reasoning on one line": f"<thinking>short</thinking>{WHOLE}",
    "reasoning whose begin is missing": f"Try this\n{device_block(FASTER)}</think>\n\n{WHOLE}",
    "the same, at the end of a line": f"{plan_block(FASTER)}So be it.</think>\n{WHOLE}",
    "the same, cut inside a block": f"Try this\n```sycl\nint i = 0;\n</think>\n\n{WHOLE}",
    "reasoning in capitals": f"<REASONING>\n```sycl\n</Reasoning>\n{WHOLE}",
    "a tag that is only named": f"I tried `<think>` before.\n{WHOLE}",
    "snippets": f"```python\nimport torch\n```\n```sycl\ni += 1;\n```\n{WHOLE}```bash\nls\n```\n",
    "a wrapper in Python": f"{WHOLE}```python\nfrom x import y\nsrc = '''extern \"C\"'''\n```\n",
    "a diff for illustration": f'```diff\n+extern "C"\n```\n{WHOLE}',
    "draft, then final": device_block(FASTER) + plan_block(f"# draft\n{PLAN}") + WHOLE,
    "draft of a part, then final": f"Draft:\n{device_block(FASTER)}\nFinal:\n{WHOLE}",
    "revised plan": device_block() + plan_block(f"# draft\n{PLAN}") + plan_block(),
    "revised kernel": device_block(FASTER) + plan_block() + device_block(),
    "said twice": WHOLE + WHOLE,
    "stray fence before it": f"```\n{WHOLE}",
    "heading underlined": f"Candidate\n=========\nMine\n=======\n{WHOLE}",
    "JSON string": json.dumps(WHOLE),
    "JSON fields": json.dumps({"reasoning": "none", "sycl": DEVICE_CODE, "plan": PLAN}),
    "JSON list": json.dumps([{"code": DEVICE_CODE}, {"code": PLAN}]),
    "JSON in a fence": f"```json\n{json.dumps({'device': DEVICE_CODE, 'plan': PLAN})}\n```",
}


@pytest.mark.parametrize("name", WRAPPED)
def test_a_whole_candidate_is_found(name: str) -> None:
    found = _extract(WRAPPED[name])
    assert found == ExtractedReply(source=PARENT, form=ReplyForm.WHOLE)


@pytest.mark.parametrize("name", WRAPPED)
def test_the_evaluator_sees_the_same_candidate(name: str) -> None:
    """What is found, written out again, is taken apart by strict rules into the same."""
    source = _extract(WRAPPED[name]).source
    assert source is not None
    assert source.language is Language.SYCL
    assert split(render(source)) == source


def test_halves_of_characters_are_replaced() -> None:
    """A source can always be digested, stored and sent."""
    source = _extract(WHOLE.replace("TUNE", "# \ud800\nTUNE")).source
    assert source is not None
    assert source.plan.startswith("# ?\nTUNE")
    assert len(source.digest) == 64


REFUSED = {
    "nothing": ("", "no block of device code"),
    "prose": ("I would rather not.", "no block of device code"),
    "no plan": (device_block(), "no launch plan"),
    "no device code": (plan_block(), "no block of device code"),
    "no kernel": (device_block("int i;") + plan_block(), "line 2 defines no kernel"),
    "no launch": (device_block() + plan_block("x = 1"), "no launch plan"),
    "device code cut off": (device_block()[:60], "starts at line 2 is never closed"),
    "plan cut off": (device_block() + plan_block()[:-5], "`python` block"),
    "second answer cut off": (WHOLE + device_block()[:60], "never closed"),
    "kernels in two blocks": (
        device_block() + device_block(DEVICE_CODE.replace("scale", "shift"))
        + plan_block(f"{PLAN}\n    shift[1, 1](x, out, count, 1.0)"),
        "leaves out `scale`",
    ),
    "both in one block": (f"```\n{DEVICE_CODE}\n{PLAN}\n```", "kernels and plan together"),
    "the other language": (device_block(CUDA_CODE, word="cuda") + plan_block(), "write it in sycl"),
    "only reasoning": (f"<think>\n{WHOLE}", "behind the reasoning"),
    "edits of nothing": ("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE", "reply with a whole"),
    "deep JSON": ("[" * 100_000, "no block of device code"),
    "JSON number": ('{"a": ' + "9" * 10_000 + "}", "no block of device code"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_incomplete_candidate_is_refused_with_the_reason(name: str) -> None:
    text, reason = REFUSED[name]
    found = _extract(text)
    assert found.source is None
    assert reason in found.failure


def test_the_other_language_is_told_by_its_content() -> None:
    """CUDA in a SYCL block is still CUDA, and is what was asked for where CUDA was."""
    text = device_block(CUDA_CODE, word="sycl") + plan_block()
    assert "write it in sycl" in _extract(text).failure
    found = extract(text, language=Language.CUDA, parent=None).source
    assert found is not None
    assert found.language is Language.CUDA


def test_the_output_limit_is_named() -> None:
    assert _extract(device_block(), is_cut=True).failure == (
        "the reply was cut off at its output limit; there is no launch plan: write it in a "
        "```python block with def launch(...)"
    )
    assert _extract(WHOLE, is_cut=True).source == PARENT


def test_a_block_that_is_left_out_is_the_parents() -> None:
    device = _extract(f"The plan stays.\n{device_block(FASTER)}", PARENT)
    assert device == ExtractedReply(
        source=replace(PARENT, device_code=FASTER), form=ReplyForm.WHOLE
    )
    plan = _extract(plan_block(PLAN.replace("256", "512")), PARENT)
    assert plan.source == replace(PARENT, plan=PLAN.replace("256", "512"))


def test_one_block_is_not_enough_when_more_was_to_come() -> None:
    assert "no launch plan" in _extract(device_block(FASTER), PARENT, is_cut=True).failure
    begun = device_block(FASTER) + "```python\ndef launch(x):\n"
    assert "never closed" in _extract(begun, PARENT).failure


def test_one_block_must_hold_all_kernels_of_the_parents_plan() -> None:
    """A part of the device code that is shown for explanation is no candidate."""
    parent = replace(
        PARENT,
        device_code=f'{DEVICE_CODE}\nextern "C" void shift(float* x) {{}}',
        plan=f"{PLAN}\n    shift[1, 1](x)",
    )
    assert "leaves out `shift`" in _extract(device_block(FASTER), parent).failure


def test_the_parent_given_back_is_no_change() -> None:
    assert "changes nothing" in _extract(device_block(), PARENT).failure


def test_a_quoted_parent_is_not_the_answer() -> None:
    """The new block counts, wherever the old one is shown."""
    for text in (device_block() + device_block(FASTER), device_block(FASTER) + device_block()):
        found = _extract(text + plan_block(), PARENT).source
        assert found == replace(PARENT, device_code=FASTER)


def test_a_diff_is_answered_with_the_forms_that_are_taken() -> None:
    diff = "```diff\n--- a\n+++ b\n@@ -1,2 +1,2 @@\n-a\n+b\n```"
    assert "a diff cannot be applied" in _extract(diff, PARENT).failure


@pytest.mark.parametrize(
    "held", ["\r\n", "\r", "\0", "\ud800"], ids=["CR LF", "CR", "NUL", "half a character"]
)
def test_what_json_escapes_is_as_plain_as_a_text(held: str) -> None:
    kernel = device_block(f"{DEVICE_CODE}\n// marked {held} here").replace("\n", "\r\n")
    source = _extract(json.dumps({"kernel": kernel, "plan": plan_block()})).source
    assert source is not None
    assert not set(held) - {"\n"} & set(source.device_code)
    assert split(render(source)) == source


def test_a_candidate_that_no_evaluator_takes_is_none() -> None:
    comment = f"/*{'a' * LONGEST_CANDIDATE}*/"
    extracted = _extract(device_block(f"{DEVICE_CODE}\n{comment}") + plan_block())
    assert extracted.source is None
    assert f"expected at most {LONGEST_CANDIDATE}" in extracted.failure

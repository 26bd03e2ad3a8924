"""Whatever a model says, taking it apart ends, soon, and without an error."""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from generator_svc.replies.extraction import ReplyForm, extract
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.plan import render, split
from tests.generator.reply_samples import (
    CUDA_CODE,
    DEVICE_CODE,
    FASTER,
    PARENT,
    PLAN,
    device_block,
    edit,
    edits_between,
    plan_block,
)

_SETTINGS = settings(max_examples=150)

_TOKENS = st.sampled_from([
    "```", "````", "~~~", "```sycl\n", "```python\n", "```markdown\n", "\n", "\n\n", "\r\n", " ",
    "\t", "<think>", "</think>", "<answer>", "</answer>", "<<<<<<< SEARCH\n", "=======\n",
    ">>>>>>> REPLACE\n", 'extern "C" void k(float* x) {}\n', "def launch(x):\n",
    "    k[1, 1](x)\n", "__global__ ", "  out[i] = by * x[i];\n", '{"a": "', '"}', "[", "\\", "\0",
    "\ud800", "é", "\ufeff",
])  # fmt: skip
_GOOD = (
    device_block() + plan_block(),
    f"<think>\n{plan_block()}</think>\n<answer>\n{device_block()}{plan_block()}</answer>",
    edit("  out[i] = by * x[i];", "  out[i] = x[i];") + edit("    count = x.numel()", ""),
    f"```cpp\n{edit('by * x[i]', 'x[i]')}```",
)


def _check(text: str) -> None:
    """Either a source that the evaluator sees alike, or a reason."""
    for parent in (None, PARENT):
        for is_cut in (False, True):
            found = extract(text, language=Language.SYCL, parent=parent, is_cut=is_cut)
            assert (found.source is None) == bool(found.failure)
            if found.source is None:
                assert len(found.failure) < 2_000
                continue
            assert found.form is not ReplyForm.NONE
            assert found.source != parent or found.form is ReplyForm.WHOLE
            source = found.source
            assert split(render(source)) == source


@_SETTINGS
@given(st.one_of(st.text(max_size=200), st.lists(_TOKENS, max_size=40).map("".join)))
def test_any_text_has_an_answer(text: str) -> None:
    _check(text)


@settings(_SETTINGS, max_examples=250)
@given(seed=st.integers(0, 2**32), good=st.sampled_from(_GOOD), token=_TOKENS)
def test_a_damaged_reply_has_an_answer(seed: int, good: str, token: str) -> None:
    """Lines lost, doubled, swapped or cut; a token where none belongs."""
    draw = random.Random(seed)
    lines = good.splitlines(keepends=True)
    for _ in range(draw.randrange(1, 4)):
        at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
        damage = draw.randrange(5)
        if damage == 0:
            lines[at] = ""
        elif damage == 1:
            lines[at] *= 2
        elif damage == 2:
            lines[at], lines[other] = lines[other], lines[at]
        elif damage == 3:
            lines[at] = lines[at][: draw.randrange(len(lines[at]) + 1)]
        else:
            lines[at] = token + lines[at]
    _check("".join(lines))


_ANY_CODE = st.text(alphabet=st.sampled_from('`~ab\n #(){}é\f\t"<>='), max_size=60)


@_SETTINGS
@given(
    language=st.sampled_from(Language),
    above=_ANY_CODE,
    below=_ANY_CODE,
    plan_above=_ANY_CODE,
    plan_below=_ANY_CODE,
)
def test_what_was_written_out_is_found_again(
    language: Language, above: str, below: str, plan_above: str, plan_below: str
) -> None:
    """Whatever surrounds the kernel and `launch`, fences of its own among it."""
    kernel = DEVICE_CODE if language is Language.SYCL else CUDA_CODE
    source = KernelSource(
        language=language,
        device_code=f"{above}\n{kernel}\n{below}",
        plan=f"{plan_above}\n{PLAN}\n{plan_below}",
    )
    text = render(source)
    found = extract(f"Here:\n{text}Done.", language=language, parent=None)
    assert found.source == source


_LINE = st.sampled_from(["", "a", "  a", "\ta", "b b", "    b b", "}", "  }", "x = 1;", " ", "# é"])
_CODE = st.lists(_LINE, min_size=1, max_size=15).map("\n".join)


@_SETTINGS
@given(old=st.tuples(_CODE, _CODE), new=st.tuples(_CODE, _CODE), data=st.data())
def test_edits_between_two_sources_make_the_second(
    old: tuple[str, str], new: tuple[str, str], data: st.DataObject
) -> None:
    """A differ's edits, each with just the context it needs, give exactly the other source."""
    if data.draw(st.booleans()):
        new = (_slightly_changed(old[0], data), new[1])
    before, after = (
        KernelSource(language=Language.SYCL, device_code=code, plan=plan)
        for code, plan in (old, new)
    )
    assume(before != after and old[0].strip() and old[1].strip())
    assume(old[0] not in old[1] and old[1] not in old[0])
    found = extract(edits_between(before, after), language=Language.SYCL, parent=before)
    assert (found.source, found.failure) == (after, "")


def _slightly_changed(text: str, data: st.DataObject) -> str:
    lines = text.split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        lines[at : at + 1] = data.draw(st.lists(_LINE, min_size=1, max_size=2))
    return "\n".join(lines)


_UNITS = (
    "`", "~", "```\n", "````\n```\n", "```sycl\n", "```markdown\n", "~~~\n```\n", "<think>",
    "</think>\n", "<<<<<<< SEARCH\n", edit("x", "y"), "=======\n", ">>>>>>> REPLACE\n", " ", "\n",
    "\t\n", "\r", "<a>", "a", "a ", "a(", "a[", "extern ", "def launch", "{", "[", '"',
    "<answer>```\n", "  }\n", device_block('extern "C" k('),
)  # fmt: skip
_ROUNDS = (
    ("", ""),
    ("~~~", "`"),
    ("<<<<<<< SEARCH\n", "\n=======\ny\n>>>>>>> REPLACE\n"),
    ("<<<<<<< SEARCH\n", "\nx\n=======\ny\n>>>>>>> REPLACE\n"),
    ("<<<<<<< SEARCH\n\n  float v1 = x[1];\n=======\n", "\n>>>>>>> REPLACE\n"),
    ('```sycl\nextern "C"\n', f"\n```\n{plan_block()}"),
)
"""What stands before and behind a megabyte."""

_SIZE = 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("unit", _UNITS, ids=range(len(_UNITS)))
def test_a_megabyte_is_read(unit: str) -> None:
    """What grows with the text's square takes longer than a test may."""
    body = (unit * (1 + _SIZE // len(unit)))[:_SIZE]
    code = "\n".join(f"  float v{i} = x[{i}];" for i in range(2_000))
    parent = KernelSource(language=Language.SYCL, device_code=f"{FASTER}\n{code}", plan=PLAN)
    for begin, end in _ROUNDS:
        extract(begin + body + end, language=Language.SYCL, parent=parent)

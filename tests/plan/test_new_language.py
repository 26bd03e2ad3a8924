"""A language that is registered is read, bound and refused like the others."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_foundry import languages
from kernel_foundry.languages import KernelLanguage
from kernel_foundry.plan import (
    DeviceLimits,
    NameTable,
    PlanError,
    TensorName,
    bind,
    kernels,
    parse,
    split,
)
from kernel_foundry.plan.macros import translation_unit
from kernel_foundry.plan.prompt import short_reference

TOY = KernelLanguage(
    name="toy",
    title="Toy C",
    words=("toy",),
    mark=re.compile(r"\btoy_kernel\b"),
    texts=Path("/none"),
    source_file="candidate.toy",
    needless_headers=r"toy\.h",
    kernel_mark=re.compile(r"\btoy_kernel\s*<([^<>]*)>"),
    kernel_dimensions=None,
    kernel_form="toy_kernel<N> void",
    max_items=1024,
    without_cooperative="launch twice",
    without_local="use registers",
)
TEXT = """```toy
#include <toy.h>
extern "C" toy_kernel<1> void copy(const float* x, float* out, int n) {}
```
```python
TUNE = {"WIDTH": [4, 8]}

def launch(x, out):
    copy[x.numel() // WIDTH, WIDTH](x, out, x.numel())
```
"""
DEVICE = DeviceLimits(
    compute_units=4, sub_group_size=1, shared_bytes=1024, max_block=64, memory_bytes=1 << 20
)


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    languages.register(TOY)
    yield
    del languages.LANGUAGES[TOY.name]


def _names(count: int) -> NameTable:
    tensors = (
        TensorName(name="x", path="x", role="input", dtype="float32", shape=(count,)),
        TensorName(name="out", path="out", role="output", dtype="float32", shape=(count,)),
    )
    return NameTable(tensors=tensors, scalars=())


def _bound(text: str, count: int = 64):  # type: ignore[no-untyped-def]
    candidate = split(text)
    return bind(
        parse(candidate.plan),
        kernels(candidate.device_code, candidate.language),
        names=_names(count),
        configuration={"WIDTH": 8},
        device=DEVICE,
        language=candidate.language,
    )


def test_a_candidate_is_read_and_bound() -> None:
    candidate = split(TEXT)
    assert candidate.language == "toy"
    (step,) = _bound(TEXT).steps
    assert (step.kernel, step.grid, step.block) == ("copy", (8, 1, 1), (8, 1, 1))
    unit = translation_unit(candidate.device_code, {"WIDTH": 8}, "", "toy")
    assert '"candidate.toy"' in unit
    assert "toy.h" not in unit


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        ("copy[1024, 2](x, out, 1)", "at most 1024 are available"),
        ('copy[1, 1, 0, "cooperative"](x, out, 1)', "not available in Toy C: launch twice"),
        ("copy[1, 1](x, out, local(1, float32))", "not available in Toy C: use registers"),
        ("move[1, 1](x, out, 1)", 'extern "C" toy_kernel<N> void'),
    ],
)
def test_its_limits_hold(launch: str, message: str) -> None:
    text = TEXT.replace("copy[x.numel() // WIDTH, WIDTH](x, out, x.numel())", launch)
    with pytest.raises(PlanError) as caught:
        _bound(text)
    assert message in caught.value.message


def test_its_prompt_has_no_line_of_another_language() -> None:
    text = short_reference("toy")
    assert "TUNE" in text
    assert "__global__" not in text
    assert "nd_range_kernel" not in text


def test_the_first_fence_that_names_a_language_tells_it() -> None:
    found = languages.language_of_first_fence("```python\n```\n```cudax\n```\n ````toy x\n" + TEXT)
    assert found is TOY
    assert languages.language_of_first_fence("```cpp\n```\n") is None


def test_names_are_taken_once() -> None:
    with pytest.raises(ValueError, match="another language"):
        languages.register(TOY)

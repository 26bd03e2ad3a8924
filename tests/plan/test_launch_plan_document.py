"""docs/launch-plan.md says what the code does."""

from __future__ import annotations

import pathlib
import re

import pytest

from kernel_foundry.plan import (
    LIBRARY_OPS,
    NameTable,
    PlanError,
    configurations,
    constants,
    default_configuration,
    kernels,
    limits,
    parse,
    split,
    translation_unit,
    vocabulary,
)
from kernel_foundry.plan.dtypes import DTYPE_BYTES

DOCUMENT = (pathlib.Path(__file__).parents[2] / "docs" / "launch-plan.md").read_text("utf-8")
EXAMPLES = re.findall(r"^````markdown\n(.*?)^````$", DOCUMENT, re.M | re.S)
REFUSALS = re.findall(r"^\| `([^`]+)` \| (\w+) \| (.+) \|$", DOCUMENT.split("## Refusals")[1], re.M)


@pytest.mark.parametrize("text", EXAMPLES, ids=["sycl", "cuda", "library"])
def test_example_binds_in_every_configuration(text, names, device, bind_text) -> None:
    """Each worked example is split, parsed, assembled and bound."""
    found = split(text)
    plan = parse(found.plan)
    table = NameTable(tensors=names.tensors, scalars=())
    space = list(configurations(plan, table, device))
    assert space[0] == default_configuration(plan)
    for configuration in space:
        macros = {**configuration, **constants(plan, table, configuration, device)}
        unit = translation_unit(found.device_code, macros, "", found.language)
        assert "#define" in unit
        sequence = bind_text(
            found.plan,
            language=found.language,
            code=found.device_code,
            configuration=configuration,
            table=table,
            library_ops=("matmul",),
        )
        defined = {k.name for k in kernels(found.device_code, found.language, macros)}
        assert set(sequence.kernels) == defined


@pytest.mark.parametrize(("statement", "kind", "message"), REFUSALS)
def test_documented_refusal_is_the_real_one(statement, kind, message, bind_text) -> None:
    """The table of refusals is what a candidate is told."""
    with pytest.raises(PlanError) as caught:
        bind_text(f"def launch(x, out):\n    scale[1, 1](x, out, 1, 1)\n    {statement}\n")
    assert (caught.value.kind, caught.value.message, caught.value.line) == (kind, message, 3)


def test_document_is_complete(names) -> None:
    """Every word, dtype and limit of the language is on the page; so is the name table."""
    assert len(EXAMPLES) == 3
    assert len(REFUSALS) >= 40
    assert names.render() in DOCUMENT
    words = (
        *vocabulary.FUNCTIONS,
        *vocabulary.TENSOR_ATTRIBUTES,
        *vocabulary.TENSOR_METHODS,
        *vocabulary.DEVICE_ATTRIBUTES,
        *DTYPE_BYTES,
        *LIBRARY_OPS,
    )
    assert [word for word in words if not re.search(rf"\b{word}\b", DOCUMENT)] == []
    for limit in (limits.MAX_STEPS, limits.MAX_LAUNCHES, limits.MAX_PLAN_CHARACTERS):
        assert f"{limit:,}" in DOCUMENT

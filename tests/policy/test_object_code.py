from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.inspector import inspect_spirv
from kernel_foundry.domain.finding import FindingKind

KERNELS = Path(__file__).parents[1] / "behaviour" / "kernels"


def messages(name: str) -> list[str]:
    findings = inspect_spirv((KERNELS / f"{name}.spv").read_bytes()).findings
    assert all(f.kind is FindingKind.POLICY for f in findings)
    return [f.message for f in findings]


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("calls_system", "system"),
        ("keeps_state", "counter"),
        ("inline_assembly", "inline assembly"),
    ],
)
def test_what_leaves_the_kernel_is_refused_by_name(name: str, word: str) -> None:
    assert [m for m in messages(name) if word in m]


@pytest.mark.parametrize(
    "name",
    ["mathematics", "row_per_sub_group", "sum_by_atomics", "pointwise"],
)
def test_built_ins_and_the_device_library_are_allowed(name: str) -> None:
    assert messages(name) == []


def test_a_kernel_that_is_not_there_is_named() -> None:
    code = (KERNELS / "pointwise.spv").read_bytes()

    assert inspect_spirv(code, ("relu",)).findings == ()
    assert "gelu" in inspect_spirv(code, ("gelu",)).findings[0].message


@given(st.binary(max_size=200))
def test_bytes_that_are_no_module_are_refused(code: bytes) -> None:
    assert inspect_spirv(code).findings

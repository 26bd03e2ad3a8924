"""Kernels in which one work-group may wait for another are told from the others."""

from pathlib import Path

import pytest

from evaluator_svc.inspector import inspect_spirv

KERNELS = Path(__file__).parent / "kernels"
NAMES = sorted(path.stem for path in KERNELS.glob("*.spv"))


@pytest.mark.parametrize("name", NAMES)
def test_a_loop_that_ends_by_what_others_write_may_wait(name: str) -> None:
    code = (KERNELS / f"{name}.spv").read_bytes()
    assert inspect_spirv(code).kernels.may_wait is name.startswith("waits_")

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.inspector import inspect_spirv
from evaluator_svc.spirv import SpirvError, parse

KERNELS = Path(__file__).parent / "kernels"
HEADER_BYTES = 20
NAMES = sorted(path.stem for path in KERNELS.glob("*.spv"))


def stored_module(name: str) -> bytes:
    return (KERNELS / f"{name}.spv").read_bytes()


def test_entry_points_imports_and_functions_are_read() -> None:
    module = parse(stored_module("calls_system"))

    assert list(module.entry_points.values()) == ["__sycl_kernel_bad"]
    assert [(i.name, i.is_function) for i in module.imports] == [("system", True)]
    assert [f.name for f in module.kernels()] == ["__sycl_kernel_bad"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (b"", "header"),
        (b"\0" * 3, "header"),
        (b"\0" * 40, "magic"),
        (struct.pack("<5I", 0x07230203, 0, 0, 1 << 30, 0), "id bound"),
        (struct.pack("<6I", 0x07230203, 0, 0, 9, 0, 0), "does not end"),
        (struct.pack("<6I", 0x07230203, 0, 0, 9, 0, 9 << 16 | 54), "does not end"),
        (struct.pack("<6I", 0x07230203, 0, 0, 9, 0, 1 << 16 | 54), "lacks its result"),
    ],
)
def test_malformed_modules_have_a_reason(code: bytes, reason: str) -> None:
    with pytest.raises(SpirvError, match=reason):
        parse(code)


@given(name=st.sampled_from(NAMES), cut=st.integers(0, 12_000))
def test_cut_modules_raise_nothing_else(name: str, cut: int) -> None:
    code = stored_module(name)[:cut]

    with contextlib.suppress(SpirvError):
        assert len(code) == HEADER_BYTES or parse(code).opcodes


@given(
    name=st.sampled_from(NAMES),
    changes=st.lists(st.tuples(st.integers(5, 2_500), st.integers(0, 2**32 - 1)), max_size=6),
)
def test_damaged_modules_raise_nothing_else(name: str, changes: list[tuple[int, int]]) -> None:
    words = bytearray(stored_module(name))
    for position, word in changes:
        if 4 * position + 4 <= len(words):
            struct.pack_into("<I", words, 4 * position, word)

    facts = inspect_spirv(bytes(words)).kernels

    assert facts.strided_share <= 1

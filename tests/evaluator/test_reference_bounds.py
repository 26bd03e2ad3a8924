"""References that cost more to read than any task's."""

import pytest

from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.task_source import parse_reference, size_constants


def _sizes(text: str) -> dict[str, int]:
    return size_constants(parse_reference(text, file_name="t"))


def test_sizes_end_where_no_tensor_begins() -> None:
    assert _sizes("n = 16 * 1024\nm = 2**64\n") == {"n": 16384, "m": 2**64}
    product = "*".join(["1023**8"] * 90)
    assert _sizes(f"n = {product}\nm = 1023**64\nk = 3\n") == {"k": 3}


def test_what_is_deep_is_no_size_or_no_reference() -> None:
    assert _sizes("n = " + "+".join(["1"] * 900) + "\nk = 3\n") == {"k": 3}
    with pytest.raises(TaskInvalidError, match="nested too deeply"):
        _sizes("n = " + "-" * 200_000 + "1\n")

"""What a call of an exported module imports, and what its reference makes without memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kernel_foundry.sdk.export.runtime import reference

_CHILD = """
import json, sys, torch
sys.path.append(sys.argv[1])
import fast_linear
model = fast_linear.Module(48, 40, 2.0)
with torch.no_grad():
    for rows in (64, 3):
        for _ in range(2):
            model(torch.randn(rows, 48))
late = [name for name in ("torch._dynamo", "sympy") if name in sys.modules]
print(json.dumps([fast_linear.stats()["kernel"], late]))
"""


@pytest.mark.sycl
@pytest.mark.slow
def test_calls_of_judged_sizes_import_nothing_more(text: str, tmp_path: Path) -> None:
    tmp_path.joinpath("fast_linear.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", _CHILD, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == [4, []]


@pytest.mark.parametrize(
    "made",
    [
        "torch.randn(2, 3)",
        "torch.randn((2, 3), dtype=torch.float16)",
        "torch.randn(size=(2, 3), generator=None, requires_grad=True)",
        "torch.rand([2, 3], device='cpu')",
        "torch.randint(5, (2, 3))",
        "torch.randint(0, 5, (2, 3), dtype=torch.int32)",
        "torch.randint(low=0, high=5, size=(2, 3))",
    ],
)
def test_random_tensors_without_numbers_are_alike(made: str) -> None:
    expected = eval(made)
    with reference._Unfilled():
        found = eval(made)
    for what in ("shape", "dtype", "device", "requires_grad"):
        assert getattr(found, what) == getattr(expected, what)
    with torch.device("meta"), reference._Unfilled():
        assert eval(made).device.type == ("cpu" if "cpu" in made else "meta")

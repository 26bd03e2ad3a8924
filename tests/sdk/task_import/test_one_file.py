"""References that import files of their suite become one file with them."""

from pathlib import Path

import pytest
import torch

from evaluator_svc.judge.reference.task_module import TaskModule
from kernel_foundry.sdk.task_file import read_task
from tests.sdk.task_import.suite_folder import TASK, imported, reasons

TASK_PATH = "level1/1_a.py"
MODEL = """\
import math
{imported}
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return {called}(x)


def get_inputs():
    return [torch.rand(4, 4)]
"""
SCALE = "import torch\n\nFACTOR = 3.0\n\n\ndef scaled(x):\n    return x * FACTOR\n"


def _model(imported_line: str, called: str = "scaled") -> str:
    return MODEL.format(imported=imported_line, called=called)


@pytest.mark.parametrize(
    ("line", "called", "files"),
    [
        ("from scale import scaled", "scaled", {"level1/scale.py": SCALE}),
        ("from .scale import scaled", "scaled", {"level1/scale.py": SCALE}),
        ("from scale import *", "scaled", {"scale.py": SCALE}),
        ("from ops.scale import scaled as s", "s", {"ops/scale.py": SCALE}),
        (
            "from ops import scaled",
            "scaled",
            {"ops/__init__.py": "from .scale import scaled\n", "ops/scale.py": SCALE},
        ),
    ],
)
def test_what_lies_in_the_suite_comes_along(
    tmp_path: Path, line: str, called: str, files: dict[str, str]
) -> None:
    imported(tmp_path, {TASK_PATH: _model(line, called), **files})
    task = read_task(tmp_path / "out/level1_1_a.py")
    module = TaskModule(task, task.workloads[0], torch.device("cpu"))
    (x,) = module.input_values(seed=1)
    assert torch.equal(module.model(x), x * 3.0)
    module.close()


@pytest.mark.parametrize(
    ("line", "files", "reason"),
    [
        ("import scale", {"scale.py": SCALE}, "line 2: `import scale`: of the suite's own"),
        ("from . import scale", {"level1/scale.py": SCALE}, "line 2: `from . import scale`"),
        ("from ..scale import scaled", {"scale.py": SCALE}, "line 2"),
        ("from .absent import scaled", {}, "line 2"),
        ("from ops import scale", {"ops/__init__.py": "x = 1\n"}, "does not bind scale"),
        ("from scale import Model", {"scale.py": _model("")}, "both define Model"),
        ("from scale import scaled", {"scale.py": "def"}, "scale.py, line 1"),
    ],
)
def test_what_one_file_cannot_keep_is_named(
    tmp_path: Path, line: str, files: dict[str, str], reason: str
) -> None:
    suite = imported(tmp_path, {TASK_PATH: _model(line), **files})
    assert reason in reasons(suite)[TASK_PATH]


def test_installed_modules_are_meant_where_a_file_is_called_like_them(tmp_path: Path) -> None:
    text = _model("", "torch.relu")
    imported(tmp_path, {TASK_PATH: text, "level1/math.py": TASK, "level1/torch.py": TASK})
    assert read_task(tmp_path / "out/level1_1_a.py").reference == text


def test_a_chain_of_modules_has_an_end(tmp_path: Path) -> None:
    chain = {f"m{i}.py": f"from m{i + 1} import x\n" for i in range(120)}
    suite = imported(tmp_path, {TASK_PATH: _model("from m0 import x"), **chain})
    assert "more than 100 modules" in reasons(suite)[TASK_PATH]

"""GPU MODE's folders become tasks that call `ref_kernel`, with what it imports in one file."""

from pathlib import Path

import pytest
import torch

from evaluator_svc.judge.reference.task_module import TaskModule
from kernel_foundry.sdk.task_file import read_task
from tests.sdk.task_import.suite_folder import imported, reasons

YAML = """\
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
lang: "py"
description: |
  Scale a matrix.
tests:
  - {"rows": 3, "cols": 5, "seed": 1}
benchmarks:
  - {"rows": 16, "cols": 8, "seed": 2}
  - {"rows": 32, "cols": 8, "seed": 3}
ranking_by: "last"
"""

REFERENCE = """\
from __future__ import annotations
from utils import (
    make_check,
)
import torch
from task import input_t, output_t as result_t


def ref_kernel(data: input_t) -> result_t:
    x, factor = data
    return x * factor


def generate_input(rows: int, cols: int, seed: int) -> input_t:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, cols, generator=generator), torch.randn(cols, generator=generator)


check_implementation = make_check(ref_kernel)
"""

TASK = "import torch\ninput_t = tuple[torch.Tensor, torch.Tensor]\noutput_t = torch.Tensor\n"
UTILS = "def make_check(reference):\n    return lambda data, output: (True, '')\n"


def _suite(**changed: str) -> dict[str, str]:
    files = {"task.yml": YAML, "reference.py": REFERENCE, "task.py": TASK, "utils.py": UTILS}
    files |= {name.replace("_", "."): text for name, text in changed.items()}
    return {
        f"problems/{name}" if name == "utils.py" else f"problems/scale/{name}": text
        for name, text in files.items()
    }


def test_benchmarks_are_timed_and_tests_held_out(tmp_path: Path) -> None:
    suite = imported(tmp_path, _suite())
    assert (suite.format, reasons(suite)) == ("gpu-mode", {})
    task = read_task(tmp_path / "out/problems_scale.py")
    assert [(w.name, w.held_out) for w in task.workloads] == [
        ("rows=16,cols=8", False),
        ("rows=32,cols=8", False),
        ("rows=3,cols=5", True),
    ]
    assert task.instructions == "Scale a matrix.\n"
    assert {note.split(":")[0] for note in suite.imported[0].notes} == {
        "check_implementation",
        "ranking_by last",
    }


@pytest.mark.parametrize(
    ("returned", "is_right"),
    [("True, ''", True), ("False, 'off'", False), ("''", True), ("'off'", False), ("True", True),
     ("False", False)],
)  # fmt: skip
def test_a_check_of_the_suites_own_stands_alone(
    tmp_path: Path, returned: str, is_right: bool
) -> None:
    """It does not ask the reference, so other answers may be right."""
    own = f"def check_implementation(data, output):\n    x, factor = data\n    return {returned}"
    changed = REFERENCE.replace("check_implementation = make_check(ref_kernel)", own)
    suite = imported(tmp_path, _suite(reference_py=changed))
    assert [note for note in suite.imported[0].notes if "check" in note] == []
    task = read_task(tmp_path / "out/problems_scale.py")
    assert (task.check, task.compare) == ("suite_check", False)
    module = TaskModule(task, task.workloads[2], torch.device("cpu"))
    inputs = module.input_values(seed=1)
    said = module.check(inputs, [inputs[0]], [inputs[0]])
    assert (said == "") is is_right
    assert ("off" in returned) == ("off" in said)


def test_the_judge_runs_the_produced_file(tmp_path: Path) -> None:
    imported(tmp_path, _suite())
    task = read_task(tmp_path / "out/problems_scale.py")
    module = TaskModule(task, task.workloads[2], torch.device("cpu"))
    x, factor = module.input_values(seed=1)
    assert torch.equal(module.model(x, factor), x * factor)
    assert torch.equal(module.input_values(seed=1)[0], x)
    assert not torch.equal(module.input_values(seed=2)[0], x)
    module.close()


WRITING = (
    REFERENCE.replace("x, factor = data", "x, factor, out = data")
    .replace("return x * factor", "out[...] = x * factor\n    return out")
    .replace("generator=generator)\n", "generator=generator), torch.empty(rows, cols)\n")
)


@pytest.mark.parametrize(
    ("added", "kept"), [("", "empty_like"), ("    out += 1.0\n", "empty_like"), (None, "clone")]
)
def test_an_output_in_the_input_becomes_a_new_one(
    tmp_path: Path, added: str | None, kept: str
) -> None:
    """The input stays as it is, and holds nothing that matters if all of it is replaced."""
    if added is None:  # it begins with what is there
        text = WRITING.replace("out[...] = x", "out[...] += x").replace("torch.empty", "torch.ones")
    else:
        text = WRITING.replace("    return out", f"{added}    return out")
    suite = imported(tmp_path, _suite(reference_py=text))
    notes = [note for note in suite.imported[0].notes if "ref_kernel writes" in note]
    assert notes == ["ref_kernel writes into out: kernels return a new tensor"]
    copies = [note for note in suite.imported[0].notes if "hold a copy" in note]
    task = read_task(tmp_path / "out/problems_scale.py")
    assert (f"torch.{kept}" in task.reference, bool(copies)) == (kept != "clone", kept == "clone")
    module = TaskModule(task, task.workloads[2], torch.device("cpu"))
    x, factor, out = module.input_values(seed=1)
    before = out.clone() if kept == "clone" else out.fill_(7.0).clone()
    expected = x * factor + (0.0 if added == "" else 1.0)
    assert torch.equal(module.model(x, factor, out), expected)
    assert torch.equal(out, before)
    module.close()


def test_tests_with_another_flag_are_held_out(tmp_path: Path) -> None:
    reference = (
        REFERENCE.replace("seed: int)", "seed: int, ones: bool)")
        .replace("torch.randn(cols", "(torch.ones if ones else torch.randn)(cols")
        .replace(
            "cols, generator=generator)", "cols, **({} if ones else {'generator': generator}))"
        )
    )
    yaml = YAML.replace('"seed": ', '"ones": false, "seed": ', 3)
    yaml = yaml.replace('"rows": 3, "cols": 5, "ones": false', '"rows": 3, "cols": 5, "ones": true')
    imported(tmp_path, _suite(task_yml=yaml, reference_py=reference))
    task = read_task(tmp_path / "out/problems_scale.py")
    assert [(w.name, w.held_out) for w in task.workloads] == [
        ("rows=16,cols=8,ones=False", False),
        ("rows=32,cols=8,ones=False", False),
        ("rows=3,cols=5,ones=True", True),
    ]
    module = TaskModule(task, task.workloads[2], torch.device("cpu"))
    assert module.input_values(seed=1)[1].tolist() == [1.0] * 5
    module.close()


def test_tests_of_another_kind_are_named(tmp_path: Path) -> None:
    reference = REFERENCE.replace("seed: int)", "seed: int, kind: str = 'plain')")
    yaml = YAML.replace('"seed": 1}', '"seed": 1}\n  - {"rows": 3, "cols": 5, "kind": "ones"}')
    suite = imported(tmp_path, _suite(task_yml=yaml, reference_py=reference))
    assert len(suite.imported) == 1
    assert "only tests" in reasons(suite)["problems/scale/task.yml, settings 2"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"task_yml": YAML + "multi_gpu: true\n"}, "several GPUs"),
        ({"task_yml": "- 1\n"}, "expected keys"),
        ({"task_yml": "a: &x [1]\nb: *x\n"}, "alias"),
        ({"task_yml": "a: " + "[" * 100 + "]" * 100}, "deep"),
        ({"task_yml": YAML.replace("../utils.py", "../../../utils.py")}, "outside"),
        ({"task_yml": YAML.replace("../utils.py", "/etc/passwd")}, "outside"),
        ({"task_yml": YAML.replace('"rows": 3', '"rows; x": 3')}, "not a plain name"),
        ({"task_yml": YAML.replace('"rows": 3', '"rows": .inf')}, "finite"),
        ({"task_yml": YAML.replace('"rows": 3', '"rows": 2020-01-01')}, "finite"),
        ({"reference_py": REFERENCE.replace("ref_kernel", "other")}, "no ref_kernel"),
        (
            {"reference_py": REFERENCE.replace("return x * factor", "factor[...] = x * factor")},
            "writes into factor of its input and returns nothing",
        ),
        (
            {"reference_py": REFERENCE.replace("return x * factor", "data[1].zero_(); return x")},
            "not into tensors that it is unpacked into",
        ),
        ({"task_py": TASK.replace("torch.Tensor, torch.Tensor", "dict")}, "dictionaries"),
        ({"utils_py": UTILS + "output_t = 1\n"}, "both define output_t"),
        (
            {"reference_py": "import utils as u\n" + REFERENCE},
            "line 1: `import utils as u`: of the",
        ),
        ({"reference_py": "from . import utils\n" + REFERENCE}, "line 1: `from . import utils`"),
        ({"utils_py": "from task import input_t\n" + UTILS, "task_py": "import utils\n"}, "line 1"),
    ],
)
def test_what_a_task_cannot_hold_is_named(
    tmp_path: Path, changed: dict[str, str], reason: str
) -> None:
    found = reasons(imported(tmp_path, _suite(**changed)))
    assert reason in found["problems/scale/task.yml"]

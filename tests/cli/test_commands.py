"""The command line: exit codes, clean stdout, messages that say what to do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TASK = """\
import torch
from torch import nn

rows = 8
cols = 64


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
"""

CANDIDATE = """\
```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void null_relu(const float* x, float* out, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
```
```python
def launch(x, out):
    null_relu[cdiv(x.numel(), 16), 16](x, out, x.numel())
```
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli")
    (path / "relu.py").write_text(TASK)
    (path / "relu.md").write_text(CANDIDATE)
    (path / "wrong.md").write_text(CANDIDATE.replace("null_relu", "null_copy"))
    (path / "no_model.py").write_text("x = 1\n")
    (path / "raises.py").write_text(TASK.replace("torch.relu(x)", "1 / 0"))
    return path


def _kfoundry(
    folder: Path, *arguments: str, kinds: str = "null"
) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "KERNEL_FOUNDRY_DATA_DIR": str(folder / "data"),
        "KERNEL_FOUNDRY_CACHE_DIR": str(folder / "cache"),
        "KERNEL_FOUNDRY_DEVICE_KINDS": kinds,
    }
    return subprocess.run(
        [sys.executable, "-m", "kernel_foundry.cli", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_help_names_every_command(folder: Path) -> None:
    result = _kfoundry(folder, "--help")
    assert result.returncode == 0
    for command in ("optimize", "admit", "evaluate", "devices", "serve", "runs", "bench"):
        assert command in result.stdout
        assert _kfoundry(folder, command, "--help").returncode == 0


@pytest.mark.slow
def test_evaluation_is_one_json_object_with_its_outcome_as_exit_code(folder: Path) -> None:
    right = _kfoundry(folder, "evaluate", "relu.py", "relu.md", "--device", "null:0", "--json")
    assert right.returncode == 0, right.stderr
    verdict = json.loads(right.stdout)
    assert verdict["outcome"] == "PASSED"
    assert verdict["speedup"] > 0
    assert set(verdict["workloads"][0]["baselines"]) >= {"eager"}
    wrong = _kfoundry(folder, "evaluate", "relu.py", "wrong.md", "--device", "null:0", "--json")
    assert wrong.returncode == 1
    assert json.loads(wrong.stdout)["outcome"] == "WRONG_RESULT"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("evaluate", "missing.py", "relu.md"), 2, "missing.py"),
        (("evaluate", "relu.py", "missing.md"), 2, "missing.md"),
        (("evaluate", "relu.py", "relu.md", "--set", "BLOCK"), 2, "NAME=VALUE"),
        (("admit", "no_model.py"), 2, "Model"),
        (("admit", "raises.py"), 2, "division by zero"),
        (("runs", "show", "nothing"), 2, "nothing"),
        (("runs", "best"), 2, "no run yet"),
        (("optimize",), 2, "TASK"),
        (("admit", "relu.py", "--evaluator", "unix:/nowhere.sock"), 3, "nowhere"),
    ],
)
def test_bad_input_has_its_exit_code_and_says_what_is_wrong(
    folder: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = _kfoundry(folder, *arguments)
    assert code == result.returncode, result.stderr
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_missing_device_kind_is_reported_with_its_reason(folder: Path) -> None:
    result = _kfoundry(folder, "devices", "--json")
    assert result.returncode == 0, result.stderr
    capabilities = json.loads(result.stdout)
    assert [d["id"] for d in capabilities["devices"]] == ["null:0"]
    assert capabilities["isolation"]["mechanisms"]

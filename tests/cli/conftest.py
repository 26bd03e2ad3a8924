"""A folder with a task and candidates, and the command as a process of its own."""

import asyncio
import atexit
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from kernel_foundry.rpc.readiness import wait_until_serving
from tests.cli.command_template import CommandTemplate

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

BEYOND_RECIPES = TASK.replace("torch.relu(x)", "torch.special.bessel_j0(x)")
"""A task that recipes decline."""

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


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli")
    (path / "relu.py").write_text(TASK)
    (path / "relu.md").write_text(CANDIDATE)
    (path / "wrong.md").write_text(CANDIDATE.replace("null_relu", "null_copy"))
    (path / "bessel.py").write_text(BEYOND_RECIPES)
    (path / "no_model.py").write_text("x = 1\n")
    (path / "raises.py").write_text(TASK.replace("torch.relu(x)", "1 / 0"))
    return path


def environment_of(folder: Path) -> dict[str, str]:
    """Return an environment whose runs stay in `folder`, on the null device."""
    return {
        **os.environ,
        "KERNEL_FOUNDRY_DATA_DIR": str(folder / "data"),
        "KERNEL_FOUNDRY_DEVICE_KINDS": "null",
    }


@contextmanager
def serving_evaluator(address: str, folder: Path) -> Iterator[str]:
    """Serve an evaluator of the null device by the command, with its data in `folder`."""
    command = ("-m", "kernel_foundry.cli", "serve", "evaluator", "--listen", address)
    with subprocess.Popen(
        [sys.executable, *command], env=environment_of(folder), stderr=subprocess.DEVNULL
    ) as process:
        try:
            asyncio.run(wait_until_serving(address, timeout_s=280))
            yield address
        finally:
            process.terminate()
            assert process.wait(timeout=280) == 0


def run_kfoundry(
    folder: Path,
    *arguments: str,
    evaluator: str = "local",
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in `folder`, on an evaluator of its own or one that is served."""
    variables = {**(environment or environment_of(folder)), "KERNEL_FOUNDRY_EVALUATOR": evaluator}
    return _template().run(arguments, folder, variables)


@cache
def _template() -> CommandTemplate:
    """Return what this process's commands are forked from; it starts with the first."""
    template = CommandTemplate()
    atexit.register(template.close)
    return template

"""What an exported module returns its results in: as the reference does."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.task import Size, Task, Workload
from kernel_foundry.sdk.export.export import container_of
from kernel_foundry.sdk.export.targets import TARGETS
from kernel_foundry.sdk.export.torch_file import torch_file
from kernel_foundry.sdk.export.winner import Winner
from tests.export.conftest import imported, tried, winner_of

pytestmark = [pytest.mark.sycl, pytest.mark.slow]

TASK = Task(
    name="pair",
    reference="""\
import torch
from torch import nn

rows = 8


class Model(nn.Module):
    def forward(self, x):
        return [x * 2.0, x + 1.0]


def get_inputs():
    return [torch.randn(rows, 64)]
""",
    workloads=(Workload(name="rows=8", sizes=(Size(name="rows", value=8),)),),
)
CANDIDATE = """\
```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void pair(const float* x, float* twice, float* more, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) {
    twice[i] = x[i] * 2.0f;
    more[i] = x[i] + 1.0f;
  }
}
```
```python
def launch(x, out0, out1):
    pair[cdiv(x.numel(), 32), 32](x, out0, out1, x.numel())
```
"""


@pytest.fixture(scope="module")
def pair(local_evaluator: Callable[[str], LocalEvaluator]) -> Winner:
    return asyncio.run(winner_of(local_evaluator("sycl"), TASK, CANDIDATE))


def calls_of(folder: Path, winner: Winner, name: str) -> list[Any]:
    """What a module returns the first time, and when such a call is known."""
    fast = imported(torch_file([winner], name), folder, name)
    model, x = fast.Module(), torch.randn(8, 64)
    with torch.no_grad():
        results = [model(x), model(x), torch.compile(model, backend="eager", fullgraph=True)(x)]
    assert fast.stats()["kernel"] == 3, fast.stats()
    for result in results:
        torch.testing.assert_close(list(result), [x * 2.0, x + 1.0])
    return results


def test_several_results_come_as_the_references(pair: Winner, tmp_path: Path) -> None:
    text = torch_file([pair], "fast_pair")
    report = tried(text, pair)
    assert report.container == "list"
    assert {r.failure for r in report.results} == {"it returns a tuple, the reference a list"}
    assert container_of(TARGETS["torch"], text, [pair]) == "list"
    asked = replace(pair, container="list")
    report = tried(torch_file([asked], "fast_pair"), asked)
    assert {r.failure for r in report.results} == {""}
    assert {type(r) for r in calls_of(tmp_path, asked, "fast_pair")} == {list}
    assert {type(r) for r in calls_of(tmp_path, pair, "fast_tuple")} == {tuple}


def test_one_result_comes_as_the_references(winner: Winner) -> None:
    line = "return self.linear(x) * self.factor"
    text = torch_file([replace(winner, container="tuple")], "fast_linear")
    changed = text.replace(line, "return (self.linear(x) * self.factor,)")
    assert changed != text
    assert {r.failure for r in tried(changed, winner).results} == {""}
    plain = torch_file([winner], "fast_linear").replace(line, f"{line},")
    said = {r.failure for r in tried(plain, winner).results}
    assert said == {"it returns a tensor, the reference a tuple"}


def test_a_forward_that_reads_a_number_of_its_input_makes_a_module(
    text: str, tmp_path: Path
) -> None:
    """Which no tensor without memory can tell."""
    line = "return self.linear(x) * self.factor"
    changed = text.replace(line, f"assert x.sum().item() < 1e9; {line}")
    assert changed != text
    fast = imported(changed, tmp_path, "fast_number")
    with torch.no_grad():
        fast.Module(48, 40, 2.0)(torch.randn(64, 48))
    assert fast.stats()["kernel"] == 1, fast.stats()

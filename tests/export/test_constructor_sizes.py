"""Constructors that read module-level sizes: a file has one value of each, users have others."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.task import Size, Task, Workload
from kernel_foundry.exported_form import FormEntry
from kernel_foundry.sdk.export.kernelbench_file import kernelbench_file
from kernel_foundry.sdk.export.winner import Winner
from tests.export.conftest import imported, tried, winner_of
from tests.export.unjudged import unjudged_winner

REFERENCE = """\
import torch
from torch import nn

rows = 8
cols = 64


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(cols))

    def forward(self, x):
        return x * self.scale


def get_inputs():
    return [torch.randn(rows, cols)]
"""
TASK = Task(
    name="scaled_columns",
    reference=REFERENCE,
    workloads=tuple(
        Workload(
            name=f"rows={rows},cols={cols}",
            sizes=(Size(name="rows", value=rows), Size(name="cols", value=cols)),
            held_out=cols != 64,
        )
        for rows, cols in ((8, 64), (3, 48))
    ),
)
CANDIDATE = """\
```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scaled(const float* x, const float* scale, float* out, int cols, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = x[i] * scale[i % cols];
}
```
```python
def launch(x, scale, out):
    scaled[cdiv(x.numel(), 32), 32](x, scale, out, x.shape[1], x.numel())
```
"""


@pytest.fixture(scope="module")
def text(local_evaluator: Callable[[str], LocalEvaluator]) -> tuple[str, Winner]:
    winner = asyncio.run(winner_of(local_evaluator("sycl"), TASK, CANDIDATE))
    return kernelbench_file([winner], "fast_columns"), winner


@pytest.mark.sycl
@pytest.mark.slow
def test_modules_that_differ_in_an_attribute_alone_are_tried(
    local_evaluator: Callable[[str], LocalEvaluator],
) -> None:
    weights = REFERENCE.replace("torch.rand(cols))", "torch.rand(1))\n        self.width = cols")
    task = replace(TASK, reference=weights.replace("self.scale\n", "self.scale * self.width\n"))
    candidate = CANDIDATE.replace("scale[i % cols]", "scale[0] * cols")
    winner = asyncio.run(winner_of(local_evaluator("sycl"), task, candidate))
    report = tried(kernelbench_file([winner], "fast_widths"), winner, FormEntry.MODEL_NEW)
    assert len(report.results) >= len(TASK.workloads)
    assert not [r for r in report.results if r.failure], report.results


def written_by_a_user(folder: Path, cols: int) -> ModuleType:
    source = REFERENCE.replace("cols = 64", f"cols = {cols}")
    return imported(source, folder, f"user_columns_{cols}")


@pytest.mark.sycl
@pytest.mark.slow
def test_a_module_of_sizes_that_were_judged_is_served(
    text: tuple[str, Winner], tmp_path: Path
) -> None:
    report = tried(*text, FormEntry.MODEL_NEW)
    assert {"rows=8,cols=64", "rows=3,cols=48"} <= {r.name for r in report.results}
    assert not [r for r in report.results if r.failure], report.results
    fast = imported(text[0], tmp_path, "fast_columns")
    for cols, kernel in ((48, 1), (64, 1), (4096, 0)):
        fast.reset_stats()
        model = fast.swap(nn.Sequential(written_by_a_user(tmp_path, cols).Model()))
        x = torch.randn(5, cols)
        with torch.no_grad():
            torch.testing.assert_close(model(x), x * model[0].scale)
        assert fast.stats()["kernel"] == kernel, fast.stats()
    assert "cols = 4096 was not judged" in fast.stats()["last_reason"]


@pytest.mark.parametrize(
    ("init", "forward", "served"),
    [
        ("torch.rand(cols)", "x * self.linear.weight[0]", 2),
        ("torch.rand(cols)", "x[:, :cols]", 1),
        ("(lambda: cols)", "x * self.extra()", 1),
    ],
)
def test_what_a_call_reads_is_as_in_the_file(init: str, forward: str, served: int) -> None:
    winner = unjudged_winner()
    reference = winner.record.task.reference
    assert "self.cols = cols" in reference
    changed = (
        reference.replace("def __init__(self, cols)", "def __init__(self)")
        .replace("self.cols = cols", f"self.extra = {init}")
        .replace("x * self.factor + self.linear.weight[0]", forward)
    )
    task = replace(winner.record.task, reference=changed)
    served_ones = replace(winner, record=replace(winner.record, task=task)).in_python(changed)
    assert len(served_ones) == served

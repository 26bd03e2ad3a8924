"""Kernels by shape: of several runs, and of one run with object code for each shape."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.sdk.export.torch_file import torch_file
from kernel_foundry.sdk.export.winner import Winner
from tests.export.conftest import PLAIN_TASK, imported, winner_of

pytestmark = [pytest.mark.sycl, pytest.mark.slow]

BY_ROWS = """\
```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void shifted(const float* x, const float* y, float* out, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < ROWS * 64) out[i] = x[i] * y[i] + 1.0f;
}
```
```python
CONST = {"ROWS": "x.shape[0]"}

def launch(x, y, out):
    shifted[cdiv(x.numel(), 32), 32](x, y, out, x.numel())
```
"""


def judged_on(winner: Winner, name: str) -> Winner:
    """The winner, as if it had been judged on this workload alone."""
    workloads = tuple(w for w in winner.admission.workloads if w.workload == name)
    return replace(winner, admission=replace(winner.admission, workloads=workloads))


def bound_plans(fast: ModuleType) -> list[int]:
    """Numbers of the plans that are bound from now on."""
    found: list[int] = []
    for number, one in enumerate(fast.SPECIALISATIONS):

        def counted(*arguments: object, plan=one["plan"], number=number) -> object:
            found.append(number)
            return plan(*arguments)

        one["plan"] = counted
    return found


def test_each_call_takes_the_first_run_that_was_judged_on_its_sizes(
    winner: Winner, tmp_path: Path
) -> None:
    runs = [judged_on(winner, "rows=64"), judged_on(winner, "rows=3"), winner]
    fast = imported(torch_file(runs, "fast_runs"), tmp_path, "fast_runs")
    bound = bound_plans(fast)
    model = fast.Module(48, 40, 2.0)
    with torch.no_grad():
        for rows in (3, 64, 17, 3, 17):
            x = torch.randn(rows, 48)
            torch.testing.assert_close(model(x), model.linear(x) * 2.0, rtol=1e-5, atol=1e-5)
    assert fast.stats()["kernel"] == 5, fast.stats()
    assert bound == [1, 0, 2]  # each shape once


def test_one_run_has_object_code_for_each_shape(
    local_evaluator: Callable[[str], LocalEvaluator], tmp_path: Path
) -> None:
    judged = asyncio.run(winner_of(local_evaluator("sycl"), PLAIN_TASK, BY_ROWS))
    fast = imported(torch_file([judged], "fast_rows"), tmp_path, "fast_rows")
    (specialisation,) = fast.SPECIALISATIONS
    known = {one["macros"]["ROWS"] for one in specialisation["objects"]}
    assert {3, 8} <= known
    model = fast.Module()
    unknown = next(rows for rows in range(3, max(known)) if rows not in known)
    with torch.no_grad():
        for rows in (3, 8, unknown):
            x, y = torch.randn(rows, 64), torch.randn(rows, 64)
            torch.testing.assert_close(model(x, y), x * y + 1.0)
    assert fast.stats()["kernel"] == 2, fast.stats()
    assert fast.stats()["last_reason"] == f"there is no object code for ROWS = {unknown}"


def test_a_huge_input_is_the_references(fast: ModuleType, tmp_path: Path) -> None:
    """More than 2^31 elements, of which the disk and the memory hold none."""
    rows = (1 << 31) // 48 + 1
    model = fast.Module(48, 40, 2.0)
    path = str(tmp_path / "sparse")
    x = torch.from_file(path, shared=True, size=rows * 48).view(rows, 48)
    tensors = [x, *fast.weights_of(model)]
    with pytest.raises(fast.NoKernelError, match=f"rows = {rows} was not judged"):
        fast.bound_call(fast.kind_of(model._kf.kind), tensors)

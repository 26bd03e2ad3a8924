"""Functions of other suites are called as there: with one tuple, or with their outputs."""

import json
import shutil
from collections.abc import Callable

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.foreign import ForeignRequest, ForeignSource
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.task import Scalar, Size, Task, Workload
from kernel_foundry.sdk.foreign_file import python_of, solution_of

pytestmark = pytest.mark.sycl  # the device whose host torch works on

_TASK = Task(
    name="blend",
    reference="""
import torch
from torch import nn

rows = 40
factor = 0.75

class Model(nn.Module):
    def forward(self, x, y, factor):
        return x * factor + torch.sin(y)

def get_inputs():
    return [torch.randn(rows, 64), torch.randn(rows, 64), factor]
""",
    workloads=(
        Workload(name="default"),
        Workload(
            name="rows=24,factor=-1.5",
            sizes=(Size(name="rows", value=24),),
            scalars=(Scalar(name="factor", text="-1.5"),),
            weight=3.0,
        ),
    ),
)


def _solution(body: str, **spec: object) -> ForeignSource:
    spec = {"language": "python", "entry_point": "part/main.py::run", **spec}
    sources = [
        {"path": "part/main.py", "content": f"import torch\nfrom part.other import sin\n{body}"},
        {"path": "part/other.py", "content": "import torch\nsin = torch.sin\n"},
    ]
    return solution_of(json.dumps({"spec": spec, "sources": sources}), "s.json")


SOURCES = {
    "custom_kernel": python_of(
        "def custom_kernel(data):\n    x, y, factor = data\n    return x * factor + y.sin()", "k.py"
    ),
    "into outputs": _solution("def run(x, y, factor, out): out.copy_(x * factor).add_(sin(y))"),
    "returned": _solution(
        "def run(x, y, factor): return x * factor + sin(y)", destination_passing_style=False
    ),
}


@pytest.fixture
def judge(local_evaluator: Callable[[str], LocalEvaluator]):  # type: ignore[no-untyped-def]
    """Return what judges a foreign kernel."""

    async def judged(source: ForeignSource) -> Evaluation:
        limits = EvaluationLimits(build_seconds=100.0, run_seconds=60.0, timing_seconds=0.05)
        request = ForeignRequest(task=_TASK, device="", source=source, limits=limits)
        return await local_evaluator("sycl").evaluate_foreign(request)

    return judged


@pytest.mark.parametrize("form", SOURCES)
async def test_a_function_is_called_as_in_its_suite(judge, form: str) -> None:  # type: ignore[no-untyped-def]
    """Also with files beside its own, and on each workload."""
    verdict = await judge(SOURCES[form])
    assert verdict.passed, "; ".join(f"{f.message} {f.evidence}" for f in verdict.findings)
    timed = {w.workload: w.weight for w in verdict.workloads if w.timing}
    assert timed == {"default": 1.0, "rows=24,factor=-1.5": 3.0}


async def test_outputs_that_are_not_written_are_wrong(judge) -> None:  # type: ignore[no-untyped-def]
    """They hold what no reference computes."""
    verdict = await judge(_solution("def run(x, y, factor, out): out[1:] = x[1:]"))
    assert verdict.outcome is EvaluationOutcome.WRONG_RESULT


# Without torch's headers, which take the compiler half a minute.
_CPP = """
#include <pybind11/pybind11.h>
#include "blend.hpp"

static float* data(const pybind11::object& tensor) {
  return reinterpret_cast<float*>(tensor.attr("data_ptr")().cast<std::uintptr_t>());
}

void run(pybind11::object x, pybind11::object y, float factor, pybind11::object out) {
  blend(data(x), data(y), factor, data(out), x.attr("numel")().cast<long>());
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""
_HEADER = """
#pragma once
void blend(const float* x, const float* y, float factor, float* out, long count);
"""
_OTHER = """
#include <cmath>
#include "blend.hpp"
void blend(const float* x, const float* y, float factor, float* out, long count) {
  for (long i = 0; i < count; ++i) out[i] = SCALE * x[i] * factor + std::sin(y[i]);
}
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++: not on PATH")
async def test_a_solution_in_cpp_is_built(judge) -> None:  # type: ignore[no-untyped-def]
    """Of several files, with the flags that it states, into the outputs that it is given."""
    texts = {"main.cpp": _CPP, "blend.hpp": _HEADER, "blend.cpp": _OTHER}
    sources = [{"path": path, "content": text} for path, text in texts.items()]
    spec = {
        "languages": ["cuda_cpp"],
        "entry_point": "main.cpp::run",
        "compile_options": {"cflags": ["-O0", "-DSCALE=1"]},
    }
    solution = solution_of(json.dumps({"spec": spec, "sources": sources}), "s.json")
    verdict = await judge(solution)
    assert verdict.passed, "; ".join(f"{f.message} {f.evidence}" for f in verdict.findings)

"""A real judge's process: one client's task file does not decide over another's."""

import dataclasses
from collections.abc import Callable

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.task import Task
from tests.evaluator.conftest import TASK

SETS_FLOAT64 = "import torch\ntorch.set_default_dtype(torch.float64)\n"


def test_a_default_dtype_is_of_the_task_that_sets_it(
    local_evaluator: Callable[[str], LocalEvaluator],
) -> None:
    (site,) = local_evaluator("null")._sites.working()

    def dtypes(task: Task) -> set[str]:
        described = site.judge.describe(task)
        return {tensor.dtype for each in described.workloads for tensor in each.tensors}

    wide = dataclasses.replace(TASK, name="wide", reference=SETS_FLOAT64 + TASK.reference)
    assert dtypes(wide) == {"float64"}
    assert dtypes(TASK) == {"float32"}
    assert dtypes(wide) == {"float64"}

    admission = site.judge.admit(
        dataclasses.replace(wide, workloads=TASK.workloads[:1]), site.spec.peaks
    )
    assert any("default dtype = torch.float64" in warning for warning in admission.warnings)

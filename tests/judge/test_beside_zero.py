"""Elements close to zero, for references that keep what is added to one."""

import pytest
import torch

from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from kernel_foundry.domain.admission import Distribution
from tests.judge.judge_tasks import make_task


@pytest.mark.parametrize("result", ["x.expm1()", "torch.log1p(x) * 2"])
def test_what_is_added_to_one_is_small(result: str) -> None:
    task = make_task(f"\ndef forward(self, x):\n    return {result}\n", rows=64, cols=512)
    prepared = PreparedWorkload(
        task, task.workloads[0], device=torch.device("cpu"), memory_bytes=1 << 33
    )
    changed = with_distribution(prepared, prepared.input_set(5), Distribution.BESIDE_ONE)
    sizes = changed.inputs[0].abs().amax(-1)
    assert float(sizes.min()) <= 2.0**-20
    assert 2.0**-6 < float(sizes.max()) <= 2.0**-4

"""A right candidate passes, with evidence, and is not built twice."""

import asyncio

import pytest

from kernel_foundry.domain.evaluation import StopReason
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import BackendUnavailableError, TaskInvalidError

pytestmark = pytest.mark.sycl


def test_a_right_candidate_passes_with_all_that_a_verdict_has(judged):
    """Timing, baselines, measures, stages and evidence are there."""
    evaluation = judged(judged.right)
    assert evaluation.passed, evaluation.findings
    timed, held_out = evaluation.workloads
    assert timed.timing.is_cold
    assert not timed.warm_timing.is_cold
    # A busy machine may end the budget before there are as many as a conclusion takes.
    is_cut_short = timed.timing.stop_reason is StopReason.BUDGET
    assert len(timed.timing.samples_ns) >= (1 if is_cut_short else 10)
    low, high = timed.timing.ci95_ns
    assert low <= timed.timing.median_ns <= high
    assert evaluation.speedup > 0
    assert held_out.timing is None
    assert held_out.correctness.mismatch_count == 0
    assert evaluation.fitness > 0.2
    stages = [stage.stage for stage in evaluation.stages]
    assert set(stages) == {
        "parse", "policy", "build", "bind", "correctness", "schedule", "precision",
        "value_ranges", "timing", "data_flow", "behaviour", "diagnosis",
    }  # fmt: skip
    assert "isolation" in [fact.name for fact in evaluation.evidence]


def test_a_known_candidate_is_not_built_again_and_its_judge_stays(judged):
    """How quick that makes a verdict is for the benchmark to say."""
    assert judged(judged.right).passed
    judge = judged.judge_process
    assert judged(judged.right).compile.cached
    assert judged.judge_process == judge


def test_a_retried_request_is_judged_once(judged):
    """Two calls with one request id get the same verdict, timings included."""

    async def twice() -> tuple[object, object]:
        request = judged.request(judged.right, request_id="once")
        return await asyncio.gather(
            judged.evaluator.evaluate(request), judged.evaluator.evaluate(request)
        )

    first, second = asyncio.run(twice())
    assert first is second


def test_fresh_baselines_are_measured_with_the_candidate(judged):
    """At a promotion the baselines' samples are new, not those of admission."""
    known = judged(judged.right).workloads[0].baselines
    fresh = judged(judged.right, fresh_baselines=True).workloads[0].baselines
    assert [b.name for b in fresh] == [b.name for b in known]
    for new, old in zip(fresh, known, strict=True):
        assert new.timing.samples_ns != old.timing.samples_ns


def test_an_unknown_device_is_our_own_error(judged):
    with pytest.raises(BackendUnavailableError, match="sycl:0"):
        asyncio.run(judged.evaluator.admit(judged.task, "sycl:9"))


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ("class Model", "class Other"),
        ("return torch.relu(x) * self.weight", "raise RuntimeError('no')"),
        ("def forward", "def ("),
    ],
    ids=["no Model", "reference raises", "no Python"],
)
def test_a_task_that_is_none_is_said_so(judged, there, instead):
    """The error is typed and the judge stays."""
    reference = judged.task.reference.replace(there, instead)
    judge = judged.judge_process
    task = Task(name="bad", reference=reference, workloads=(Workload(name="default"),))
    with pytest.raises(TaskInvalidError):
        asyncio.run(judged.evaluator.admit(task))
    assert judged.judge_process == judge


def test_a_batch_of_large_systems_is_solved_by_all_threads(judged):
    """Set by torch itself, several threads factorise such matrices with wrong pivots."""
    reference = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, a, b):
        return torch.linalg.solve(a, b)

def get_inputs():
    return [torch.randn(4, 160, 160) + 16 * torch.eye(160), torch.randn(4, 160)]

def get_init_inputs():
    return []
"""
    task = Task(name="solve", reference=reference, workloads=(Workload(name="default"),))
    assert asyncio.run(judged.evaluator.admit(task)).admitted

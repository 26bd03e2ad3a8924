"""Workloads too large for copies: drawn again from their seeds, with the same verdicts."""

import math
from dataclasses import replace

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.judge.admission import tolerance
from evaluator_svc.judge.draws.buffer_pool import BufferPool
from evaluator_svc.judge.draws.expected_output import expect
from evaluator_svc.judge.inputs.prepared_workload import KEPT_SHARE
from evaluator_svc.judge.memory.host_memory import HostMemory
from evaluator_svc.judge.memory.judge_memory import open_memory
from evaluator_svc.judge.tensors import rounding_noise, scales
from evaluator_svc.judge.tensors.scales import group_scale
from evaluator_svc.sizes.memory_needs import (
    BLOCK_BYTES,
    WorkloadSizes,
    full_need,
    lean_need,
    refusal,
)
from kernel_foundry.domain.admission import NamedTensor, TensorRole
from kernel_foundry.domain.task import Task, Workload
from tests.judge.judge_tasks import DEVICE, PEAKS, SOFTMAX, TOLERANCE, make_task

FLOATS = 4096 * 393_216
H200_BYTES = 150_110_011_392


def named(role: TensorRole, *shape: int) -> NamedTensor:
    return NamedTensor(name=role.value, role=role, dtype="float32", shape=shape)


def sizes(*tensors: NamedTensor) -> WorkloadSizes:
    return WorkloadSizes.of(tensors)


def test_what_is_needed_is_counted_in_copies() -> None:
    of = sizes(named(TensorRole.INPUT, 1000), named(TensorRole.OUTPUT, 10))
    shared, kept = 3 * (4000 + 3 * 40), 3 * (4000 + 40)

    assert full_need(of, pool_bytes=7).held_bytes == shared + kept + 7
    assert lean_need(of, pool_bytes=7).held_bytes == 4000 + 40 + 7
    # Drawn twice, as when inputs change: more than the reference takes here.
    assert lean_need(of, pool_bytes=0).passing_bytes == 2 * 4000 + 2 * (4000 + 40)


def test_the_relu_of_1_6_billion_floats_takes_four_tensors() -> None:
    of = sizes(named(TensorRole.INPUT, FLOATS), named(TensorRole.OUTPUT, FLOATS))

    assert full_need(of, pool_bytes=0).bytes > KEPT_SHARE * H200_BYTES
    assert lean_need(of, pool_bytes=0).bytes == 4 * 4 * FLOATS + BLOCK_BYTES
    assert refusal(lean_need(of, pool_bytes=0).bytes, 30_000_000_000) is None


def between(task: Task) -> Judge:
    """Return a judge whose device has memory for `task`, but not for copies."""
    rows, cols = (size.value for size in task.workloads[0].sizes)
    elements = rows * cols
    tensors = (named(TensorRole.INPUT, elements), named(TensorRole.OUTPUT, elements))
    memory_bytes = math.ceil(1.2 * (lean_need(sizes(*tensors), pool_bytes=0).bytes))
    return Judge(replace(DEVICE, memory_bytes=memory_bytes), threads=1, baseline_seconds=0.02)


@pytest.mark.slow
def test_a_large_workload_is_admitted_like_a_small_one() -> None:
    task = make_task(SOFTMAX)
    admission = between(task).admit(task, PEAKS)
    usual = Judge(DEVICE, threads=1, baseline_seconds=0.02).admit(task, PEAKS)

    assert (admission.refusals, admission.warnings) == ((), ())
    assert admission.tolerance == usual.tolerance
    assert admission.workloads[0].graph == usual.workloads[0].graph
    assert [b.name for b in admission.workloads[0].baselines] == ["eager", "torch.compile"]


def test_inputs_that_a_seed_does_not_decide_cannot_be_large() -> None:
    clock = "__import__('time').time_ns()"
    inputs = f"[torch.randn(rows, cols, generator=torch.Generator().manual_seed({clock}))]"
    task = make_task(SOFTMAX, inputs=inputs)
    judge = between(task)

    refusals = judge.admit(task, PEAKS).refusals

    assert any("other values under the same seed" in refusal for refusal in refusals)


def test_work_in_pieces_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = torch.randn(64, 100, generator=torch.Generator().manual_seed(1))
    noise = rounding_noise.RoundingNoise(seed=1, device=torch.device("cpu"))
    whole = group_scale(tensor)
    distance = tolerance._distance((tensor,), (tensor.double() * 1.01,))

    monkeypatch.setattr(scales, "CHUNK_ELEMENTS", 700)
    monkeypatch.setattr(scales, "_CACHED_ELEMENTS", 700)
    with noise:
        moved = tensor * 1.0

    assert torch.equal(group_scale(tensor), whole)
    assert tolerance._distance((tensor,), (tensor.double() * 1.01,)) == distance
    assert not torch.equal(moved, tensor)
    assert torch.allclose(moved, tensor, rtol=2e-7, atol=0)


def test_idle_buffers_make_room_for_other_sizes() -> None:
    memory = HostMemory()
    pool = BufferPool(memory, limit_bytes=3 << 20)
    small = pool.take(1 << 20, count=3)
    pool.give(small)
    assert pool.take(1 << 20, count=1) == [small[0]]

    (large,) = pool.take(2 << 20, count=1)

    assert [buffer.address == 0 for buffer in small] == [False, True, True]
    assert large.size_bytes == 2 << 20


def test_a_memory_of_each_kind_is_opened_by_the_devices_id() -> None:
    assert isinstance(open_memory("sycl:0"), HostMemory)
    assert isinstance(open_memory("null:0"), HostMemory)


def test_integers_have_no_scale() -> None:
    expected = expect(torch.arange(100), is_scaled=True, memory=HostMemory())

    assert expected.scale is None
    assert not bool(expected.bound(TOLERANCE).any())


def test_workloads_of_a_task_may_be_of_both_sizes() -> None:
    small = make_task(SOFTMAX)
    sizes = small.workloads[0].sizes
    tiny = Workload(name="tiny", sizes=tuple(replace(s, value=16) for s in sizes), held_out=True)
    task = replace(small, workloads=(*small.workloads, tiny))
    judge = between(small)
    for workload in task.workloads:
        message, _ = judge.draw(task, workload.name, TOLERANCE, (1, 2, 3))
        judge.release(message.draw)

    large = [judge._prepared[task.digest, w.name].is_large for w in task.workloads]
    assert large == [True, False]

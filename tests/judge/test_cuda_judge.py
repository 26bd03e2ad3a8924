"""What only a judge on a CUDA device does: its stream, its baselines, its memory."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.judge.reference.tf32 import tf32_allowed
from evaluator_svc.messages.measurement import KeptOutput, MeasurementSettings
from kernel_foundry.domain.task import Size, Task, Tolerance, Workload
from kernel_foundry_native import device_kind
from tests.judge.judge_tasks import DEVICE, PEAKS, SOFTMAX, TOLERANCE, RunnerSide, make_task

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.parametrize("judge", ["cuda"], indirect=True),
]

RELU = "def forward(self, x):\n    return torch.relu(x)"


def test_a_draw_is_opened_by_handles_of_whole_blocks(judge: Judge) -> None:
    task = make_task(SOFTMAX)
    message, descriptors = judge.draw(task, task.workloads[0].name, TOLERANCE, (1, 2, 3))

    addresses = [buffer.address for buffer in judge._draws[message.draw].buffers]
    assert descriptors == ()
    assert len(set(message.handles)) == 3
    assert all(len(bytes.fromhex(handle)) == 64 for handle in message.handles)
    assert all(address % (2 << 20) == 0 for address in addresses)
    judge.release(message.draw)


@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param("[torch.randn(rows, cols).cuda()]", id="moved by the file"),
        pytest.param(
            "[torch.from_numpy(__import__('numpy').random.rand(rows, cols)).float()]",
            id="made by numpy",
        ),
        pytest.param(
            "[torch.randn(rows, cols, generator="
            "torch.Generator().manual_seed(torch.initial_seed()))]",
            id="generator of the CPU",
        ),
    ],
)
def test_inputs_come_to_the_device_however_they_are_made(judge: Judge, inputs: str) -> None:
    task = make_task(SOFTMAX, inputs=inputs)
    message, descriptors = judge.draw(task, task.workloads[0].name, TOLERANCE, (1,))
    runner = RunnerSide(judge, message, descriptors)
    runner.run(lambda x: torch.softmax(x, -1), "x")

    assert runner.tensor("x", seed=0).is_cuda
    assert not judge.verify(message.draw).is_wrong
    judge.release(message.draw)


def product_task(rows: int = 512) -> Task:
    return make_task(
        "def forward(self, a, b):\n    return a @ b",
        inputs="[torch.randn(rows, cols), torch.randn(cols, rows)]",
        rows=rows,
        cols=2048,
    )


def exactly(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.double() @ b.double()).float()


def cut_to_tf32(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    kept = [x.view(torch.int32).bitwise_and(~0x1FFF).view(torch.float32) for x in (a, b)]
    return exactly(*kept)


def eager_in_tf32(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    with tf32_allowed(a.device, allowed=True):
        return a @ b


def test_float32_products_are_float32(judge: Judge) -> None:
    task = product_task()
    message, descriptors = judge.draw(task, task.workloads[0].name, TOLERANCE, (1,))
    runner = RunnerSide(judge, message, descriptors)

    runner.run(exactly, "a", "b")
    assert not judge.verify(message.draw).is_wrong
    for kernel in (cut_to_tf32, eager_in_tf32):
        runner.run(kernel, "a", "b")
        assert judge.verify(message.draw).is_wrong
    judge.release(message.draw)


def test_a_task_that_allows_tf32_takes_it_and_float32_alike(judge: Judge) -> None:
    """The derived tolerance is wide enough for TF32, and for nothing much coarser."""
    task = replace(product_task(), tf32=True)
    tolerance = judge.admit(task, PEAKS).tolerance
    assert judge.admit(product_task(), PEAKS).tolerance.rtol < tolerance.rtol / 10
    message, descriptors = judge.draw(task, task.workloads[0].name, tolerance, (1,))
    runner = RunnerSide(judge, message, descriptors)

    for kernel in (exactly, cut_to_tf32, eager_in_tf32):
        runner.run(kernel, "a", "b")
        assert not judge.verify(message.draw).is_wrong
    runner.run(lambda a, b: 1.05 * exactly(a, b), "a", "b")
    assert judge.verify(message.draw).is_wrong
    judge.release(message.draw)


@pytest.mark.slow
@pytest.mark.parametrize("allowed", [False, True])
def test_baselines_use_tf32_only_where_the_task_allows_it(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    """The switch stands as the task says while each baseline is called, and only then."""
    measure, seen = judge._memory.measure, []

    def watched(*arguments, **options):
        seen.append((torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32))
        return measure(*arguments, **options)

    monkeypatch.setattr(judge._memory, "measure", watched)
    workload = judge.admit(replace(product_task(), tf32=allowed), PEAKS).workloads[0]

    assert {"eager", "cuda_graph"} <= {baseline.name for baseline in workload.baselines}
    assert len(seen) >= len(workload.baselines)
    assert set(seen) == {(allowed, allowed)}
    assert not torch.backends.cuda.matmul.allow_tf32
    assert not torch.backends.cudnn.allow_tf32


def test_eager_and_graph_are_timed_by_events(judge: Judge) -> None:
    task = make_task(RELU, rows=4096, cols=4096)
    message, _ = judge.draw(task, task.workloads[0].name, TOLERANCE, (1, 2, 3))
    settings = MeasurementSettings(seconds=0.5, flush_bytes=128 << 20)

    baselines = judge.time_baselines(message.draw, settings, ("eager", "cuda_graph"))
    judge.release(message.draw)

    assert [b.name for b in baselines] == ["eager", "cuda_graph"]
    for baseline in baselines:
        # 134 MB: no memory moves them at more than 20 TB/s.
        assert baseline.timing.median_ns > 6_700
        assert len(baseline.timing.host_ns) == len(baseline.timing.samples_ns)
        assert min(baseline.timing.host_ns) > 0


def test_a_reference_that_cannot_be_captured_costs_a_warning(judge: Judge) -> None:
    body = "def forward(self, x):\n    return torch.tanh(x) * (1.0 + abs(x.mean().item()))"
    admission = judge.admit(make_task(body), PEAKS)

    assert admission.admitted
    assert any(warning.startswith("cuda_graph: ") for warning in admission.warnings)
    assert "cuda_graph" not in [b.name for b in admission.workloads[0].baselines]
    # The judge is as before.
    again = judge.admit(make_task(RELU), PEAKS)
    assert "cuda_graph" in [b.name for b in again.workloads[0].baselines]


def test_facts_name_device_and_driver(judge: Judge) -> None:
    facts = {fact.name: fact.value for fact in judge.facts().facts}

    assert facts["device of torch"] == torch.cuda.get_device_name(0)
    assert facts["cuDNN"].isdecimal()
    assert facts["driver"]


@pytest.fixture
def whole_device() -> Iterator[Judge]:
    native = device_kind("cuda").open_device(0)
    if native.memory_bytes < 130 << 30:
        pytest.skip("the task takes a device of 141 GB")
    memory_bytes, cache_bytes = native.memory_bytes, native.cache_bytes
    native.release()
    spec = replace(DEVICE, id="cuda:0", memory_bytes=memory_bytes, cache_bytes=cache_bytes)
    yield Judge(spec, threads=8)
    torch.cuda.empty_cache()


def large_relu() -> Task:
    small = make_task(RELU, inputs="[torch.rand(rows, cols).sub_(0.5)]")
    sizes = (Size(name="rows", value=4096), Size(name="cols", value=393_216))
    return Task(
        name="relu",
        reference=small.reference.replace(
            "torch.randn(rows, cols)", "torch.rand(rows, cols) - 0.5"
        ),
        workloads=(Workload(name="large", sizes=sizes),),
        tolerance=Tolerance(rtol=1e-5, atol=1e-5),
    )


@pytest.mark.slow
def test_1_6_billion_floats_are_admitted_drawn_and_judged(
    judge: Judge, whole_device: Judge
) -> None:
    """In and out 6.4 GB each: three seeds with three slots are 77 GB, and copies do not fit."""
    judge._pool.clear()
    task = large_relu()
    admission = whole_device.admit(task, PEAKS)
    assert admission.refusals == ()
    assert {"eager", "cuda_graph"} <= {b.name for b in admission.workloads[0].baselines}

    message, descriptors = whole_device.draw(task, "large", task.tolerance or TOLERANCE, (1, 2, 3))
    runner = RunnerSide(whole_device, message, descriptors)
    for seed in range(3):
        for slot in range(3):
            out = runner.tensor("out", seed=seed, slot=slot)
            torch.clamp(runner.tensor("x", seed=seed), min=0.0, out=out)
    assert not whole_device.verify(message.draw).is_wrong

    runner.tensor("out", seed=1, slot=2)[4095, 393_215] = 7.0
    verdict = whole_device.verify_kept(message.draw, (KeptOutput(seed=1, slot=2),)).verdict
    assert verdict.correctness.mismatch_count == 1
    assert verdict.correctness.first_mismatch == 4096 * 393_216 - 1
    whole_device.release(message.draw)
    whole_device._pool.clear()

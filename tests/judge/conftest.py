"""A real judge on a device that nobody runs anything on."""

import os
from collections.abc import Callable, Iterator

import pytest
from judge_tasks import TOLERANCE, RunnerSide

from evaluator_svc.judge import Judge
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Task

DEVICE = DeviceSpec(
    id="null:0",
    language=Language.SYCL,
    name="test device",
    vendor="none",
    architecture="none",
    driver_version="0",
    compute_units=2,
    sub_group_size=16,
    max_block=1024,
    shared_bytes=1 << 16,
    memory_bytes=8 << 30,
    cache_bytes=1 << 20,
)

PEAKS = Peaks(
    bandwidth_bytes_per_second=1e10,
    cache_bandwidth_bytes_per_second=5e10,
    flops_per_second=1e11,
    launch_ns=1e4,
)

@pytest.fixture(scope="session")
def judge() -> Judge:
    return Judge(DEVICE, threads=len(os.sched_getaffinity(0)))


@pytest.fixture
def drawn(judge: Judge) -> Iterator[Callable[..., RunnerSide]]:
    """Return a function that draws a task's first workload; draws are released afterwards."""
    handles: list[int] = []

    def draw(task: Task, *, seeds: tuple[int, ...] = (11, 12, 13)) -> RunnerSide:
        tolerance = task.tolerance or TOLERANCE
        message, descriptors = judge.draw(task, task.workloads[0].name, tolerance, seeds)
        handles.append(message.draw)
        return RunnerSide(message, descriptors)

    yield draw
    for handle in handles:
        judge.release(handle)

"""A real judge on a device that nobody runs anything on."""

import os
from collections.abc import Callable, Iterator

import pytest

from evaluator_svc.judge import Judge
from kernel_foundry.domain.task import Task
from tests.judge.judge_tasks import DEVICE, TOLERANCE, RunnerSide


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

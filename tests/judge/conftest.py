"""Real judges, one for each kind of memory; nobody runs anything on their devices."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from evaluator_svc.judge import Judge
from kernel_foundry.domain.task import Task
from tests.judge.judge_tasks import DEVICE, EACH_MEMORY, TOLERANCE, RunnerSide

_KINDS = {
    "host": DEVICE,
    "host large": replace(DEVICE, memory_bytes=1),
    "cuda": replace(DEVICE, id="cuda:0"),
    "cuda large": replace(DEVICE, id="cuda:0", memory_bytes=1),
}
"""On a device that tells of one byte every workload is large: no copies are kept."""


@pytest.fixture(scope="session", params=EACH_MEMORY)
def judge(request: pytest.FixtureRequest) -> Judge:
    """Without torch.compile, which takes seconds for each task that is admitted."""
    return _judge(request.param, baselines=("cuda_graph",))


@pytest.fixture(scope="session", params=EACH_MEMORY)
def compiling_judge(request: pytest.FixtureRequest) -> Judge:
    """A judge with the baselines that an evaluator has unless told otherwise."""
    return _judge(request.param)


def _judge(kind: str, **settings: Any) -> Judge:
    threads = len(os.sched_getaffinity(0))
    return Judge(_KINDS[kind], threads=threads, baseline_seconds=0.02, **settings)


@pytest.fixture
def drawn(judge: Judge) -> Iterator[Callable[..., RunnerSide]]:
    """Return a function that draws a task's first workload; draws are released afterwards."""
    handles: list[int] = []

    def draw(task: Task, *, seeds: tuple[int, ...] = (11, 12, 13)) -> RunnerSide:
        tolerance = task.tolerance or TOLERANCE
        message, descriptors = judge.draw(task, task.workloads[0].name, tolerance, seeds)
        handles.append(message.draw)
        return RunnerSide(judge, message, descriptors)

    yield draw
    for handle in handles:
        judge.release(handle)

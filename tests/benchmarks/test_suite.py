"""Every task of the suite runs at its full size on no device, and small on the host."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.admit_suite import byte_count, summary, write_files
from benchmarks.suite import TASKS, SuiteTask, networks
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.reference.task_module import TaskModule
from kernel_foundry.sdk.task_file import read_task

_OF_STEPS = {"gru_bidirectional", "lstm_state_in_forward"}
"""Each of their 512 steps is like the one before, and takes 30 ms without a device."""
_HEAVY = {task.name for task in networks.TASKS}


@pytest.mark.parametrize(
    "item",
    [pytest.param(t, id=t.name, marks=pytest.mark.slow if t.name in _HEAVY else ()) for t in TASKS],
)
def test_a_task_runs(item: SuiteTask) -> None:
    sizes = {**item.sizes, "length": (16, 5)} if item.name in _OF_STEPS else item.sizes
    whole = replace(item, sizes=sizes).task()
    module = TaskModule(whole, whole.workloads[0], torch.device("meta"))
    inputs = module.input_values(1)
    with torch.no_grad():
        module.model(*inputs)
    module.close()

    small = item.task(small=True)
    prepared = PreparedWorkload(
        small, small.workloads[0], device=torch.device("cpu"), memory_bytes=8 << 30
    )
    drawn = prepared.input_set(3)
    exact = drawn.run(dtype=torch.float64)
    prepared.close()
    for found, expected in zip(drawn.expected(), exact, strict=True):
        assert found.shape == expected.shape
        assert bool(expected.isfinite().all())
    assert prepared.tensors[0].shape != tuple(inputs[0].shape)


def test_names_are_unique_and_all_families_are_there() -> None:
    assert len({task.name for task in TASKS}) == len(TASKS) >= 60
    assert sum(task.is_degenerate for task in TASKS) == 2


def test_the_files_are_tasks(tmp_path: Path) -> None:
    write_files(tmp_path)
    for item in TASKS:
        task = read_task(tmp_path / f"{item.name}.py")
        assert task.reference == item.reference


def test_sizes_of_memory() -> None:
    assert byte_count("80GB") == 80_000_000_000
    assert byte_count("1.5 GiB") == 3 << 29
    assert byte_count("17") == 17
    with pytest.raises(Exception, match="expected a size such as 80GB"):
        byte_count("80 GO")


def test_the_summary_names_what_is_unexpected() -> None:
    rows = [
        {"name": "a", "expected": True, "admitted": True, "seconds": 2.0, "peak_gb": 1.0},
        {"name": "b", "expected": False, "admitted": False, "seconds": 1.0, "peak_gb": 3.0},
        {"name": "c", "expected": True, "admitted": False, "seconds": 4.0, "peak_gb": 2.0},
    ]
    found = json.loads(json.dumps(summary(rows)))
    assert (found["admitted"], found["as_expected"], found["unexpected"]) == (1, 2, ["c"])
    assert (found["slowest"], found["peak_gb"], found["seconds"]) == ([4.0, "c"], 3.0, 7.0)

"""robust-kbench's folders become tasks whose workloads are its settings."""

import json
from pathlib import Path

import pytest
import torch

from evaluator_svc.judge.reference.task_module import TaskModule
from kernel_foundry.sdk.task_file import read_task
from tests.sdk.task_import.suite_folder import imported, reasons

MODULE = '''\
"""A module of our own in the suite's form."""

import torch
import torch.nn as nn

features = "taken"


def forward_fn(x, weight, eps):
    return x / (x.abs().mean(-1, keepdim=True) + eps) * weight


class Model(nn.Module):
    def __init__(self, features=4, eps=1e-5):
        super(Model, self).__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(features))

    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight, self.eps)


def get_inputs(batch=2, features=4):
    return [torch.randn(batch, features)]


input_names = ["x", "weight"]
'''

CONFIG = {
    "single_input_configs": [{"batch": 8}],
    "single_init_configs": [{"eps": 1e-5}],
    "single_shared_configs": [{"features": 16}],
    "multi_input_configs": [{"batch": 8}, {"batch": 3}],
    "multi_init_configs": [{"eps": 1e-5}],
    "multi_shared_configs": [{"features": 16}, {"features": 33}],
}


def _suite(config: object, module: str = MODULE) -> dict[str, str]:
    return {
        "tasks/scale/func_forward.py": module,
        "tasks/scale/config_forward.json": json.dumps(config),
    }


def test_settings_become_workloads_and_a_share_is_held_out(tmp_path: Path) -> None:
    suite = imported(tmp_path, _suite(CONFIG))
    assert (suite.format, reasons(suite)) == ("robust-kbench", {})
    task = read_task(tmp_path / "out/tasks_scale.py")
    named = [(w.name, w.held_out) for w in task.workloads]
    assert named == [
        ("features_size=16,batch=8", False),
        ("features_size=33,batch=8", False),
        ("features_size=16,batch=3", False),
        ("features_size=33,batch=3", True),
    ]


def test_the_judge_runs_the_produced_file(tmp_path: Path) -> None:
    imported(tmp_path, _suite(CONFIG))
    task = read_task(tmp_path / "out/tasks_scale.py")
    module = TaskModule(task, task.workloads[3], torch.device("cpu"))
    (x,) = module.input_values(seed=1)
    assert x.shape == (3, 33)
    assert module.model(x).shape == (3, 33)
    assert module.model.eps == 1e-5
    module.close()


def test_settings_that_differ_in_a_number_are_workloads(tmp_path: Path) -> None:
    """Also where it is written without a point in one of them."""
    config = {**CONFIG, "multi_init_configs": [{"eps": 1e-5}, {"eps": 0}]}
    suite = imported(tmp_path, _suite(config))
    assert [done.workloads for done in suite.imported] == [8]
    task = read_task(tmp_path / "out/tasks_scale.py")
    found = set()
    for workload in task.workloads:
        module = TaskModule(task, workload, torch.device("cpu"))
        found.add(module.model.eps)
        module.close()
    assert found == {1e-5, 0.0}


@pytest.mark.parametrize("values", [(True, False), ("mean", "sum")])
def test_settings_that_may_change_weights_are_tasks_of_their_own(
    tmp_path: Path, values: tuple[object, object]
) -> None:
    config = {**CONFIG, "multi_init_configs": [{"eps": value} for value in values]}
    suite = imported(tmp_path, _suite(config))
    names = [done.task for done in suite.imported]
    assert names == ["tasks_scale", "tasks_scale_2", "tasks_scale_3"]
    assert f"eps={values[1]!r}" in (tmp_path / "out/tasks_scale_3.py").read_text()


def test_a_backward_pass_becomes_a_task_of_its_own(tmp_path: Path) -> None:
    """Its reference is the gradient by autograd, at the settings of the backward pass."""
    backward = {
        "tasks/scale/func_backward.py": MODULE,
        "tasks/scale/config_backward.json": json.dumps(CONFIG),
    }
    suite = imported(tmp_path, {**_suite(CONFIG), **backward})
    assert reasons(suite) == {}
    assert [done.task for done in suite.imported] == ["tasks_scale", "tasks_scale_backward"]
    assert "no saved tensors" in suite.imported[1].notes[0]
    task = read_task(tmp_path / "out/tasks_scale_backward.py")
    assert len(task.workloads) == len(read_task(tmp_path / "out/tasks_scale.py").workloads)
    module = TaskModule(task, task.workloads[0], torch.device("cpu"))
    x, given = module.input_values(seed=1)
    found = module.model(x, given)
    x.requires_grad_()
    weight = module.model.weight.requires_grad_()
    wanted = torch.autograd.grad(
        x / (x.abs().mean(-1, keepdim=True) + 1e-5) * weight, (x, weight), given
    )
    torch.testing.assert_close(tuple(found), wanted)


def test_a_backward_pass_without_settings_is_named_with_its_reason(tmp_path: Path) -> None:
    suite = imported(tmp_path, {**_suite(CONFIG), "tasks/scale/func_backward.py": MODULE})
    assert len(suite.imported) == 1
    assert "config_backward.json" in reasons(suite)["tasks/scale/func_backward.py"]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ([], "expected an object"),
        ({}, "no settings"),
        ({"multi_input_configs": [{"batch": 1}] * 300}, "more than 256"),
        ({"multi_input_configs": 3}, "expected a list"),
        ({"multi_input_configs": [{"x): import os #": 1}]}, "not a plain name"),
        ({"multi_input_configs": [{"class": 1}]}, "not a plain name"),
        ({"multi_input_configs": [{"unknown": 1}]}, "does not take unknown"),
        ({"multi_init_configs": [{"eps": 10**30}]}, "beyond 64 bits"),
        ({"multi_init_configs": [{"eps": "x" * 3000}]}, "characters"),
        ({"multi_shared_configs": [{"nothing": 1}]}, "neither Model nor get_inputs"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path: Path, config: object, reason: str) -> None:
    found = reasons(imported(tmp_path, _suite(config)))
    assert reason in found["tasks/scale/func_forward.py"]


def test_an_entry_with_a_huge_number_ends_no_other(tmp_path: Path) -> None:
    """Also beside a number with a point, of which it would be one."""
    config = {**CONFIG, "multi_init_configs": [{"eps": 10**400}, {"eps": 0.5}]}
    other = {f"tasks/other/{Path(path).name}": text for path, text in _suite(CONFIG).items()}
    suite = imported(tmp_path, {**_suite(config), **other})
    assert [done.task for done in suite.imported] == ["tasks_other"]
    assert "beyond 64 bits" in reasons(suite)["tasks/scale/func_forward.py"]


def test_a_folder_without_settings_is_named(tmp_path: Path) -> None:
    suite = imported(tmp_path, {"tasks/scale/func_forward.py": MODULE})
    assert "No such file" in reasons(suite)["tasks/scale/func_forward.py"]

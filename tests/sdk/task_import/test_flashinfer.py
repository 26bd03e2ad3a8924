"""Definitions of FlashInfer Trace and SOL-ExecBench become tasks whose sizes are variable axes."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.judge.reference.task_module import TaskModule
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.sdk.task_file import read_task
from kernel_foundry.sdk.task_import.definition import read_definition
from kernel_foundry.sdk.task_import.entry import NotRepresentableError
from tests.sdk.task_import.suite_folder import imported, reasons

REFERENCE = """\
import torch


def run(x, index, scale):
    return {"y": x.float()[:, index] * scale}


def make(axes_and_scalars, device):
    assert axes_and_scalars["scale"] == 0.5
    return {"index": torch.randperm(axes_and_scalars["width"], device=device)}
"""

DEFINITION: dict[str, Any] = {
    "name": "gather-columns",
    "axes": {
        "rows": {"type": "var"},
        "heads": {"type": "const", "value": 3},
        "width": {"type": "expr", "expression": "2 * heads + 1"},
    },
    "inputs": {
        "x": {"shape": ["rows", "width"], "dtype": "bfloat16"},
        "index": {"shape": ["width"], "dtype": "int64"},
        "scale": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["rows", "width"], "dtype": "float32"}},
    "custom_inputs_entrypoint": "make",
    "reference": REFERENCE,
}


def _workload(rows: object, **changed: object) -> dict[str, Any]:
    inputs = {
        "x": {"type": "random"},
        "index": {"type": "custom"},
        "scale": {"type": "scalar", "value": 0.5},
        **changed,
    }
    return {"uuid": f"u-{rows}", "axes": {"rows": rows}, "inputs": inputs}


def _pack(definition: object, workloads: list[Any]) -> dict[str, str]:
    """A folder as SOL-ExecBench has it."""
    return {
        "7/definition.json": json.dumps(definition),
        "7/workload.jsonl": "\n".join(map(json.dumps, workloads)),
    }


def test_a_pack_becomes_a_task(tmp_path: Path) -> None:
    suite = imported(tmp_path, _pack(DEFINITION, [_workload(4), _workload(9)]))
    assert (suite.format, reasons(suite)) == ("flashinfer", {})
    task = read_task(tmp_path / "out/gather_columns.py")
    assert [(w.name, w.held_out) for w in task.workloads] == [("rows=4", False), ("rows=9", True)]

    module = TaskModule(task, task.workloads[1], torch.device("cpu"))
    x, index, scale = module.input_values(seed=1)
    assert (x.shape, x.dtype) == ((9, 7), torch.bfloat16)
    assert sorted(index.tolist()) == list(range(7))
    assert torch.equal(module.model(x, index, scale)[0], x.float()[:, index] * 0.5)
    module.close()


@pytest.mark.parametrize("taken", ["", "suite_get_inputs = None\n"])
def test_the_function_of_custom_inputs_may_be_called_as_ours(tmp_path: Path, taken: str) -> None:
    definition = {
        **DEFINITION,
        "reference": taken + REFERENCE.replace("def make(", "def get_inputs("),
        "custom_inputs_entrypoint": "get_inputs",
    }
    assert reasons(imported(tmp_path, _pack(definition, [_workload(4)]))) == {}
    task = read_task(tmp_path / "out/gather_columns.py")
    module = TaskModule(task, task.workloads[0], torch.device("cpu"))
    assert sorted(module.input_values(seed=1)[1].tolist()) == list(range(7))
    module.close()


def test_a_trace_folder_becomes_tasks(tmp_path: Path) -> None:
    lines = [{"definition": "g", "workload": _workload(rows)} for rows in (4, 5)]
    files = {
        "definitions/gather/g.json": json.dumps(DEFINITION),
        "workloads/gather/g.jsonl": "\n".join(map(json.dumps, lines)),
        "solutions/me/gather/g/s.json": "{}",
    }
    suite = imported(tmp_path, files)
    assert [done.workloads for done in suite.imported] == [2]
    assert suite.left_out == ()


def test_the_reference_may_lie_beside_the_definition(tmp_path: Path) -> None:
    definition = {key: value for key, value in DEFINITION.items() if key != "reference"}
    files = _pack(definition, [_workload(4)]) | {"7/reference.py": REFERENCE}
    assert len(imported(tmp_path, files).imported) == 1


def test_inputs_may_be_called_as_the_reference_is(tmp_path: Path) -> None:
    definition = {
        **DEFINITION,
        "reference": "def run(run, rows):\n    return run - rows\n",
        "inputs": {name: {"shape": ["rows"], "dtype": "float32"} for name in ("run", "rows")},
        "custom_inputs_entrypoint": "",
    }
    imported(tmp_path, _pack(definition, [{"axes": {"rows": 4}}]))
    task = read_task(tmp_path / "out/gather_columns.py")
    module = TaskModule(task, task.workloads[0], torch.device("cpu"))
    x, y = module.input_values(seed=1)
    assert torch.equal(module.model(x, y), x - y)
    module.close()


def test_a_shape_may_hold_whole_numbers(tmp_path: Path) -> None:
    inputs = {
        "x": {"shape": ["rows", "1"], "dtype": "float32"},
        "y": {"shape": ["heads", "03", "rows"], "dtype": "float32"},
    }
    definition = {
        **DEFINITION,
        "reference": "def run(x, y):\n    return x.squeeze(1) + y.sum((0, 1))\n",
        "inputs": inputs,
        "custom_inputs_entrypoint": "",
    }
    imported(tmp_path, _pack(definition, [{"axes": {"rows": 4}}]))
    task = read_task(tmp_path / "out/gather_columns.py")
    module = TaskModule(task, task.workloads[0], torch.device("cpu"))
    x, y = module.input_values(seed=1)
    assert (x.shape, y.shape) == ((4, 1), (3, 3, 4))
    module.close()


def test_scalars_that_differ_are_workloads_of_one_task(tmp_path: Path) -> None:
    reference = REFERENCE.replace('    assert axes_and_scalars["scale"] == 0.5\n', "")
    other = _workload(4, scale={"type": "scalar", "value": 2})
    pack = _pack({**DEFINITION, "reference": reference}, [_workload(4), other])
    suite = imported(tmp_path, pack)
    assert [done.workloads for done in suite.imported] == [2]
    task = read_task(tmp_path / "out/gather_columns.py")
    scales = []
    for workload in task.workloads:
        module = TaskModule(task, workload, torch.device("cpu"))
        scales.append(module.input_values(seed=1)[2])
        module.close()
    assert scales == [0.5, 2.0]


def test_whole_numbers_that_differ_make_tasks_of_their_own(tmp_path: Path) -> None:
    """They are no sizes, which a workload may change alone."""
    inputs = {**DEFINITION["inputs"], "scale": {"shape": None, "dtype": "int32"}}
    scales = [_workload(4, scale={"type": "scalar", "value": value}) for value in (1, 2)]
    suite = imported(tmp_path, _pack({**DEFINITION, "inputs": inputs}, scales))
    assert [done.task for done in suite.imported] == ["gather_columns", "gather_columns_2"]


def test_a_tolerance_that_all_workloads_have_is_kept(tmp_path: Path) -> None:
    stated = {"max_rtol": 0.01, "max_atol": 0.02, "required_matched_ratio": 0.99}
    workloads = [{**_workload(rows), "tolerance": stated} for rows in (4, 9)]
    suite = imported(tmp_path, _pack(DEFINITION, workloads))
    task = read_task(tmp_path / "out/gather_columns.py")
    assert task.tolerance == Tolerance(rtol=0.01, atol=0.02, matched=0.99)
    assert all(w.tolerance is None for w in task.workloads)
    assert suite.imported[0].notes == ()


def test_tolerances_that_differ_are_those_of_workloads(tmp_path: Path) -> None:
    """The task has the widest; what no task can hold is said."""
    stated = [
        {"max_rtol": 0.01, "max_atol": 0.02, "required_matched_ratio": 0.99, "max_error_cap": 5},
        {"max_rtol": 0.02, "max_atol": 0.01, "required_matched_ratio": 0.3},
    ]
    workloads = [
        {**_workload(rows), "tolerance": t} for rows, t in zip((4, 9), stated, strict=True)
    ]
    suite = imported(tmp_path, _pack(DEFINITION, workloads))
    task = read_task(tmp_path / "out/gather_columns.py")
    assert task.tolerance == Tolerance(rtol=0.02, atol=0.02, matched=0.99)
    assert [w.tolerance for w in task.workloads] == [
        Tolerance(rtol=0.01, atol=0.02, matched=0.99),
        Tolerance(rtol=0.02, atol=0.01),
    ]
    assert suite.imported[0].notes == (
        "tolerance: max_error_cap",
        "tolerance: required_matched_ratio",
    )


def test_a_tolerance_that_only_some_workloads_have_is_named(tmp_path: Path) -> None:
    workloads = [_workload(4), {**_workload(9), "tolerance": {"max_rtol": 0.1, "max_atol": 0.1}}]
    suite = imported(tmp_path, _pack(DEFINITION, workloads))
    assert read_task(tmp_path / "out/gather_columns.py").tolerance is None
    assert "not every workload states one" in suite.imported[0].notes[0]


def test_workloads_that_need_stored_data_are_named(tmp_path: Path) -> None:
    stored = _workload(5, x={"type": "safetensors", "path": "../../x", "tensor_key": "x"})
    suite = imported(tmp_path, _pack(DEFINITION, [_workload(4), stored, _workload(0)]))
    assert [done.workloads for done in suite.imported] == [1]
    found = reasons(suite)
    assert "safetensors" in found["7/workload.jsonl, line 2"]
    assert "axis rows" in found["7/workload.jsonl, line 3"]


@pytest.mark.parametrize(
    ("part", "value", "reason"),
    [
        ("reference", "x = 1", "no function `run`"),
        ("reference", None, "reference"),
        ("axes", {"rows": {"type": "const", "value": 1 << 50}}, "no size"),
        ("axes", {"rows; x": {"type": "var"}}, "not a plain name"),
        ("axes", {f"a{i}": {"type": "var"} for i in range(100)}, "at most 64"),
        ("inputs", {"x": {"shape": ["nothing"], "dtype": "float32"}}, "other than axes"),
        ("inputs", {"x": {"shape": ["heads"] * 30, "dtype": "float32"}}, "2^40"),
        ("inputs", {"x": {"shape": [str(1 << 41)], "dtype": "float32"}}, "2^40"),
        ("inputs", {"x": {"shape": ["9" * 5000], "dtype": "float32"}}, "other than axes"),
        ("inputs", {"x": {"shape": ["-1"], "dtype": "float32"}}, "other than axes"),
        ("inputs", {"x": {"shape": ["\u0663"], "dtype": "float32"}}, "other than axes"),
        ("inputs", {"x": {"shape": [1.5], "dtype": "float32"}}, "other than axes"),
        ("inputs", {"x": {"shape": ["heads"], "dtype": "float4_e2m1"}}, "dtype"),
        ("inputs", {}, "no inputs"),
        ("outputs", {'y"]': {}}, "not a plain name"),
        ("reference", REFERENCE + "\n\ndef get_inputs():\n    return get_inputs()\n", "get_inputs"),
        ("reference", REFERENCE + "\n\nclass Model:\n    pass\n", "Model of its own"),
        ("custom_inputs_entrypoint", "os.system", "not a plain name"),
        ("custom_inputs_entrypoint", "nothing", "no function nothing"),
    ],
)
def test_what_a_task_cannot_hold_is_named(
    tmp_path: Path, part: str, value: object, reason: str
) -> None:
    definition = {**copy.deepcopy(DEFINITION), part: value}
    suite = imported(tmp_path, _pack(definition, [_workload(4)]))
    assert suite.imported == ()
    assert reason in "".join(reasons(suite).values())


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os')",
        "rows.real",
        "width",
        "unknown",
        "heads ** heads",
        "9" * 200,
        "(" * 150 + "1" + ")" * 150,
        "-" * 299 + "1",
        "1; 2",
        "",
    ],
)
def test_expressions_that_are_no_sizes_are_refused(expression: str) -> None:
    definition = copy.deepcopy(DEFINITION)
    definition["axes"]["width"]["expression"] = expression
    with pytest.raises(NotRepresentableError):
        read_definition(definition)


def test_expressions_that_double_are_refused() -> None:
    axes = {"a0": {"type": "var"}}
    axes |= {f"a{i + 1}": {"type": "expr", "expression": f"a{i} + a{i}"} for i in range(60)}
    with pytest.raises(NotRepresentableError, match="long"):
        read_definition({**DEFINITION, "axes": axes})


@given(
    st.recursive(
        st.sampled_from(["rows", "heads", "2", "7"]),
        lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
            lambda parts: f"({' '.join(parts)})"
        ),
        max_leaves=8,
    )
)
def test_an_expression_keeps_its_value(expression: str) -> None:
    definition = copy.deepcopy(DEFINITION)
    definition["axes"]["width"]["expression"] = expression
    written = read_definition(definition).axes["width"]
    values = {"rows": 5, "heads": 3}

    def value(text: str) -> int | None:
        try:
            return int(eval(text, {}, values))
        except ZeroDivisionError:
            return None

    assert value(written) == value(expression)

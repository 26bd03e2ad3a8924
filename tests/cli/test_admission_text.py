"""What `kfoundry admit` prints of a tolerance's origin and of redundant work."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from kernel_foundry.cli.admit import _show
from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.domain.admission import (
    Admission,
    GraphNode,
    NamedTensor,
    TensorRole,
    ToleranceDerivation,
)
from kernel_foundry.domain.evaluation import Baseline
from kernel_foundry.domain.plain import from_json, to_json
from kernel_foundry.domain.task import Task, Tolerance, Workload
from tests.domain_values import timing_of, workload_admission
from tests.judge.judge_tasks import DEVICE

TASK = Task(name="t", reference="", workloads=(Workload(name="default"),))
ADMISSION = Admission(
    task="t",
    device=DEVICE,
    workloads=(),
    tolerance=Tolerance(rtol=1.2e-6, atol=1.2e-6),
    derivation=ToleranceDerivation(
        source="measured",
        noise=3e-8,
        safety=8.0,
        floor=5e-5,
        ceiling=5e-3,
        tf32_noise=2e-4,
        tightened_by="a copy of input 'x'",
        workload="rows=3",
    ),
    redundancies=("mul (node 'mul') is never used",),
)


def test_the_derivation_and_redundant_work_are_shown_and_kept() -> None:
    shown = io.StringIO()
    _show(Console(file=shown, width=1000), TASK, ADMISSION)
    text = shown.getvalue()

    assert "redundant: mul (node 'mul') is never used" in text
    assert "rounding noise 3.0e-08 of rows=3 times 8, at least 5e-05 and at most 5e-03" in text
    assert (
        "a kernel in TF32 would err by 2.0e-04; tightened until a copy of input 'x' fails" in text
    )
    assert from_json(Admission, to_json(ADMISSION)) == ADMISSION


def test_a_task_without_a_comparison_has_no_tolerance() -> None:
    unused = ToleranceDerivation(source="check", noise=0.0, safety=1.0, floor=5e-5, ceiling=5e-5)
    shown = io.StringIO()
    _show(Console(file=shown, width=1000), TASK, replace(ADMISSION, derivation=unused))
    assert "tolerance: none, the task's own check" in shown.getvalue()


def test_names_of_workloads_and_of_tensors_are_whole_at_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, tensor = "batch=2048,channels=4096,height=224,width=224", "encoder_layers_11_" + "x" * 90
    held = NamedTensor(name=tensor, role=TensorRole.INPUT, dtype="float32", shape=(1,))
    eager = Baseline(name="torch.compile", timing=timing_of(32e6), round_count=5, scatter=0.6)
    workload = workload_admission(name, baselines=(eager,), tensors=(held,), flops=10**12)
    _show(PrintableConsole(width=80), TASK, replace(ADMISSION, workloads=(workload,)))
    shown = capsys.readouterr().out
    lines = shown.splitlines()

    assert f"{name}: 1 compulsory bytes," in shown
    assert "  torch.compile 32 ms ±<0.1 % (of 5 rounds up to 60% slower)" in lines
    assert "…" not in shown
    assert tensor in "".join(line.split()[0] for line in lines if line.strip())


def test_spare_sizes_are_named_below_the_others() -> None:
    shown = io.StringIO()
    workloads = (
        workload_admission("rows=31", held_out=True, is_generated=True),
        workload_admission("rows=32", held_out=True, is_generated=True, is_spare=True),
    )
    _show(Console(file=shown, width=1000), TASK, replace(ADMISSION, workloads=workloads))
    lines = shown.getvalue().splitlines()
    assert any("rows=31 (held out)" in line for line in lines)
    assert "for plans that take none of the generated sizes: rows=32" in lines
    assert sum("rows=32" in line for line in lines) == 1


def test_what_a_plan_may_call_is_told() -> None:
    """The reference's own calls, or what the sidecar lists."""
    calls = GraphNode(
        name="y", op="aten.conv2d.default", arguments=(), keywords=(), dtype="", shape=()
    )
    admission = replace(ADMISSION, workloads=(workload_admission("rows=31", graph=(calls,)),))
    for task, told in (
        (TASK, "library: conv2d (as the reference does)"),
        (replace(TASK, library_ops=("linear", "bmm")), "library: linear, bmm (library_ops)"),
        (replace(TASK, library_ops=("none",)), "library: none (library_ops)"),
    ):
        shown = io.StringIO()
        _show(Console(file=shown, width=100), task, admission)
        assert told in shown.getvalue().splitlines()

"""`kfoundry admit`: run the reference, and show a task's names, baselines and tolerance."""

from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.main import EXIT_BAD_INPUT, EXIT_MISSING_PART
from kernel_foundry.cli.options import (
    degenerate_option,
    device_of,
    device_option,
    json_option,
    model_option,
    open_foundry,
    target_options,
)
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.cli.table import plain_table
from kernel_foundry.cli.work_lines import work_lines
from kernel_foundry.domain.admission import Admission, WorkloadAdmission
from kernel_foundry.domain.evaluation import Baseline
from kernel_foundry.domain.model_limit import limits_text
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.domain.task import Task
from kernel_foundry.plan import allowed_library_ops
from kernel_foundry.sdk.task_file import read_task
from kernel_foundry.sdk.verdict_text import duration, median_text

_TOLD_SCATTER: Final = 0.05
"""Relative difference between the rounds of a baseline from which on it is shown."""


@click.command()
@click.argument("task", type=click.Path(path_type=Path))
@device_option
@model_option
@degenerate_option
@json_option
@target_options
def command(
    task: Path,
    device: str,
    models: tuple[str, ...],
    admit_degenerate: bool,
    as_json: bool,
    **targets: Any,
) -> int:
    """Check TASK: names a plan may use, baselines, tolerance, and reasons against it.

    Exit code 0 when the task is admitted, 2 when it is refused, 3 when it is admitted and none of
    the models that `optimize` would ask can do it.

    \b
    kfoundry admit examples/softmax.py
    kfoundry admit my_op.py --device cuda:0 --json
    """  # noqa: D301  a backspace keeps click from joining the lines
    device, targets["evaluator"] = device_of(device, targets["evaluator"])
    loaded = read_task(task, admit_degenerate=admit_degenerate)
    with work_lines(), open_foundry(**targets) as foundry:
        admission = foundry.admit(loaded, device=device)
        able, limits = foundry.able_models(admission, models)
    if as_json:
        answer = {
            "admitted": admission.admitted,
            **to_plain(admission),
            "library": allowed_library_ops(loaded, admission),
            "models": able,
            "left_out": to_plain(limits),
        }
        print_json(answer)
    else:
        _show(PrintableConsole(), loaded, admission)
    if limits:
        print_text(f"{'error' if not able else 'warning'}: {limits_text(limits)}", err=True)
    if not admission.admitted:
        return EXIT_BAD_INPUT
    return 0 if able else EXIT_MISSING_PART


def _show(console: PrintableConsole, task: Task, admission: Admission) -> None:
    console.print(
        Text("admitted", "bold green") if admission.admitted else Text("refused", "bold red"),
        f"on {admission.device.id} ({admission.device.name})",
    )
    for refusal in admission.refusals:
        console.print(f"refused: {refusal}", style="red")
    for degeneracy in admission.degeneracies:
        console.print(f"degenerate: {degeneracy}", style="red")
    for warning in admission.warnings:
        console.print(f"warning: {warning}", style="yellow")
    for redundancy in admission.redundancies:
        console.print(f"redundant: {redundancy}", style="yellow")
    console.print(_tolerance_text(admission))
    console.print(_library_text(task, admission), highlight=False)
    spare = [w.workload for w in admission.workloads if w.is_spare]
    for workload in admission.workloads:
        if not workload.is_spare:
            _show_workload(console, workload)
    if spare:
        console.print(f"for plans that take none of the generated sizes: {'; '.join(spare)}")
    if admission.stages:
        spent = ", ".join(f"{s.stage} {s.wall_ms / 1e3:.1f}" for s in admission.stages)
        total = sum(s.wall_ms for s in admission.stages) / 1e3
        console.print(f"took {total:.1f} s: {spent}")
    names = plain_table("name", "role", "dtype", "shape or value")
    if admission.workloads:
        first = admission.workloads[0]
        for tensor in first.tensors:
            names.add_row(tensor.name, tensor.role.value, tensor.dtype, str(tensor.shape))
        for scalar in first.scalars:
            names.add_row(scalar.name, "scalar", "", scalar.literal)
    console.print(names)


def _show_workload(console: PrintableConsole, workload: WorkloadAdmission) -> None:
    if workload.held_out:  # never timed
        text = f"{workload.workload} (held out): {workload.minimal_bytes:,} compulsory bytes"
        console.print(text, highlight=False)
        return
    bound, estimate = workload.traffic_bound_ns, workload.arithmetic_estimate_ns
    console.print(
        f"{workload.workload}: {workload.minimal_bytes:,} compulsory bytes, "
        f"traffic bound {duration(bound)}; {workload.flops:,} FLOPs, "
        f"arithmetic estimate {duration(estimate)} ({workload.arithmetic_unit})",
        highlight=False,
    )
    for baseline in workload.baselines:
        console.print(f"  {_baseline_text(baseline)}", highlight=False)


def _baseline_text(baseline: Baseline) -> str:
    """A time with its interval, and the spread of its rounds."""
    text = f"{baseline.name} {median_text(baseline.timing)}"
    if baseline.scatter > _TOLD_SCATTER:
        text += f" (of {baseline.round_count} rounds up to {baseline.scatter:.0%} slower)"
    return text


def _library_text(task: Task, admission: Admission) -> str:
    """The operators that a plan may call as `ops.NAME`, and whether the task lists them."""
    names = ", ".join(allowed_library_ops(task, admission)) or "none"
    return f"library: {names} ({'library_ops' if task.library_ops else 'as the reference does'})"


def _tolerance_text(admission: Admission) -> str:
    tolerance, derivation = admission.tolerance, admission.derivation
    bounds = f"tolerance: rtol {tolerance.rtol:.2e}, atol {tolerance.atol:.2e}"
    if tolerance.output_shares:
        outputs = (
            f"output {i}: " + ("exact" if tolerance.is_exact(i) else f"{tolerance.of(i).rtol:.2e}")
            for i in range(len(tolerance.output_shares))
        )
        bounds += f" ({', '.join(outputs)})"
    if derivation is None:
        return bounds
    if derivation.source == "check":
        return "tolerance: none, the task's own check decides which outputs are right"
    if derivation.source != "measured":
        return f"{bounds}, as the task gives it"
    text = (
        f"{bounds} of the row's scale: rounding noise {derivation.noise:.1e} of"
        f" {derivation.workload} times {derivation.safety:g}, at least {derivation.floor:.0e} and"
        f" at most {derivation.ceiling:.0e}"
    )
    if derivation.inexact_because:
        text += "; its own result counts as exact"
    if derivation.tf32_noise:
        text += f"; a kernel in TF32 would err by {derivation.tf32_noise:.1e}"
    if derivation.split_noise:
        text += (
            "; a kernel that splits operands into two bfloat16 parts would err by "
            f"{derivation.split_noise:.1e}"
        )
    if derivation.tightened_by:
        text += f"; tightened until {derivation.tightened_by} fails"
    return text

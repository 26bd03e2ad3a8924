"""`kfoundry bench model`: the speed-up of the user's own model with exported winners."""

from pathlib import Path
from typing import Any

import click

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.options import json_option
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.cli.table import numbers, plain_table
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.model_bench.bench import DEFAULT_SAMPLES, bench_model
from kernel_foundry.sdk.model_bench.measurement import BenchResult, Form, ModelMeasurement, Times
from kernel_foundry.sdk.verdict_text import duration


@click.command()
@click.argument("model")
@click.option(
    "--swap",
    "swaps",
    multiple=True,
    required=True,
    metavar="FILE.py[:CLASS]",
    help="Exported file to swap in; may be given several times. CLASS names the modules that it "
    "replaces; without it, those whose source is the task's.",
)
@click.option(
    "--form",
    "forms",
    multiple=True,
    type=click.Choice([form.value for form in Form]),
    help="How to run the model; may be given several times.  [default: all that the device has but "
    "compiled-contiguous]",
)
@click.option(
    "--samples",
    type=click.IntRange(min=2, max=10_000),
    default=DEFAULT_SAMPLES,
    show_default=True,
    help="Of each form, with the winners and without.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0, min_open=True),
    help="Largest difference of an output from the plain model's, over the root mean square of the "
    "tensor.  [default: 1e-3; 2e-2 where outputs have 16 bits]",
)
@click.option(
    "--device",
    default="",
    metavar="DEVICE",
    help="Where the model runs: cpu, cuda or cuda:1.  [default: the GPU, where there is one]",
)
@json_option
def model(
    model: str,
    swaps: tuple[str, ...],
    forms: tuple[str, ...],
    samples: int,
    tolerance: float | None,
    device: str,
    as_json: bool,
) -> int:
    """Time MODEL end to end, with exported winners swapped in and without them.

    MODEL is FILE.py with a class Model, or FILE.py:CLASS; the class is made with the file's
    get_init_inputs() and called with its get_inputs(). It runs in a process of its own, but with
    all your permissions and without a sandbox: measure only what you would run yourself.

    Each form (eager, torch.compile, CUDA graph) takes turns with its counterpart. The estimate is
    Amdahl's, of the eager model: share of the swapped modules × their own speed-up. The exit code
    is 1 where outputs differ, a form does not run, or a file fell back to its reference.

    \b
    kfoundry export -o fast_norm.py
    kfoundry bench model model.py:Transformer --swap fast_norm.py
    kfoundry bench model model.py --swap fast_norm.py:LayerNorm --swap fast_mlp.py --json
    """  # noqa: D301  a backspace keeps click from joining the lines
    measured = bench_model(
        model,
        swaps,
        forms=[Form(form) for form in forms],
        samples=samples,
        tolerance=tolerance or 0.0,
        device=device,
    )
    problems = measured.problems()
    if as_json:
        print_json(_object(model, measured, problems))
    else:
        _show(measured, problems)
    return 1 if problems else 0


def _object(model: str, measured: ModelMeasurement, problems: tuple[str, ...]) -> dict[str, Any]:
    plain = to_plain(measured)
    for result, form in zip(measured.forms, plain["forms"], strict=True):
        form["speedup"] = result.speedup
    return {"model": model, **plain, "estimate": measured.estimate, "problems": list(problems)}


def _show(measured: ModelMeasurement, problems: tuple[str, ...]) -> None:
    console = PrintableConsole()
    figures = numbers("plain", "with winners", "speed-up", "error", "kernels / fell back")
    table = plain_table("form", *figures)
    for result in measured.forms:
        calls = f"{sum(c.kernel for c in result.calls)} / {sum(c.reference for c in result.calls)}"
        table.add_row(
            result.form.value,
            _time(result.plain),
            _time(result.swapped),
            "–" if result.speedup is None else f"{result.speedup:.3f}",
            "–" if result.swapped_error is None else f"{result.swapped_error:.1e}",
            "–" if result.failure else calls,
        )
    console.print(table)
    swaps = plain_table("file", *numbers("modules", "share", "speed-up"))
    for swap in measured.swaps:
        name = one_line(Path(swap.file).name)
        swaps.add_row(name, str(len(swap.paths)), f"{swap.share:.1%}", f"{swap.speedup:.2f}")
    console.print(swaps)
    print_text(_estimate_text(measured))
    if advised := advice(measured):
        print_text(advised)
    for problem in problems:
        print_text(one_line(problem), err=True)


def _time(times: Times | None) -> str:
    if times is None:
        return "–"
    return f"{duration(times.median_ns)} ({duration(times.low_ns)}–{duration(times.high_ns)})"


def advice(measured: ModelMeasurement) -> str:
    """Return what to do if a compiled model is slower with winners; "" if it is not."""
    speedups = {result.form: result.speedup for result in measured.forms}
    compiled, contiguous = (speedups.get(form) for form in (Form.COMPILED, Form.CONTIGUOUS))
    if compiled is None or compiled >= 1:
        return ""
    why = (
        "The compiled model is slower with the winners: torch.compile fuses PyTorch's own operators"
        " into their neighbours, and may keep channels last, which kernels do not take. "
    )
    if contiguous is None:
        return f"{why}Where the model has convolutions, try --form compiled-contiguous."
    if contiguous < 1:
        return f"{why}Compile the model without the winners."
    return (
        f"{why}It is not with torch.compile(model, options={{'layout_optimization': False}}):"
        " compare the times of both."
    )


def _estimate_text(measured: ModelMeasurement) -> str:
    eager: BenchResult | None = next((f for f in measured.forms if f.form is Form.EAGER), None)
    found = eager.speedup if eager else None
    beside = "" if found is None else f"; measured: {found:.3f}"
    return f"{measured.device}: speed-up by Amdahl's law {measured.estimate:.3f} (eager){beside}"

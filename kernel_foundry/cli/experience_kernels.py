"""`kfoundry experience kernels`: the winners that later runs start from."""

from typing import Any

import click
from rich.table import Table
from rich.text import Text

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.options import json_option, language_option, open_foundry, target_options
from kernel_foundry.cli.output import print_json
from kernel_foundry.cli.table import numbers, whole
from kernel_foundry.domain.language import Language
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.shelf import ShelfKernel, shelf


@click.command("kernels")
@language_option("Only kernels in this language.")
@click.option(
    "--like",
    metavar="RUN",
    help="Only kernels for a reference similar to that of RUN, most similar first, as a run of its "
    "task would find them.",
)
@json_option
@target_options
def kernels(language: str | None, like: str | None, as_json: bool, **targets: Any) -> int:
    """List verified kernels: winners that later runs of similar tasks start from.

    Each was measured again at the end of its run, passed, and is fully trusted. `runs delete` also
    removes its kernel. `optimize --without shelf` uses none.

    \b
    kfoundry experience kernels --language cuda
    kfoundry experience kernels --like relu-20260101-120000
    """  # noqa: D301  a backspace keeps click from joining the lines
    chosen = Language(language) if language else None
    with open_foundry(**targets) as foundry:
        found = foundry.ask_archive(lambda a: shelf(a, language=chosen, like=like))
    if as_json:
        print_json([_object(kernel) | {"likeness": like and kernel.likeness} for kernel in found])
        return 0
    figures = numbers("best", "bits", "like")
    table = Table(whole("run"), "language", "device", *figures, "task and operators")
    for kernel in found:
        spec = kernel.run.spec
        operators = Text(one_line(", ".join(spec.operators[:_MOST_LISTED])), style="dim")
        table.add_row(
            spec.name,
            spec.language.value,
            spec.device,
            _number(kernel.winner.evaluation.speedup, "×"),
            _number(_bits(kernel), ""),
            "-" if like is None else f"{kernel.likeness:.2f}",
            Text.assemble(one_line(spec.task.name), "\n", operators),
        )
    PrintableConsole().print(table if found else "no such kernel")
    return 0


_MOST_LISTED = 6


def _object(kernel: ShelfKernel) -> dict[str, object]:
    spec, winner = kernel.run.spec, kernel.winner
    return {
        "run": spec.name,
        "task": spec.task.name,
        "language": spec.language.value,
        "device": spec.device,
        "candidate": winner.candidate.digest,
        "speedup": winner.evaluation.speedup,
        "effective_bits": _bits(kernel),
        "operators": list(spec.operators),
    }


def _bits(kernel: ShelfKernel) -> float | None:
    """Of the least exact workload; None where none was audited."""
    precisions = [w.precision for w in kernel.winner.evaluation.workloads if w.precision]
    return min((p.effective_bits for p in precisions), default=None)


def _number(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.2f}{unit}"

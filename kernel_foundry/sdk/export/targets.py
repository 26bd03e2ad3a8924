"""What a winner can be exported as: one table, each row with what writes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kernel_foundry.exported_form import FormEntry
from kernel_foundry.sdk.export.kernelbench_file import kernelbench_file
from kernel_foundry.sdk.export.popcorn_file import popcorn_file, popcorn_source
from kernel_foundry.sdk.export.solution_file import (
    flashinfer_file,
    flashinfer_source,
    sol_file,
    sol_source,
)
from kernel_foundry.sdk.export.torch_file import torch_file
from kernel_foundry.sdk.export.winner import Winner


class Packing(Protocol):
    """Makes the file that is handed out of the Python text that was tried."""

    def __call__(self, text: str, winner: Winner, /, *, module: str, problem: str) -> str:
        """Return the file, for a module's name and the name of the problem there."""


def as_it_is(text: str, _winner: Winner, /, *, module: str, problem: str) -> str:
    """Return the text."""
    del module, problem
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One form of export."""

    summary: str
    file: str
    """Usual name of the file; "{task}" stands for the task's."""
    entry: FormEntry
    """What is tried before the file is handed out."""
    source: Callable[[Sequence[Winner], str], str]
    """Writes the Python text, for winners and the name that it will be imported by."""
    packed: Packing = as_it_is


TARGETS: Final[dict[str, Target]] = {
    "torch": Target(
        summary="a Python module with an operator, Module and swap",
        file="fast_{task}.py",
        entry=FormEntry.MODULE,
        source=torch_file,
    ),
    "kernelbench": Target(
        summary="KernelBench's file with ModelNew",
        file="fast_{task}.py",
        entry=FormEntry.MODEL_NEW,
        source=kernelbench_file,
    ),
    "popcorn": Target(
        summary="GPU MODE's submission with custom_kernel",
        file="submission.py",
        entry=FormEntry.CUSTOM_KERNEL,
        source=popcorn_source,
        packed=popcorn_file,
    ),
    "flashinfer": Target(
        summary="a solution for FlashInfer Trace",
        file="solution.json",
        entry=FormEntry.RUN,
        source=flashinfer_source,
        packed=flashinfer_file,
    ),
    "sol": Target(
        summary="a solution for SOL-ExecBench",
        file="solution.json",
        entry=FormEntry.RUN,
        source=sol_source,
        packed=sol_file,
    ),
}

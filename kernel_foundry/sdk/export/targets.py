"""What a winner can be exported as: one table, each row with what writes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kernel_foundry.exported_form import FormEntry
from kernel_foundry.sdk.export.kernelbench_file import kernelbench_file
from kernel_foundry.sdk.export.torch_file import torch_file
from kernel_foundry.sdk.export.winner import Winner


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
}

"""The targets of an export: one table, each row with the functions that write it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kernel_foundry.exported_form import FormEntry
from kernel_foundry.sdk.export.cpp_folder import cpp_folder
from kernel_foundry.sdk.export.hf_folder import hf_folder
from kernel_foundry.sdk.export.kernelbench_file import kernelbench_file
from kernel_foundry.sdk.export.popcorn_file import popcorn_file, popcorn_source
from kernel_foundry.sdk.export.pybind_folder import pybind_folder
from kernel_foundry.sdk.export.solution_file import (
    flashinfer_file,
    flashinfer_source,
    sol_file,
    sol_source,
)
from kernel_foundry.sdk.export.t4_file import t4_file
from kernel_foundry.sdk.export.torch_file import torch_file
from kernel_foundry.sdk.export.vllm_folder import vllm_folder
from kernel_foundry.sdk.export.winner import Winner


class Packer(Protocol):
    """Makes the exported file from the Python text that was tested."""

    def __call__(self, text: str, winner: Winner, /, *, module: str, problem: str) -> str:
        """Return the file, for a module's name and the name of the problem there.

        Raises:
            InvalidArgumentError: the target has no problem of such a name.
        """


class Folder(Protocol):
    """Makes a folder from the winners and the Python text that was tested."""

    def __call__(
        self, text: str, winners: Sequence[Winner], /, *, module: str, problem: str
    ) -> Mapping[str, str]:
        """Return the files by their paths in the folder.

        Raises:
            InvalidArgumentError: the target cannot have these winners, and why.
        """


def unchanged(text: str, _winner: Winner, /, *, module: str, problem: str) -> str:
    """Return the text."""
    del module, problem
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One target of an export."""

    summary: str
    file: str
    """Usual name of the file or folder; "{task}" stands for the task's."""
    source: Callable[[Sequence[Winner], str], str] = torch_file
    """Writes the Python text, for winners and the name that it will be imported by."""
    entry: FormEntry = FormEntry.MODULE
    """What of that text is tried before the file is handed out."""
    packed: Packer = unchanged
    folder: Folder | None = None
    """Makes a folder; None for a target that is one file."""


TARGETS: Final[dict[str, Target]] = {
    "torch": Target(
        summary="a Python module with an operator, Module and swap",
        file="fast_{task}.py",
    ),
    "kernelbench": Target(
        summary="KernelBench's file with ModelNew",
        file="fast_{task}.py",
        source=kernelbench_file,
        entry=FormEntry.MODEL_NEW,
    ),
    "popcorn": Target(
        summary="GPU MODE's submission with custom_kernel",
        file="submission.py",
        source=popcorn_source,
        entry=FormEntry.CUSTOM_KERNEL,
        packed=popcorn_file,
    ),
    "flashinfer": Target(
        summary="a solution for FlashInfer Trace",
        file="solution.json",
        source=flashinfer_source,
        entry=FormEntry.RUN,
        packed=flashinfer_file,
    ),
    "sol": Target(
        summary="a solution for SOL-ExecBench",
        file="solution.json",
        source=sol_source,
        entry=FormEntry.RUN,
        packed=sol_file,
    ),
    "cpp": Target(
        summary="a C++ library (folder) that needs the CUDA driver alone",
        file="fast_{task}",
        folder=cpp_folder,
    ),
    "pybind": Target(
        summary="a Python package (folder) of that library, for arrays of any library",
        file="fast_{task}",
        folder=pybind_folder,
    ),
    "hf": Target(
        summary="a project (folder) for Hugging Face's kernel-builder",
        file="fast_{task}",
        folder=hf_folder,
    ),
    "vllm": Target(
        summary="a plug-in package (folder) for vLLM that registers the operator",
        file="fast_{task}",
        folder=vllm_folder,
    ),
    "t4": Target(
        summary="configuration and times of the first run's winner as a T4 result of autotuners",
        file="t4_{task}.json",
        packed=t4_file,
    ),
}

"""Foreign kernels: Python or C++ sources that run as they are, in a process of their own kind.

They are judged by the rules of our own candidates as far as these apply to a program that has a
process to itself; the verdict says `trust: foreign`, and what could not be excluded.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kernel_foundry.domain.attestation import WorkloadSeeds
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.task import Task

MOST_FILES: Final = 64
LONGEST_FOREIGN: Final = 1 << 20
"""Most characters of all files together."""
FOREIGN_LIMITS: Final = EvaluationLimits(build_seconds=180.0, run_seconds=120.0)
"""A compiler may run when the file is imported, and again in the first call."""


class ForeignForm(StrEnum):
    """How what was written for another harness is called."""

    MODEL_NEW = "model_new"
    """A class `ModelNew`, constructed and called as the reference's `Model` (KernelBench)."""
    CUSTOM_KERNEL = "custom_kernel"
    """A function of one argument, which has all inputs (GPU MODE)."""
    FUNCTION = "function"
    """A function of the inputs that returns the outputs (FlashInfer, SOL-ExecBench)."""
    FUNCTION_INTO_OUTPUTS = "function_into_outputs"
    """A function of the inputs and the outputs, which it writes (the same suites)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFile:
    """One source file."""

    path: str
    """Relative to the folder of all files, with slashes."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSource:
    """The sources of one foreign kernel."""

    form: ForeignForm
    entry_file: str
    """Path of the file that has the entry: Python is imported, C++ and CUDA are built."""
    entry_name: str
    """Of the class or function."""
    files: tuple[ForeignFile, ...]
    compiler_flags: tuple[str, ...] = ()
    """For C++."""
    cuda_flags: tuple[str, ...] = ()
    """For CUDA."""

    @property
    def digest(self) -> str:
        """SHA-256 hex digest of all that is in it."""
        files = tuple(part for file in self.files for part in (file.path, file.text))
        flags = (*self.compiler_flags, "", *self.cuda_flags)
        head = (self.form.value, self.entry_file, self.entry_name)
        return content_digest("foreign", *head, *flags, "", *files)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRequest:
    """One foreign kernel to be judged."""

    task: Task
    device: str
    """As in `EvaluationRequest`; "" takes the evaluator's first device."""
    source: ForeignSource
    limits: EvaluationLimits = FOREIGN_LIMITS
    fresh_baselines: bool = False
    """Time the baselines again, beside the candidate."""
    seeds: tuple[WorkloadSeeds, ...] = ()
    """Draw from these; workloads that are not named get secret ones."""

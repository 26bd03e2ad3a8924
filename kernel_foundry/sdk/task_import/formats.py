"""The formats that are read, and which of them a folder has."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.task_import.cuda_l1 import is_cuda_l1, read_cuda_l1
from kernel_foundry.sdk.task_import.entry import ImportEntry
from kernel_foundry.sdk.task_import.flashinfer import is_flashinfer, read_flashinfer
from kernel_foundry.sdk.task_import.gpu_mode import is_gpu_mode, read_gpu_mode
from kernel_foundry.sdk.task_import.kernelbench import is_kernelbench, read_kernelbench
from kernel_foundry.sdk.task_import.robust_kbench import is_robust_kbench, read_robust_kbench
from kernel_foundry.sdk.task_import.suite_files import SuiteFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How one format is recognised and read."""

    marks: Callable[[SuiteFiles], bool]
    """Whether the files have its marks."""
    read: Callable[[SuiteFiles], Iterable[ImportEntry]]
    """Its entries, those that cannot be imported among them."""


_PLAIN_FILES: Final = "kernelbench"
"""Any folder of Python files; other formats have such files beside their own."""

FORMATS: Final[dict[str, Format]] = {
    _PLAIN_FILES: Format(marks=is_kernelbench, read=read_kernelbench),
    "cuda-l1": Format(marks=is_cuda_l1, read=read_cuda_l1),
    "robust-kbench": Format(marks=is_robust_kbench, read=read_robust_kbench),
    "gpu-mode": Format(marks=is_gpu_mode, read=read_gpu_mode),
    "flashinfer": Format(marks=is_flashinfer, read=read_flashinfer),
}
"""By the name that `--format` takes; docs/suites.md explains them."""


def format_of(files: SuiteFiles) -> str:
    """Return the name of the format that the files have.

    Raises:
        InvalidArgumentError: they have none, or several.
    """
    found = [name for name, known in FORMATS.items() if known.marks(files)]
    if len(found) > 1 and _PLAIN_FILES in found:
        found.remove(_PLAIN_FILES)
    if len(found) == 1:
        return found[0]
    has = f"has tasks of {' and of '.join(found)}" if found else "has no tasks of a known format"
    raise InvalidArgumentError(f"{files.root}: {has}; --format takes {', '.join(FORMATS)}")

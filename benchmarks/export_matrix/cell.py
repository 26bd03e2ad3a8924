"""One winner in one target: written, tried, and checked against the target's format."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kernel_foundry.domain.plain import to_plain
from kernel_foundry.errors import ExportRefusedError, InvalidArgumentError
from kernel_foundry.exported_form import FormEntry
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.export.export import ExportResult, checked_file
from kernel_foundry.sdk.export.targets import TARGETS
from kernel_foundry.sdk.export.winner import Winner
from tests.export.file_schema import check_kernelbench, check_popcorn
from tests.export.project_schema import (
    check_cmake,
    check_kernel_builder,
    check_python_project,
    check_t4,
)
from tests.export.solution_schema import check_flashinfer, check_sol


@dataclass(slots=True, kw_only=True)
class Cell:
    """What a target made of a winner."""

    outcome: str
    """"right", "refused" (the target does not take it) or "failed"."""
    reason: str = ""
    """Of the last two."""
    bytes: int = 0
    """Of the file, or of all files of the folder."""
    checked: str = ""
    """What the format was checked against; empty where it is ours."""
    ran: str = ""
    """What ran of it."""
    host_ns: float | None = None
    """Time that a call keeps the host, median; on a CPU: beyond the launches."""
    workloads: list[dict[str, Any]] = field(default_factory=list)
    """Of the file that was tried."""
    folder: Mapping[str, str] = field(default_factory=dict)
    """Files by their paths, of a target that is one."""


def _python(text: str) -> None:
    compile(text, "exported", "exec")


def _json_of(check: Callable[[Any], object]) -> Callable[[str], object]:
    return lambda text: check(json.loads(text))


def _cmake(files: Mapping[str, str]) -> None:
    check_cmake(files["CMakeLists.txt"], files)


def _binding(files: Mapping[str, str]) -> None:
    check_python_project(files, "scikit_build_core.build")
    _cmake(files)


def _plugin(files: Mapping[str, str]) -> None:
    check_python_project(files, "setuptools.build_meta")


_FILES: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "torch": ("", _python),
    "kernelbench": ("KernelBench's file", check_kernelbench),
    "popcorn": ("GPU MODE's submission", check_popcorn),
    "flashinfer": ("the schema of FlashInfer Trace", _json_of(check_flashinfer)),
    "sol": ("the schema of SOL-ExecBench", _json_of(check_sol)),
    "t4": ("the schema of T4", _json_of(check_t4)),
}
_FOLDERS: Final[dict[str, tuple[str, Callable[[Mapping[str, str]], object]]]] = {
    "cpp": ("a project of CMake", _cmake),
    "pybind": ("a project of scikit-build-core", _binding),
    "hf": ("the schema of kernel-builder", check_kernel_builder),
    "vllm": ("a project of setuptools", _plugin),
}


class Exporter:
    """Exports winners; a Python text that several targets share is tried once.

    Args:
        foundry: What judges a winner again whose file seems slower.
    """

    def __init__(self, foundry: Foundry) -> None:
        self._foundry = foundry
        self._tried: dict[tuple[FormEntry, str], ExportResult] = {}

    def cell(self, winner: Winner, target: str, module: str) -> Cell:
        """Return a winner in a target, under the name `module`."""
        form = TARGETS[target]
        name = winner.record.task.name
        try:
            text = form.source([winner], module)
            folder = form.folder(text, [winner], module=module, problem=name) if form.folder else {}
        except InvalidArgumentError as error:
            return Cell(outcome="refused", reason=str(error))
        try:
            exported = self._exported(target, text, winner)
        except ExportRefusedError as error:
            return Cell(outcome="failed", reason=str(error))
        packed = form.packed(text, winner, module=module, problem=name)
        written = list(folder.values()) or [packed]
        checked, check = _FOLDERS[target] if folder else _FILES[target]
        try:
            check(folder if folder else packed)  # type: ignore[arg-type]  # each of its own kind
        except (AssertionError, KeyError, ValueError) as error:
            return Cell(outcome="failed", reason=f"the format: {error!r}")
        results = [workload.result for workload in exported.workloads]
        is_tried = target in ("torch", "kernelbench", "popcorn", "flashinfer", "sol")
        return Cell(
            outcome="right",
            bytes=sum(len(each.encode()) for each in written),
            checked=checked,
            ran=f"{form.entry.value} in a fresh process" if is_tried else "",
            host_ns=max(r.host_ns for r in results) if is_tried else None,
            workloads=[to_plain(w) for w in exported.workloads] if is_tried else [],
            folder=folder,
        )

    def _exported(self, target: str, text: str, winner: Winner) -> ExportResult:
        form = TARGETS[target]
        key = (form.entry, text)
        if key not in self._tried:
            self._tried[key] = checked_file(self._foundry, form, text, [winner])
        return self._tried[key]

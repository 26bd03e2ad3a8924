"""Captures a user's program: runs it once, ranks its modules, writes the best as task files.

The program runs in a process of its own (`process.py`).
"""

import math
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.name import file_stem
from kernel_foundry.domain.plain import from_json
from kernel_foundry.errors import InvalidArgumentError, ProcessLostError
from kernel_foundry.quantity_text import counted
from kernel_foundry.scratch import scratch_folder
from kernel_foundry.sdk.capture.captured import CapturedModule, CapturedProgram, CapturedTensor
from kernel_foundry.sdk.local.evaluator import traffic_bound_ns
from kernel_foundry.sdk.task_file import sidecar_path

DEFAULT_TASKS: Final = 8
DEFAULT_CALLS: Final = 20
_LEAST_SHARE: Final = 0.005
_MOST_PATHS: Final = 3
_LONGEST_STEM: Final = 60
"""Characters of a task file's name, before a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureProposal:
    """A module of the program, and what a faster one could gain."""

    module: CapturedModule
    share: float
    """Of the program's time in modules. A module's share is also in those of modules around it."""
    bound_ns: float | None
    """Traffic bound of all its calls; None where the device's bandwidth is not known."""
    file: str = ""
    """The task file that was written; "" for none."""

    @property
    def distance(self) -> float:
        """Share of the module's time that is above the bound; 1 where no bound is known."""
        total = self.module.total_ns
        if self.bound_ns is None or not total:
            return 1.0
        return max(0.0, 1.0 - self.bound_ns / total)

    @property
    def gain(self) -> float:
        """Most of the program's time that a kernel can save: share × distance."""
        return self.share * self.distance


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """What came out of one run of a program."""

    exit_code: int
    """The program's."""
    total_ns: float
    """Of all calls of modules that no other module made."""
    proposals: tuple[CaptureProposal, ...]
    """The largest gain first."""


def capture_program(
    program: str,
    arguments: Sequence[str] = (),
    *,
    devices: Sequence[DeviceSpec] = (),
    out: Path,
    tasks: int = DEFAULT_TASKS,
    calls: int = DEFAULT_CALLS,
    least_share: float = _LEAST_SHARE,
    device: str = "",
    output_to_stderr: bool = False,
) -> Capture:
    """Run a program once in a process of its own, and write tasks for what is worth optimising.

    Args:
        program: "FILE.py", a script, or "FILE.py:CLASS", of which `CLASS(*get_init_inputs())` is
            called with `get_inputs()`.
        arguments: Of a script.
        devices: Of which the bandwidth is known; on others there are no bounds.
        out: Folder for the task files; files that are there stay.
        tasks: Most task files to write.
        calls: How often the class is called.
        least_share: Of the program's time; modules that take less are left out.
        device: Where the class runs, such as "cpu" or "cuda:0"; "" is the GPU where there is one.
        output_to_stderr: Send what the program prints to standard error.

    Raises:
        InvalidArgumentError: there is no such file, it lacks the class or `get_inputs`, a class has
            arguments, or the folder cannot be written.
        ProcessLostError: the program ended its process before what was recorded was written.
    """
    file, model = file_and_class(program)
    if model and arguments:
        raise InvalidArgumentError(
            f"{program} takes no arguments, got {' '.join(arguments)}; options of capture stand"
            " before the program",
            field="arguments",
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgumentError(f"{out}: {error.strerror}", field="out") from error
    run = (str(least_share), str(calls), device, str(file), model, *arguments)
    captured = _run(program, run, output_to_stderr=output_to_stderr)
    if captured.refusal:
        raise InvalidArgumentError(captured.refusal, field="program")
    proposals = sorted(
        (
            CaptureProposal(
                module=module,
                share=module.total_ns / captured.total_ns if captured.total_ns else 0.0,
                bound_ns=_bound_ns(module, devices),
            )
            for module in captured.modules
        ),
        key=lambda proposal: proposal.gain,
        reverse=True,
    )
    return Capture(
        exit_code=captured.exit_code,
        total_ns=captured.total_ns,
        proposals=_written(proposals, program, out, tasks),
    )


def file_and_class(program: str) -> tuple[Path, str]:
    """Return file and class of "FILE.py:CLASS"; the class is "" where none is named.

    Raises:
        InvalidArgumentError: there is no such file.
    """
    path, _, model = program.rpartition(":")
    if not path or not model.isidentifier():
        path, model = program, ""
    file = Path(path)
    if not file.is_file():
        raise InvalidArgumentError(
            f"{file}: no such file; expected FILE.py or FILE.py:CLASS", field="program"
        )
    return file, model


def _run(program: str, arguments: Sequence[str], *, output_to_stderr: bool) -> CapturedProgram:
    with scratch_folder("capture") as folder:
        report = Path(folder, "captured.json")
        ended = subprocess.run(
            [
                sys.executable, "-m", "kernel_foundry.sdk.capture.process",
                str(report), *arguments,
            ],
            # Compiled models run eagerly, so that their modules are seen.
            env={**os.environ, "TORCHDYNAMO_DISABLE": "1"},
            stdout=sys.stderr if output_to_stderr else None,
            check=False,
        )  # fmt: skip
        if not report.exists():
            raise ProcessLostError(
                f"{program} ended its process (exit code {ended.returncode}) before its modules"
                " were recorded",
                cause=f"exit code {ended.returncode}",
            )
        return from_json(CapturedProgram, report.read_text(encoding="utf-8"))


def _bound_ns(module: CapturedModule, devices: Sequence[DeviceSpec]) -> float | None:
    """The traffic bound of all calls of a module, on the device that it ran on."""
    for device in devices:
        is_cpu = module.device == "cpu" and device.language is Language.SYCL
        if (is_cpu or device.id == module.device) and device.peaks is not None:
            return sum(
                calls.count
                * traffic_bound_ns(
                    device.peaks,
                    cache_bytes=device.cache_bytes,
                    read_bytes=module.weight_bytes + _bytes(calls.inputs),
                    written_bytes=_bytes(calls.outputs),
                )
                for calls in module.calls
            )
    return None


def _bytes(tensors: Sequence[CapturedTensor]) -> int:
    return sum(math.prod(tensor.shape) * tensor.itemsize for tensor in tensors)


def _written(
    proposals: Sequence[CaptureProposal], program: str, out: Path, tasks: int
) -> tuple[CaptureProposal, ...]:
    done: list[CaptureProposal] = []
    left = tasks
    for proposal in proposals:
        if left and proposal.module.reference and proposal.gain:
            done.append(replace(proposal, file=str(_write(proposal, program, out))))
            left -= 1
        else:
            done.append(proposal)
    return tuple(done)


def _write(proposal: CaptureProposal, program: str, out: Path) -> Path:
    path = _free_path(out, proposal.module.kind)
    text = f'"""{_docstring(proposal, program)}\n"""\n\n{proposal.module.reference}'
    for file, written in ((path, text), (sidecar_path(path), proposal.module.sidecar)):
        with file.open("x", encoding="utf-8") as new:  # nothing that is there, and no link
            new.write(written)
    return path


def _free_path(out: Path, kind: str) -> Path:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", file_stem(kind)).lower()
    name, number = words[:_LONGEST_STEM], 2
    while any(map(os.path.lexists, (out / f"{name}.py", sidecar_path(out / f"{name}.py")))):
        name, number = f"{words[:_LONGEST_STEM]}_{number}", number + 1
    return out / f"{name}.py"


def _docstring(proposal: CaptureProposal, program: str) -> str:
    module = proposal.module
    count = sum(calls.count for calls in module.calls)
    more = len(module.paths) - _MOST_PATHS
    places = ", ".join(path or "the whole model" for path in module.paths[:_MOST_PATHS])
    lines = [
        f"{module.call}, captured from {program}.",
        "",
        f"Places: {places}{f' and {more} more' if more > 0 else ''}.",
        f"{counted(count, 'call')} took {proposal.share:.1%} of the program's time in modules "
        f" ({module.device}, eager).",
    ]
    if proposal.bound_ns is not None:
        lines.append(
            f"Their compulsory traffic takes {proposal.bound_ns / module.total_ns:.1%} of that; a"
            f" kernel can save {proposal.gain:.1%} of the program at most."
        )
    lines += [
        f"Workload {calls.workload}: {counted(calls.count, 'call')},"
        f" {proposal.share * calls.total_ns / module.total_ns:.1%} of the program."
        for calls in module.calls
        if calls.workload
    ]
    lines += [f"Note: {note}." for note in module.notes]
    return "\n".join(lines).replace("\\", "/").replace('"', "'")

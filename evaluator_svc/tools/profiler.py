"""Runs ncu on a command, and reads its report: metrics of each launch, samples of each line."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from evaluator_svc.tools.profile_report import METRICS, LaunchMetrics, launches
from evaluator_svc.tools.source_page import LineSamples, SourceLine, line_samples
from evaluator_svc.tools.tool_run import ToolRun, absent, find, run
from kernel_foundry.scratch import scratch_folder

NCU: Final = "ncu"
_VARIABLE: Final = "KERNEL_FOUNDRY_NCU"
_ERROR: Final = re.compile(r"==ERROR== ([^\n]{1,300})")
_CLOSED: Final = {
    "ERR_NVGPUCTRPERM": "this user may not read them; the driver's option "
    "NVreg_RestrictProfilingToAdminUsers=0 opens them",
    "LibraryNotLoaded": "the driver has no counters here, as in a sandboxed container",
}
"""Codes in the tool's errors after which no later try can succeed."""
_DRIVER_OPTIONS: Final = Path("/proc/driver/nvidia/params")
_FOR_ADMINS: Final = "RmProfilingAdminOnly: 1"
_READING_SHARE: Final = 0.3
"""Share of the seconds that is kept for reading the report's two pages."""
_MAX_LAUNCHES: Final = 16
LEAST_SECONDS: Final = 8.0
"""With less the tool is not started: it takes 4 to 5 s for a short kernel, and 2 s for its report.
Source: measured on an H100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilerResult:
    """The tool's measurements, or why there are none."""

    launches: tuple[LaunchMetrics, ...] = ()
    """In order."""
    lines: Mapping[SourceLine, LineSamples] = field(default_factory=dict)
    reason: str = ""
    """Empty when there are launches."""
    is_closed: bool = False
    """Whether no later try can succeed."""


def closed_counters() -> str:
    """Return why ncu cannot be used here, as far as is known without a try; empty: it may be."""
    if find(NCU, _VARIABLE) is None:
        return absent(NCU, _VARIABLE).message
    try:
        options = _DRIVER_OPTIONS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    if _FOR_ADMINS in options and os.geteuid() != 0:
        return f"{NCU}: {_CLOSED['ERR_NVGPUCTRPERM']}"
    return ""


def profile(
    command: Sequence[str], environment: Mapping[str, str], *, seconds: float
) -> ProfilerResult:
    """Return the tool's measurements of a command's kernels; never raises for the tool.

    Args:
        command: What is run; its kernels count from cuProfilerStart on.
        environment: All of its environment.
        seconds: What all of it may take.
    """
    tool = find(NCU, _VARIABLE)
    if tool is None:
        return ProfilerResult(reason=absent(NCU, _VARIABLE).message, is_closed=True)
    with scratch_folder("profile") as folder:
        report = str(Path(folder, "profile.ncu-rep"))
        options = (
            *("--force-overwrite", "--export", report, "--profile-from-start", "off"),
            *("--clock-control", "none", "--cache-control", "all"),
            *("--launch-count", str(_MAX_LAUNCHES), "--metrics", ",".join(METRICS)),
        )
        try:
            measuring_seconds = (1 - _READING_SHARE) * seconds
            done = run((tool, *options, *command), environment, seconds=measuring_seconds)
            pages = _pages(tool, report, environment, seconds=_READING_SHARE * seconds / 2)
        except OSError as error:
            return ProfilerResult(reason=f"{NCU} was not used: {error.strerror}")
    measured = launches(pages[0])
    if not measured:
        return _failure(done, seconds)
    return ProfilerResult(launches=measured, lines=line_samples(pages[1]))


def _pages(
    tool: str, report: str, environment: Mapping[str, str], *, seconds: float
) -> tuple[str, str]:
    """The raw and the source page of a report, each read within `seconds`; else empty."""
    if not Path(report).exists():
        return "", ""
    raw, source = (
        run((tool, "--import", report, "--csv", *options), environment, seconds=seconds).output
        for options in (
            ("--page", "raw", "--print-units", "base"),
            ("--page", "source", "--print-source", "cuda,sass"),
        )
    )
    return raw, source


def _failure(done: ToolRun, seconds: float) -> ProfilerResult:
    if done.was_stopped:
        return ProfilerResult(
            reason=f"{NCU} measured nothing within {seconds:.0f} s, and was ended"
        )
    for code, why in _CLOSED.items():
        if code in done.output:
            return ProfilerResult(reason=f"{NCU}: {code}: {why}", is_closed=True)
    said = _ERROR.search(done.output)
    why = said[1].strip() if said else f"exit status {done.exit_status}, no kernel measured"
    return ProfilerResult(reason=f"{NCU} failed: {_printable(why)}")


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)

"""Runs compute-sanitizer on a command: illegal accesses, races and barriers, with their lines."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from evaluator_svc.tools.sanitizer_report import Report, error_count, reports
from evaluator_svc.tools.tool_run import absent, find, note, run
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity

_NAME: Final = "compute-sanitizer"
_VARIABLE: Final = "KERNEL_FOUNDRY_COMPUTE_SANITIZER"
_PRINTED: Final = 200
"""Errors that the tool prints; it counts the others."""
_MAX_FINDINGS: Final = 5


class SanitizerTool(StrEnum):
    """What is looked for."""

    MEMORY = "memcheck"
    RACES = "racecheck"
    BARRIERS = "synccheck"
    UNINITIALIZED = "initcheck"


_OPTIONS: Final = {SanitizerTool.RACES: ("--racecheck-report", "analysis")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A tool's results on a command."""

    findings: tuple[Finding, ...]
    """Never empty: of errors, or a note."""
    has_errors: bool
    is_complete: bool
    """The tool is there and ran to its end, or found errors."""


def sanitize(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    check: SanitizerTool = SanitizerTool.MEMORY,
    seconds: float = 60.0,
    tensor_bytes: Mapping[str, int] | None = None,
) -> tuple[Finding, ...]:
    """Return the tool's findings while the command runs, as `inspect`; never empty."""
    return inspect(
        command, environment, check=check, seconds=seconds, tensor_bytes=tensor_bytes
    ).findings


def inspect(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    check: SanitizerTool = SanitizerTool.MEMORY,
    seconds: float = 60.0,
    tensor_bytes: Mapping[str, int] | None = None,
) -> Inspection:
    """Let the tool watch the command; never raises for the tool.

    Args:
        command: What is run.
        environment: All of its environment.
        check: What is looked for.
        seconds: After these the tool is ended.
        tensor_bytes: Sizes of the tensors by name, each an allocation of its own, to tell which of
            them was overrun.
    """
    tool = find(_NAME, _VARIABLE)
    if tool is None:
        return _unused(absent(_NAME, _VARIABLE))
    options = (
        *("--tool", check.value, "--print-limit", str(_PRINTED), "--show-backtrace", "device"),
        *_OPTIONS.get(check, ()),
    )
    try:
        done = run((tool, *options, *command), environment, seconds=seconds)
    except OSError as error:
        return _unused(note(f"{_NAME} was not used: {error.strerror}"))
    found = sanitizer_findings(done.output, tensor_bytes or {})
    if found:
        return Inspection(findings=found, has_errors=True, is_complete=True)
    if done.was_stopped:
        said = f"{_NAME} {check.value} found nothing within {seconds:.0f} s, and was ended"
        return _unused(note(said))
    if "COMPUTE-SANITIZER" not in done.output or "Internal Sanitizer Error" in done.output:
        return _unused(note(f"{_NAME} {check.value} failed with exit status {done.exit_status}"))
    nothing = note(f"{_NAME} {check.value} found nothing")
    return Inspection(findings=(nothing,), has_errors=False, is_complete=True)


def _unused(why: Finding) -> Inspection:
    return Inspection(findings=(why,), has_errors=False, is_complete=False)


def sanitizer_findings(output: str, tensor_bytes: Mapping[str, int]) -> tuple[Finding, ...]:
    """Return the findings of a tool's output: one for each kind of error at each line.

    Args:
        output: As printed.
        tensor_bytes: Sizes of the tensors by name.
    """
    groups: dict[tuple[object, ...], list[Report]] = {}
    for report in reports(output):
        groups.setdefault(_key(report), []).append(report)
    total = error_count(output)
    only = len(groups) == 1
    return tuple(
        _finding(several[0], total if only else len(several), tensor_bytes)
        for several in list(groups.values())[:_MAX_FINDINGS]
    )


def _key(report: Report) -> tuple[object, ...]:
    what = "" if report.is_race else report.what
    return (what, report.space, report.place, report.other, report.is_misaligned)


def _finding(report: Report, count: int, tensor_bytes: Mapping[str, int]) -> Finding:
    line = None if report.place is None else report.place.line
    evidence = [Figure(name="error_count", value=float(count))]
    if report.is_race:
        kind, message, hint = FindingKind.DATA_RACE, _race(report), _RACE_HINT
    elif report.is_barrier:
        kind, message, hint = FindingKind.DATA_RACE, _barrier(report), _BARRIER_HINT
    else:
        kind = FindingKind.ILLEGAL_ACCESS
        message, hint = _access(report, tensor_bytes), _ACCESS_HINT
        evidence += _sizes(report)
        if report.is_misaligned:
            hint = _ALIGNMENT_HINT
    if report.is_uninitialized:
        hint = _UNINITIALIZED_HINT
    return Finding(
        kind=kind,
        severity=Severity.ERROR,
        message=message,
        line=line,
        evidence=tuple(evidence),
        hint=hint,
    )


_RACE_HINT: Final = (
    "put __syncthreads() between the write and the read, and before the memory is written again"
)
_BARRIER_HINT: Final = (
    "every thread of the block must reach the same __syncthreads(): no early return, no branch "
    "around it"
)
_ACCESS_HINT: Final = "check every index against the tensor's size, above all in the last block"
_ALIGNMENT_HINT: Final = (
    "an access of 8 or 16 bytes needs an address that is a multiple of it: check row lengths that "
    "are odd"
)
_UNINITIALIZED_HINT: Final = "write all of scratch before it is read, or have zeros(shape, dtype)"


def _race(report: Report) -> str:
    where = "" if report.place is None else f" of {report.place.function}"
    lines = [str(p.line) for p in (report.place, report.other) if p is not None and p.line]
    between = f" between lines {' and '.join(lines)}" if len(lines) == 2 else ""
    space = report.space or "shared"
    return f"a race on {space} memory{where}{between}: work-items do not wait for each other"


def _barrier(report: Report) -> str:
    where = "" if report.place is None else f" in {report.place.function}"
    return f"a barrier that not all reach{where}: {report.what[:200]}"


def _access(report: Report, tensor_bytes: Mapping[str, int]) -> str:
    where = "the kernel" if report.place is None else report.place.function
    thread = f", thread {report.thread} of block {report.block}" if report.thread else ""
    if report.is_uninitialized:
        return f"{where}: {report.what} of {report.space} memory that nothing has written{thread}"
    if report.is_misaligned:
        return f"{where}: {report.what} of {report.space} memory at a misaligned address{thread}"
    distance = ""
    if report.distance_bytes is not None and report.side != "inside":
        of = _allocation(report.allocation_bytes, tensor_bytes)
        distance = f", {report.distance_bytes} bytes {report.side} {of}"
    return f"{where}: {report.what} out of bounds of {report.space} memory{distance}{thread}"


def _allocation(size_bytes: int, tensor_bytes: Mapping[str, int]) -> str:
    """Return the name of the tensor there, if only one has that size."""
    names = _of_size(size_bytes, tensor_bytes.items())
    what = names[0] if len(names) == 1 else "an allocation"
    return f"{what} of {size_bytes} bytes"


def _of_size(size_bytes: int, sizes: Iterable[tuple[str, int]]) -> list[str]:
    return [name for name, size in sizes if size == size_bytes]


def _sizes(report: Report) -> list[Figure]:
    found = [Figure(name="access_bytes", value=float(report.size_bytes))]
    if report.distance_bytes is not None:
        found.append(Figure(name="distance_bytes", value=float(report.distance_bytes)))
        found.append(Figure(name="allocation_bytes", value=float(report.allocation_bytes)))
    return found

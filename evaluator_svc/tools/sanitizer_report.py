"""Reads what compute-sanitizer prints."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kernel_foundry.languages.cuda import CUDA

_MARK: Final = "========="
_MAX_LINES: Final = 200_000
_NUMBER: Final = r"(\d[\d,]{0,20})"
_INVALID: Final = re.compile(
    rf"(?P<what>Invalid|Uninitialized|Misaligned) __(?P<space>\w+)__ "
    rf"(?:memory )?(?P<access>\w+)(?: of size {_NUMBER})?"
)
_BARRIER: Final = re.compile(r"Barrier error detected\. *(?P<why>.*)")
_RACE: Final = re.compile(r"Race reported between (?P<first>Read|Write) access at (?P<place>.+)")
_HAZARD: Final = re.compile(
    r"Potential (?P<kind>RAW|WAR|WAW) hazard detected at __(?P<space>\w+)__"
)
_SECOND: Final = re.compile(r"and (?P<second>Read|Write) access at (?P<place>.+)")
_PLACE: Final = re.compile(
    r"(?P<function>\S.*?)\+0x[0-9a-f]+(?: in (?P<file>\S[^:\n]*):(?P<line>\d{1,7}))?"
)
_THREAD: Final = re.compile(r"by thread (\(\d+,\d+,\d+\)) in block (\(\d+,\d+,\d+\))")
_NEAREST: Final = re.compile(
    rf"{_NUMBER} bytes (?P<side>after|before|inside).*?nearest allocation "
    rf".*?of size {_NUMBER} bytes"
)
_SUMMARY: Final = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d{1,12}) (?:errors?|hazards?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlace:
    """Where in the candidate something happens."""

    function: str
    line: int | None
    """In the device code; None: elsewhere, or not told."""


@dataclass(slots=True, kw_only=True)
class Report:
    """One error of one work-item, as the tool reports it."""

    what: str
    """Such as "write of 4 bytes", or what is wrong with a barrier."""
    is_race: bool = False
    is_barrier: bool = False
    is_misaligned: bool = False
    is_uninitialized: bool = False
    space: str = ""
    size_bytes: int = 0
    place: SourcePlace | None = None
    other: SourcePlace | None = None
    """The second access of a race."""
    thread: str = ""
    block: str = ""
    distance_bytes: int | None = None
    """From the nearest allocation."""
    side: str = ""
    """Of the nearest allocation: after or before."""
    allocation_bytes: int = 0


def reports(output: str) -> Iterator[Report]:
    """Iterate over the errors in a tool's output."""
    current: Report | None = None
    for raw in output.split("\n")[:_MAX_LINES]:
        if not raw.startswith(_MARK):
            continue
        line = raw.removeprefix(_MARK).strip()
        started = _started(line)
        if started is not None or not line:
            if current is not None:
                yield current
            current = started
        elif current is not None:
            _add(current, line)
    if current is not None:
        yield current


def error_count(output: str) -> int:
    """Return the number of errors that the tool counted, printed or not."""
    found = [int(match[1]) for match in _SUMMARY.finditer(output)]
    return max(found, default=0)


def _started(line: str) -> Report | None:
    """The error whose first line this is; None for all other lines."""
    if match := _INVALID.search(line):
        size = _integer(match[4]) if match[4] else 0
        of_size = f" of {size} bytes" if size else ""
        return Report(
            what=f"{match['access']}{of_size}",
            space=match["space"],
            size_bytes=size,
            is_uninitialized=match["what"] == "Uninitialized",
            is_misaligned=match["what"] == "Misaligned",
        )
    if match := _BARRIER.search(line):
        return Report(what=match["why"].strip() or "barrier error", is_barrier=True)
    if match := _RACE.search(line):
        return Report(what=match["first"].lower(), is_race=True, place=_place(match["place"]))
    if match := _HAZARD.search(line):
        return Report(what=match["kind"], is_race=True, space=match["space"])
    return None


def _add(report: Report, line: str) -> None:
    if match := _SECOND.search(line):
        report.what += f" and {match['second'].lower()}"
        report.other = _place(match["place"])
    elif line.startswith(("Write Thread", "Read Thread")):
        place = _place(line.partition(" at ")[2])
        if report.place is None:
            report.place = place
        else:
            report.other = place
    elif line.startswith(("at ", "Device Frame:")):
        place = _place(line.removeprefix("at ").removeprefix("Device Frame:"))
        if report.place is None or (report.place.line is None and place and place.line):
            report.place = place
    elif match := _THREAD.search(line):
        report.thread, report.block = match[1], match[2]
    elif match := _NEAREST.search(line):
        report.distance_bytes = _integer(match[1])
        report.side = match["side"]
        report.allocation_bytes = _integer(match[3])
    elif "misaligned" in line:
        report.is_misaligned = True


def _place(text: str) -> SourcePlace | None:
    match = _PLACE.match(text.strip())
    if match is None:
        return None
    is_own = (match["file"] or "").rpartition("/")[2] == CUDA.source_file
    function = match["function"].partition("(")[0].strip()
    return SourcePlace(function=function, line=int(match["line"]) if is_own else None)


def _integer(text: str) -> int:
    return int(text.replace(",", ""))

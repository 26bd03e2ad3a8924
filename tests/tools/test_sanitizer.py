"""Findings of compute-sanitizer, from recorded outputs; and how it is run, with scripts for it."""

import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.tools import SanitizerTool, sanitize
from evaluator_svc.tools.sanitizer import sanitizer_findings
from kernel_foundry.domain.finding import Finding, FindingKind, Severity

RECORDED = Path(__file__).parent / "recorded"
ENVIRONMENT = {"PATH": os.defpath}


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def evidence(finding: Finding) -> dict[str, float]:
    return {e.name: e.value for e in finding.evidence}


def _wait_for_end(process: str) -> None:
    """A process that was killed still has to get its turn on a core to end."""
    deadline_s = time.monotonic() + 280.0
    while time.monotonic() < deadline_s:
        try:
            state = Path("/proc", process, "stat").read_text().split()[2]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.01)
    raise AssertionError(f"process {process} runs on")


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a shell script in the tool's place."""

    def install(script: str) -> None:
        program = tmp_path / "compute-sanitizer"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("KERNEL_FOUNDRY_COMPUTE_SANITIZER", str(program))

    return install


def test_an_access_out_of_bounds_is_one_finding_with_its_line() -> None:
    (found,) = sanitizer_findings(recorded("memcheck.txt"), {"out": 4096, "x": 8192})

    assert (found.kind, found.severity) == (FindingKind.ILLEGAL_ACCESS, Severity.ERROR)
    assert found.line == 3
    assert "bad: write of 4 bytes out of bounds of global memory" in found.message
    assert "4192257 bytes after out of 4096 bytes" in found.message
    assert "thread (0,0,0) of block (2,0,0)" in found.message
    assert evidence(found) == {
        "error_count": 1025,
        "access_bytes": 4,
        "distance_bytes": 4192257,
        "allocation_bytes": 4096,
    }


def test_a_size_that_two_tensors_have_names_neither() -> None:
    (found,) = sanitizer_findings(recorded("memcheck.txt"), {"out": 4096, "x": 4096})

    assert "an allocation of 4096 bytes" in found.message


@pytest.mark.parametrize("name", ["racecheck_hazards.txt", "racecheck_analysis.txt"])
def test_a_race_is_one_finding_with_both_lines(name: str) -> None:
    (found,) = sanitizer_findings(recorded(name), {})

    assert (found.kind, found.line) == (FindingKind.DATA_RACE, 4)
    assert "lines 4 and 5" in found.message
    assert "__syncthreads()" in found.hint


@pytest.mark.parametrize(
    ("lines", "kind", "words"),
    [
        (
            "Invalid __shared__ read of size 16 bytes\n"
            "    at k(float const*)+0x50 in /usr/include/cub/load.cuh:70\n"
            "    by thread (1,0,0) in block (0,0,0)\n"
            "    Access at 0x8 is misaligned\n"
            "    Device Frame: k(float const*)+0x40 in /tmp/candidate.cu:12",
            FindingKind.ILLEGAL_ACCESS,
            "misaligned",
        ),
        (
            "Barrier error detected. Divergent thread(s) in block.\n"
            "    at k+0x70 in candidate.cu:12\n    by thread (0,0,0) in block (0,0,0)",
            FindingKind.DATA_RACE,
            "not all reach",
        ),
        (
            "Uninitialized __global__ memory read of size 4 bytes\n    at k+0x7 in candidate.cu:12",
            FindingKind.ILLEGAL_ACCESS,
            "nothing has written",
        ),
    ],
)
def test_other_errors_have_their_words(lines: str, kind: FindingKind, words: str) -> None:
    output = "\n".join(f"========= {line}" for line in lines.split("\n"))

    (found,) = sanitizer_findings(output, {})

    assert (found.kind, found.line) == (kind, 12)
    assert words in found.message


def test_lines_of_other_files_are_not_told() -> None:
    output = recorded("memcheck.txt").replace("candidate.cu:3", "other.cu:3")

    (found,) = sanitizer_findings(output, {})

    assert found.line is None


def test_the_tool_gets_the_command_and_its_output_is_read(tool) -> None:
    tool(f'[ "$2" = racecheck ] && cat {RECORDED}/racecheck_analysis.txt')

    (found,) = sanitize(["true"], ENVIRONMENT, check=SanitizerTool.RACES)

    assert found.kind is FindingKind.DATA_RACE


def test_nothing_found_is_a_note(tool) -> None:
    tool('echo "========= COMPUTE-SANITIZER"; echo "========= ERROR SUMMARY: 0 errors"')

    (found,) = sanitize(["true"], ENVIRONMENT)

    assert (found.kind, found.severity) == (FindingKind.TOOL, Severity.INFO)
    assert "found nothing" in found.message


def test_a_tool_that_does_not_end_is_ended_with_its_children(tool, tmp_path: Path) -> None:
    tool(f"sleep 60 & echo $! > {tmp_path}/child; wait")

    (found,) = sanitize(["true"], ENVIRONMENT, seconds=0.5)

    assert "was ended" in found.message
    _wait_for_end((tmp_path / "child").read_text().strip())


@pytest.mark.parametrize("script", ["exit 1", "echo Error: no attach; exit 3", "kill -9 $$"])
def test_a_tool_that_fails_is_a_note(tool, script: str) -> None:
    tool(script)

    (found,) = sanitize(["true"], ENVIRONMENT)

    assert (found.kind, found.severity) == (FindingKind.TOOL, Severity.INFO)
    assert "failed" in found.message


def test_an_absent_tool_is_a_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KERNEL_FOUNDRY_COMPUTE_SANITIZER", str(tmp_path / "none"))

    (found,) = sanitize([sys.executable, "-c", "pass"], ENVIRONMENT)

    assert (found.kind, found.severity) == (FindingKind.TOOL, Severity.INFO)


@given(st.text(alphabet="= Invalid__global__ of size 4\nat k+0x1 in candidate.cu:3", max_size=300))
def test_no_output_raises(output: str) -> None:
    text = output.replace("\n", "\n========= ")

    assert all(f.message for f in sanitizer_findings(text, {"x": 4}))

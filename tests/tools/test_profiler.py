"""Findings of ncu, from a recorded table; and processes, with programs in its place."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.tools import profile
from evaluator_svc.tools import profile_report as report
from evaluator_svc.tools.profile_report import profiles
from evaluator_svc.tools.profiler import profile_findings
from kernel_foundry.domain.finding import Finding, FindingKind, Severity

RECORDED = Path(__file__).parent / "recorded" / "ncu_raw.csv"
ENVIRONMENT = {"PATH": os.defpath}


def table(**changes: str) -> str:
    """A table of one launch with the given metrics, by `profile_report`'s names."""
    metrics = {getattr(report, name): value for name, value in changes.items()}
    names = ["ID", "Kernel Name", report.TIME, *metrics]
    rows = [names, [""] * len(names), ["0", "k(float *)", "10,000", *metrics.values()]]
    return "\n".join(",".join(f'"{value}"' for value in row) for row in rows)


def by_kind(output: str) -> dict[FindingKind, Finding]:
    return {f.kind: f for f in profile_findings(output)}


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a shell script in the tool's place."""

    def install(script: str) -> None:
        program = tmp_path / "ncu"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("KERNEL_FOUNDRY_NCU", str(program))

    return install


def test_the_recorded_table_is_read_in_base_units() -> None:
    launches = profiles(RECORDED.read_text())

    assert [one.kernel for one in launches[:2]] == ["k_copy", "k_copy"]
    assert launches[0].time_ns == 2240
    assert launches[0].metrics[report.MEMORY_RATE] == pytest.approx(118.29e9, rel=1e-3)
    reason, share = launches[0].stalls[0]
    assert (reason, round(share, 2)) == ("long_scoreboard", 0.47)


def test_what_warps_wait_for_is_told_of_the_slowest_launch() -> None:
    found = by_kind(RECORDED.read_text())

    assert "global memory" in found[FindingKind.STALL].message
    use = found[FindingKind.LATENCY_BOUND]
    assert {e.name: e.value for e in use.evidence}["gpu_time_ns"] == max(
        one.time_ns for one in profiles(RECORDED.read_text())
    )


@pytest.mark.parametrize(
    ("memory", "compute", "kind"),
    [
        ("91.5", "20", FindingKind.MEMORY_BOUND),
        ("20", "85", FindingKind.COMPUTE_BOUND),
        ("20", "30", FindingKind.LATENCY_BOUND),
    ],
)
def test_what_binds_follows_from_the_counters(memory: str, compute: str, kind: FindingKind) -> None:
    found = by_kind(table(MEMORY_SHARE=memory, COMPUTE_SHARE=compute))[kind]

    numbers = {e.name: e.value for e in found.evidence}
    assert numbers["dram_share"] == pytest.approx(float(memory) / 100)
    assert numbers["compute_share"] == pytest.approx(float(compute) / 100)


@pytest.mark.parametrize(
    ("metrics", "kind"),
    [
        ({"CONFLICTS": "3,000", "SHARED_WAVEFRONTS": "10,000"}, FindingKind.BANK_CONFLICT),
        ({"LOADED_PER_SECTOR": "4"}, FindingKind.STRIDED_ACCESS),
        ({"STORED_PER_SECTOR": "8.5"}, FindingKind.STRIDED_ACCESS),
        ({"ACHIEVED_OCCUPANCY": "20", "POSSIBLE_OCCUPANCY": "100"}, FindingKind.OCCUPANCY),
    ],
)
def test_what_wastes_the_device_is_told(metrics: dict[str, str], kind: FindingKind) -> None:
    assert kind in by_kind(table(**metrics))


def test_good_use_is_told_without_complaint() -> None:
    output = table(
        MEMORY_SHARE="92",
        CONFLICTS="1",
        SHARED_WAVEFRONTS="1,000",
        LOADED_PER_SECTOR="32",
        ACHIEVED_OCCUPANCY="95",
        POSSIBLE_OCCUPANCY="100",
    )

    assert set(by_kind(output)) == {FindingKind.MEMORY_BOUND}


def test_values_that_are_no_numbers_are_left_out() -> None:
    (one,) = profiles(table(MEMORY_SHARE="n/a", COMPUTE_SHARE="nan", CONFLICTS=""))

    assert set(one.metrics) == {"ID", report.TIME}


def test_the_tool_is_asked_for_the_candidates_kernels_alone(tool, tmp_path: Path) -> None:
    tool(f'printf "%s\\n" "$@" > {tmp_path}/arguments; cat {RECORDED}')

    found = profile(["run", "it"], ENVIRONMENT, kernels=["k_copy", "k.2"], launch_count=4)

    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[-2:] == ["run", "it"]
    assert "regex:^(?:k_copy|k\\.2)$" in arguments
    assert arguments[arguments.index("--clock-control") + 1] == "none"
    assert arguments[arguments.index("--launch-count") + 1] == "4"
    assert found[0].kind is FindingKind.LATENCY_BOUND


def test_no_permission_is_a_note_in_the_tools_words(tool) -> None:
    tool('echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission"; exit 1')

    (found,) = profile(["true"], ENVIRONMENT, kernels=["k"])

    assert (found.kind, found.severity) == (FindingKind.TOOL, Severity.INFO)
    assert "ERR_NVGPUCTRPERM" in found.message


def test_an_absent_tool_is_a_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KERNEL_FOUNDRY_NCU", str(tmp_path / "none"))

    (found,) = profile(["true"], ENVIRONMENT, kernels=["k"])

    assert found.kind is FindingKind.TOOL


@given(st.text(alphabet='"ID",Kernel Name\n1.5', max_size=200))
def test_no_output_raises(output: str) -> None:
    assert all(f.message for f in profile_findings('"ID",' + output))

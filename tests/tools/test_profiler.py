"""What ncu says, from recorded pages; and processes, with programs in its place."""

import dataclasses
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.pipeline.profile.counted_kernels import counted_kernels, hot_lines
from evaluator_svc.tools import profile
from evaluator_svc.tools import profile_report as report
from evaluator_svc.tools.profile_findings import profile_findings
from evaluator_svc.tools.profile_report import SAMPLE, SAMPLES, launches
from evaluator_svc.tools.source_page import line_samples
from kernel_foundry.domain.finding import Finding, FindingKind
from kernel_foundry.domain.kernel_time import KernelTime
from kernel_foundry.domain.profile import HotLine, Share

FOLDER = Path(__file__).parent / "recorded"
RECORDED = FOLDER / "ncu_raw.csv"
PRODUCT, PRODUCT_LINES = FOLDER / "ncu_product_raw.csv", FOLDER / "ncu_product_source.csv"
LIBRARY = FOLDER / "ncu_library_raw.csv"
ENVIRONMENT = {"PATH": os.defpath}


BARRIERS = "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"


def table(**changes: str) -> str:
    """A table of one launch with the given metrics, by `profile_report`'s names."""
    metrics = {getattr(report, name, name): value for name, value in changes.items()}
    names = ["ID", "Kernel Name", report.TIME, *metrics]
    rows = [names, [""] * len(names), ["0", "k(float *)", "10,000", *metrics.values()]]
    return "\n".join(",".join(f'"{value}"' for value in row) for row in rows)


def by_kind(output: str) -> dict[FindingKind, Finding]:
    return {f.kind: f for f in profile_findings(launches(output))}


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
    measured = launches(RECORDED.read_text())

    assert [one.kernel for one in measured[:2]] == ["k_copy", "k_copy"]
    assert measured[0].time_ns == 2240
    assert measured[0].metrics[report.MEMORY_RATE] == pytest.approx(118.29e9, rel=1e-3)
    reason, share = measured[0].stalls[0]
    assert (reason, round(share, 2)) == ("long_scoreboard", 0.47)


def test_what_warps_wait_for_is_told_of_the_slowest_launch() -> None:
    found = by_kind(RECORDED.read_text())

    assert "global memory" in found[FindingKind.STALL].message
    use = found[FindingKind.LATENCY_BOUND]
    assert {e.name: e.value for e in use.evidence}["gpu_time_ns"] == max(
        one.time_ns for one in launches(RECORDED.read_text())
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


@pytest.mark.parametrize(
    ("busy", "is_told"),
    [
        ({}, True),
        ({"TENSOR_PIPE": "45"}, True),
        ({"TENSOR_PIPE": "64"}, False),
        ({"TENSOR_PIPE": "95", "COMPUTE_SHARE": "90"}, False),
        ({"MEMORY_SHARE": "94"}, False),
    ],
)
def test_warps_that_are_parked_at_a_barrier_are_no_finding_where_a_unit_is_busy(
    busy: dict[str, str], is_told: bool
) -> None:
    found = by_kind(table(**busy, **{BARRIERS: "4"}))

    assert (FindingKind.STALL in found) == is_told
    if is_told:
        assert ("__syncthreads" in found[FindingKind.STALL].hint) == (not busy)


@pytest.mark.parametrize(
    ("tensor", "kind", "words"),
    [
        ("95", FindingKind.COMPUTE_BOUND, "only fewer products"),
        ("64", FindingKind.COMPUTE_BOUND, "keep them fed"),
        ("45", FindingKind.LATENCY_BOUND, "none is busy"),
    ],
)
def test_the_tensor_pipe_is_a_unit_that_may_bind(
    tensor: str, kind: FindingKind, words: str
) -> None:
    found = by_kind(table(MEMORY_SHARE="11", COMPUTE_SHARE="59", TENSOR_PIPE=tensor))[kind]

    assert found.message.endswith(f"multiprocessors at 59%, tensor pipe at {tensor}%")
    assert words in found.hint


def test_memory_binds_where_its_cache_is_busy() -> None:
    output = table(MEMORY_SHARE="53", COMPUTE_SHARE="28", CACHE_SHARE="80")

    assert by_kind(output)[FindingKind.MEMORY_BOUND].message.endswith(
        "memory at 53% of its peak, multiprocessors at 28%, L2 at 80%"
    )


@pytest.mark.parametrize(
    "metrics",
    [
        {"MEMORY_SHARE": "94"},
        {"LOADED_SECTORS": "1,000", "CACHE_SECTORS": "10,000"},
    ],
)
def test_accesses_that_waste_little_of_what_is_moved_are_not_told(
    metrics: dict[str, str],
) -> None:
    wasteful = table(LOADED_PER_SECTOR="6.05", LOADED_SECTORS="9,000", CACHE_SECTORS="10,000")

    assert FindingKind.STRIDED_ACCESS in by_kind(wasteful)
    assert FindingKind.STRIDED_ACCESS not in by_kind(table(LOADED_PER_SECTOR="6.05", **metrics))


def test_waste_of_a_kernel_that_takes_little_of_the_time_is_not_told() -> None:
    short = table(LOADED_PER_SECTOR="6")
    long = short.splitlines()[-1].replace("k(float *)", "main").replace("10,000", "150,000")

    found = profile_findings(launches(f"{short}\n{long}"))

    wasteful = [f.message for f in found if f.kind is FindingKind.STRIDED_ACCESS]
    assert [message.partition(":")[0] for message in wasteful] == ["main"]


def test_values_that_are_no_numbers_are_left_out() -> None:
    (one,) = launches(table(MEMORY_SHARE="n/a", COMPUTE_SHARE="nan", CONFLICTS=""))

    assert set(one.metrics) == {"ID", report.TIME}


def test_kernels_have_units_stalls_occupancy_and_bytes() -> None:
    (kernel,) = counted_kernels(launches(PRODUCT.read_text()), ["product"], ())

    assert (kernel.kernel, kernel.is_library, kernel.time_ns) == ("product", False, 1_834_944)
    units = {unit.name: round(unit.share, 2) for unit in kernel.units}
    assert (units["LSU pipe"], units["L1 and shared memory"], units["DRAM"]) == (0.79, 0.94, 0.0)
    assert [stall.name for stall in kernel.stalls[:2]] == ["mio_throttle", "not_selected"]
    assert (kernel.registers, kernel.shared_bytes) == (32, 8320)
    assert (kernel.occupancy, kernel.possible_occupancy) == (pytest.approx(0.98, abs=0.01), 1.0)
    assert kernel.moved_bytes == 16_955_648 + 8_130_304


def test_library_kernels_are_named_without_their_templates() -> None:
    kernels = counted_kernels(launches(LIBRARY.read_text()), ["product"], ())

    assert [(k.kernel, k.is_library) for k in kernels] == [
        ("nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", True),
        ("at::vectorized_elementwise_kernel", True),
    ]
    assert kernels[0].occupancy_limit == "shared memory"
    assert {unit.name: unit.share for unit in kernels[0].units}["tensor pipe"] > 0.9


def test_a_kernel_that_is_launched_more_often_than_profiled_counts_all_its_launches() -> None:
    measured = launches(PRODUCT.read_text())
    often = KernelTime(kernel="product", launches=50, median_ns=9e7)

    (kernel,) = counted_kernels(measured, ["product"], [often])

    assert (kernel.launches, kernel.time_ns) == (50, 50 * 1_834_944)


def test_the_hottest_lines_come_first() -> None:
    kernels = counted_kernels(launches(PRODUCT.read_text()), ["product"], ())

    lines = hot_lines(line_samples(PRODUCT_LINES.read_text()), kernels)

    assert [line.line for line in lines] == [10, 7, 6, 8, 3]
    assert lines[0].share == pytest.approx(173_537 / 227_159)
    assert sum(line.share for line in lines) <= 1


def source_page(*rows: tuple[str, ...], file: str = "/tmp/candidate.cu") -> str:
    """A page of one kernel, with a column for each of two reasons."""
    head = ("Line No", "Source", "Address", "Source", f"{SAMPLE}wait", f"{SAMPLE}selected")
    all_rows = [("File Path", file), ("Function Name", "product"), head, *rows]
    return "".join(",".join(f'"{value}"' for value in row) + "\n" for row in all_rows)


def test_lines_of_headers_and_reasons_are_told() -> None:
    page = source_page(
        ("4", "x", "-", "-", "1,200", "5"), ("", "", "0x0", "LDG", "600", "5")
    ) + source_page(("9", "y", "-", "-", "100", "300"), file="/opt/include/kf/tile.cuh")
    kernels = counted_kernels(launches(PRODUCT.read_text()), ["product"], ())

    lines = hot_lines(line_samples(page), kernels)

    assert lines == (
        HotLine(line=4, share=pytest.approx(1205 / 1605), stall="wait"),
        HotLine(line=9, share=pytest.approx(400 / 1605), file="tile.cuh", stall="wait"),
    )


def test_warps_at_a_barrier_heat_no_line_of_a_kernel_that_keeps_a_unit_busy() -> None:
    page = source_page(("4", "x", "-", "-", "900", "0"), ("9", "y", "-", "-", "10", "90"))
    samples = line_samples(page.replace(f"{SAMPLE}wait", f"{SAMPLE}barrier"))
    (kernel,) = counted_kernels(launches(PRODUCT.read_text()), ["product"], ())
    units = (Share(name="tensor pipe", share=0.64),)

    busy = hot_lines(samples, [dataclasses.replace(kernel, units=units)])
    idle = hot_lines(samples, [dataclasses.replace(kernel, units=())])

    assert [(line.line, line.share, line.stall) for line in busy] == [(9, 1.0, "")]
    assert [line.line for line in idle] == [4, 9]


@given(st.text(alphabet='"File PathuncoNmLe,0\n1', max_size=300))
def test_no_source_page_raises(text: str) -> None:
    page = source_page() + text + f'\n"3","","","","{"9" * 30}","x"\n{SAMPLES}'
    assert all(found.total > 0 for found in line_samples(page).values())


def test_the_report_is_made_by_one_run_and_read_by_two(tool, tmp_path: Path) -> None:
    tool(f"""printf '%s\n' "$@" >> {tmp_path}/arguments
case "$*" in
  *--export*) for a in "$@"; do case $a in *.ncu-rep) : > "$a";; esac; done;;
  *raw*) cat {PRODUCT};;
  *source*) cat {PRODUCT_LINES};;
esac""")

    found = profile(["run", "it"], ENVIRONMENT, seconds=60)

    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[arguments.index("it") - 1] == "run"
    assert arguments[arguments.index("--clock-control") + 1] == "none"
    assert arguments[arguments.index("--profile-from-start") + 1] == "off"
    assert [launch.kernel for launch in found.launches] == ["product"]
    assert len(found.lines) == 11
    assert (found.reason, found.is_closed) == ("", False)


@pytest.mark.parametrize(
    ("said", "is_closed", "word"),
    [
        ("ERR_NVGPUCTRPERM - The user does not have permission", True, "NVreg_Restrict"),
        ("Failed to initialize: LibraryNotLoaded", True, "driver"),
        ("Unknown \033[31moption", False, "Unknown  [31moption"),
    ],
)
def test_closed_counters_are_told_and_not_tried_again(
    tool, said: str, is_closed: bool, word: str
) -> None:
    tool(f'printf "==ERROR== {said}\n"; exit 1')

    found = profile(["true"], ENVIRONMENT, seconds=60)

    assert (found.launches, found.is_closed) == ((), is_closed)
    assert word in found.reason


def test_a_tool_that_takes_too_long_is_ended(tool) -> None:
    tool("sleep 60")

    found = profile(["true"], ENVIRONMENT, seconds=0.1)

    assert "was ended" in found.reason
    assert not found.is_closed


def test_an_absent_tool_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KERNEL_FOUNDRY_NCU", str(tmp_path / "none"))

    found = profile(["true"], ENVIRONMENT, seconds=60)

    assert found.is_closed
    assert "ncu was not used" in found.reason


@given(st.text(alphabet='"ID",Kernel Name\n1.5', max_size=200))
def test_no_output_raises(output: str) -> None:
    assert all(f.message for f in profile_findings(launches('"ID",' + output)))

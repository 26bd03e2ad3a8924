"""The CUDA path with a driver that has no GPU: every test marked `gpu` passes with it too."""

import re
import subprocess
import sys
from pathlib import Path

from tests.native.fake_cuda_build import fake_driver_environment

FOLDER = Path(__file__).parent


def run_child(driver: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=fake_driver_environment(driver, **settings),
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


def test_what_holds_on_a_gpu_holds_here(fake_driver: Path) -> None:
    """One session runs all files: starting one takes longer than most of them."""
    files = (
        "test_cuda_device.py",
        "test_cuda_compare.py",
        "test_cuda_redraw.py",
        "test_device_kinds.py",
    )
    paths = [str(FOLDER / file) for file in files]
    child = run_child(fake_driver, "-m", "pytest", "-v", "-m", "gpu", "--require-gpu", *paths)
    assert child.returncode == 0, child.stdout[-8000:] + child.stderr
    for file in files:
        assert re.search(rf"{re.escape(file)}::\S.* PASSED", child.stdout), file


def test_a_driver_without_a_device_says_so(fake_driver: Path) -> None:
    child = run_child(
        fake_driver,
        "-c",
        "import kernel_foundry_native as n; n.device_kind('cuda').device_count()",
        FAKE_CUDA_DEVICES="0",
    )
    assert "DriverUnavailableError" in child.stderr
    assert "CUDA_ERROR_NO_DEVICE" in child.stderr


MEASURE_WHILE_HOT = """
from tests.native.cuda_case import CudaCase
case = CudaCase()
sequence = case.sequence()
buffers = [case.module.buffer_argument(i) for i in range(2)]
case.launch(sequence, "slow_copy", [*buffers, case.module.scalar_argument("int32", 1)])
sequence.bind(0, [case.empty(4), case.empty(4)])
found = sequence.measure(
    case.module.MeasureOptions(
        warmup_calls=0, min_samples=12, max_samples=12, max_seconds={seconds},
        target_half_width=0.0, set_count=1, is_cold=False,
    ),
    flush_bytes=0, outputs=[], keep_into=[],
)
counted = sum(block[0] for block in found.clocks)
reasons = {{reason for block in found.clocks for reason in block[-1]}}
print(len(found.samples_ns), len(found.host_ns), counted, found.discarded_count > 0, *reasons)
"""


def test_samples_of_a_throttled_device_are_dropped(fake_driver: Path) -> None:
    code = MEASURE_WHILE_HOT.format(seconds=10.0)
    child = run_child(fake_driver, "-c", code, FAKE_NVML_THROTTLED_READINGS="2")
    assert child.stdout.split() == ["12", "12", "12", "True", "gpu_idle"], child.stderr


def test_where_nothing_but_throttled_samples_can_be_had_they_are_told_as_such(
    fake_driver: Path,
) -> None:
    code = MEASURE_WHILE_HOT.format(seconds=0.5)
    child = run_child(fake_driver, "-c", code, FAKE_NVML_THROTTLED_READINGS="1000000")
    samples, host, counted, has_discarded, *reasons = child.stdout.split()
    assert int(samples) == int(host) == int(counted) > 0, child.stderr
    assert (has_discarded, reasons) == ("True", ["hw_thermal_slowdown"])


def test_an_exported_file_launches_through_the_driver_alone(fake_driver: Path) -> None:
    child = run_child(fake_driver, "-m", "tests.export.cuda_launch", str(fake_driver), "sm_90")
    said = child.stdout.splitlines()
    assert said[:2] == ["refused: kernels are for spir64-cpu, and this GPU is sm_90", "right: True"]
    assert [line.split(":")[0] for line in said[2:6]] == ["no kernel"] * 3 + ["not loaded"]
    assert said[6:] == [
        "known: True",
        "known: True",
        "asked which device is the current one: [1, 0, 0]",
        "no kernel: x does not begin at a multiple of 64 bytes",
        "unknown: None None None",
        "changed: None",
        "through its own memory: True",
        "with a library call: True",
        "within another one: True True",
        "within another one: True True",
        "threads: 400 True",
        "weights: True True True True None",
        "weights: True True True True None",
    ], child.stderr

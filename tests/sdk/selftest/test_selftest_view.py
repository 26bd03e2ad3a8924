"""The table for people keeps what matters in sight."""

from rich.console import Console

from kernel_foundry.cli.selftest_view import show
from kernel_foundry.domain.probe import Probe
from kernel_foundry.sdk.selftest.run import ProbedDevice, SelfTest


def test_passed_probes_of_a_crowded_area_are_one_line_and_failed_ones_stay() -> None:
    crowd = [
        Probe(name=f"sandbox.runner.attempt_{i}", passed=i != 7, detail=f"attempt {i}")
        for i in range(40)
    ]
    few = [Probe(name="timer.cold", passed=True, detail="cold is not faster")]
    device = ProbedDevice(device="sycl:0", probes=(*crowd, *few))
    console = Console(record=True, width=120)
    show(console, SelfTest(devices=(device,), cases=()))
    text = console.export_text()
    assert "39 of 40 attempts ended as expected" in text
    assert "sandbox.runner.attempt_7" in text
    assert "sandbox.runner.attempt_8" not in text
    assert "cold is not faster" in text
    assert "FAILED" in text

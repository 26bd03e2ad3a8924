"""What a process is told to see of the host's CUDA devices."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator_svc.hardware.visible_device import node_of, see_only


@pytest.mark.parametrize(
    ("visible", "device", "local", "left"),
    [
        (None, "cuda:2", "cuda:0", "2"),
        ("4, 6", "cuda:1", "cuda:0", "6"),
        ("GPU-a,GPU-b", "cuda:0", "cuda:0", "GPU-a"),
        ("4", "cuda:1", "cuda:1", "4"),
        (None, "sycl:0", "sycl:0", None),
    ],
)
def test_one_device_is_left(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, device: str, local: str, left: str | None
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert see_only(device) == local
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == left


def test_a_device_is_found_among_the_hosts_nodes(tmp_path: Path) -> None:
    for bus, uuid, minor in (("0000:1b:00.0", "GPU-a", 1), ("0000:43:00.0", "GPU-b", 0)):
        folder = tmp_path / bus
        folder.mkdir()
        text = f"Model: \t\t NVIDIA\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n"
        (folder / "information").write_text(text)

    assert node_of("GPU-a", tmp_path) == "/dev/nvidia1"
    assert node_of("GPU-b", tmp_path) == "/dev/nvidia0"
    assert node_of("MIG-c", tmp_path) == ""
    assert node_of("", tmp_path) == ""
    assert node_of("GPU-a", tmp_path / "no such folder") == ""


def test_a_hidden_node_cannot_be_opened_and_all_else_can(tmp_path: Path) -> None:
    program = f"""
import ctypes
from evaluator_svc.sandbox import landlock
from evaluator_svc.sandbox.mechanism import MechanismUnavailableError
try:
    landlock.hide(["/dev/zero"])
except MechanismUnavailableError as error:
    print("no Landlock:", error)
    raise SystemExit(0)
open("/dev/null", "w").close()
open("/proc/self/status").close()
open({str(tmp_path / "new")!r}, "w").close()
try:
    open("/dev/zero")
except PermissionError:
    print("hidden")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    if done.stdout.startswith("no Landlock"):
        pytest.skip(done.stdout.strip())
    assert done.stdout.strip() == "hidden"

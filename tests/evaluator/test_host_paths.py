"""What of the host a locked process may read: what it runs on, and no secret."""

import sys
from pathlib import Path

import pytest

from evaluator_svc.sandbox.host_paths import device_nodes, package_root, readable_paths
from kernel_foundry.paths import data_dir


def _is_readable(path: Path) -> bool:
    return any(path.resolve().is_relative_to(Path(p).resolve()) for p in readable_paths())


def test_the_interpreter_is_readable_and_secrets_are_not() -> None:
    """No home, no data of ours, no accounts, no other process."""
    assert _is_readable(Path(sys.executable))
    assert _is_readable(Path(package_root(), "evaluator_svc", "runner"))
    secrets = (Path.home(), data_dir(), Path("/etc/passwd"), Path("/etc/shadow"), Path("/proc/1"))
    assert [str(path) for path in secrets if _is_readable(path)] == []


def test_an_interpreter_in_the_home_folder_does_not_open_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what an installation consists of is readable there."""
    for name in ("bin", "lib", ".ssh"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    readable = readable_paths()
    assert {str(tmp_path / "bin"), str(tmp_path / "lib")} <= set(readable)
    assert str(tmp_path) not in readable
    assert not _is_readable(tmp_path / ".ssh")


def test_packages_of_another_environment_are_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `.pth` file puts them on the path; of any other folder that it names nothing is opened.

    But where we are installed ourselves, by `pip install --target`.
    """
    packages, own, other = tmp_path / "lib" / "site-packages", tmp_path / "own", tmp_path / "other"
    for folder in (packages, own / "kernel_foundry-0.1.0.dist-info", other):
        folder.mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages), str(own), str(other)])
    assert {str(packages), str(own)} <= set(readable_paths())
    assert not _is_readable(other)
    monkeypatch.setenv("HOME", str(packages))
    assert str(packages) not in readable_paths()


def test_a_library_in_the_home_folder_does_not_open_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable that names one file there, or the folder."""
    (tmp_path / "libnvrtc.so").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in (str(tmp_path / "libnvrtc.so"), f"/nowhere:{tmp_path}"):
        monkeypatch.setenv("KERNEL_FOUNDRY_NVRTC", value)
        assert str(tmp_path) not in readable_paths()
    monkeypatch.setenv("KERNEL_FOUNDRY_NVRTC", str(tmp_path / "libnvrtc.so"))
    assert str(tmp_path / "libnvrtc.so") in readable_paths()


def test_device_nodes_are_those_of_the_kind() -> None:
    """No process gets a node that it does not open."""
    for kind in ("", "null"):
        assert set(device_nodes(kind)) == {"/dev/null", "/dev/urandom", "/dev/random"}
    assert "/dev/dri" in device_nodes("sycl")
    assert not any("nvidia" in node for node in device_nodes("sycl"))
    assert "/dev/dri" not in device_nodes("cuda")


def test_a_runner_of_a_gpu_gets_no_other_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver's own nodes stay, and those for displays were never among them."""
    found = ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia-uvm", "/dev/nvidiactl"]
    found += ["/dev/nvidia-modeset", "/dev/nvidia10"]

    def glob(folder: Path, pattern: str) -> list[Path]:
        return [path for path in map(Path, found) if path.match(f"{folder}/{pattern}")]

    monkeypatch.setattr(Path, "glob", glob)
    nodes = device_nodes("cuda", "/dev/nvidia1")
    assert {n for n in nodes if "nvidia" in n} == {
        "/dev/nvidia1", "/dev/nvidia-uvm", "/dev/nvidiactl",
    }  # fmt: skip
    assert {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia10"} <= set(device_nodes("cuda"))

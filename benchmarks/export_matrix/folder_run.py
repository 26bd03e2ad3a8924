"""Folders of exports where their users have them: built, installed, and called on a GPU."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_SECONDS: Final = 300.0
_OPS: Final = 'def add_op_namespace_prefix(name):\n    return f"_{package}_build::{{name}}"\n'
"""What kernel-builder puts beside the sources of a kernel."""


def write_folder(files: Mapping[str, str], where: Path) -> None:
    """Write the files of a folder."""
    for name, text in files.items():
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def built(target: str, folder: Path, module: str) -> str:
    """Build and run a folder as far as that takes no time measurements; why it fails, or "".

    `cpp` is built with CMake and its test program runs; `pybind` is installed beside the folder;
    the tests of `hf` run on what kernel-builder would make of it. `vllm` needs no build.
    """
    if target == "cpp":
        build = str(folder / "build")
        return (
            _failure(["cmake", "-S", str(folder), "-B", build])
            or _failure(["cmake", "--build", build])
            or _failure(["ctest", "--test-dir", build, "--output-on-failure"])
        )
    if target == "pybind":
        options = ["--quiet", "--no-build-isolation", "--no-deps", "--no-index"]
        where = str(installed(folder))
        return _failure(
            [sys.executable, "-m", "pip", "install", *options, "--target", where, str(folder)]
        )
    if target == "hf":
        package = folder / "torch-ext" / module
        (package / "_ops.py").write_text(_OPS.format(package=module))
        return _failure(
            [sys.executable, "-m", "pytest", "-q", "-W", "ignore", str(folder / "tests")],
            PYTHONPATH=str(package.parent),
        )
    return ""


def installed(folder: Path) -> Path:
    """Return where `built` installs a package."""
    return folder.with_name(f"{folder.name}_installed")


def called(target: str, folder: Path, module: str, file: Path) -> dict[str, Any]:
    """Return the largest error and the host's time of calls of a package, in a fresh process.

    Args:
        target: `pybind` or `vllm`.
        folder: As it was written.
        module: Name of the package.
        file: The same kernels as a file of `--to torch`, which has the reference.
    """
    where = installed(folder) if target == "pybind" else folder
    command = [sys.executable, str(Path(__file__).with_name("package_call.py"))]
    ended = _run([*command, target, str(where), module, str(file)])
    if ended.returncode:
        return {"failure": _last(ended)}
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def _failure(command: list[str], **settings: str) -> str:
    ended = _run(command, **settings)
    return _last(ended) if ended.returncode else ""


def _run(command: list[str], **settings: str) -> subprocess.CompletedProcess[str]:
    tools = Path(sys.executable).parent
    path = f"{tools}{os.pathsep}{os.environ.get('PATH', '')}"
    return subprocess.run(
        command,
        env=os.environ | {"PATH": path} | settings,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )


def _last(ended: subprocess.CompletedProcess[str]) -> str:
    said = (ended.stdout + ended.stderr).strip()
    return f"{' '.join(ended.args[:4])}: exit code {ended.returncode}: {said[-800:]}"

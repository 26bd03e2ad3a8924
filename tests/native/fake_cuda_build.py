"""Builds the CUDA driver without a GPU that `fake_cuda/` holds."""

import fcntl
import os
import re
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "fake_cuda"
DEVICE_CODE = Path(__file__).parents[2] / "native/src/cuda_compare_source.hpp"


@pytest.fixture(scope="session")
def fake_driver(shared_dir: Path) -> Path:
    """Return the driver's library, which one of the session's processes builds."""
    folder = shared_dir / "fake_cuda"
    folder.mkdir(exist_ok=True)
    library = folder / "libfake_cuda.so"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            _build(folder, library)
    return library


def _build(folder: Path, library: Path) -> None:
    """Compile the driver; the comparison's device code becomes host code of it."""
    text = re.search(r'R"cuda\((.*)\)cuda"', DEVICE_CODE.read_text(encoding="utf-8"), re.DOTALL)
    assert text is not None
    # The same kernel for several element types lives in namespaces, where C names would meet.
    (folder / "comparison.inc").write_text(text[1].replace('extern "C" ', ""), encoding="utf-8")
    subprocess.run(
        [
            os.environ.get("CXX", "c++"), "-std=c++20", "-O1", "-shared", "-fPIC", "-w",
            f"-I{folder}", f"-I{DEVICE_CODE.parent}", *map(str, FOLDER.glob("*.cpp")),
            "-o", str(library),
        ],
        check=True,
    )  # fmt: skip


def fake_driver_environment(library: Path, **settings: str) -> dict[str, str]:
    names = dict.fromkeys(("KERNEL_FOUNDRY_CUDA_DRIVER", "KERNEL_FOUNDRY_NVML"), str(library))
    return os.environ | names | settings

"""Builds the CUDA driver without a GPU that `fake_cuda/` holds."""

import os
import re
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parent / "fake_cuda"
DEVICE_CODE = Path(__file__).parents[2] / "native/src/cuda_compare_source.hpp"


def build_fake_driver(folder: Path) -> Path:
    """Compile the driver in `folder`; the comparison's device code becomes host code of it."""
    text = re.search(r'R"cuda\((.*)\)cuda"', DEVICE_CODE.read_text(encoding="utf-8"), re.DOTALL)
    assert text is not None
    # The same kernel for several element types lives in namespaces, where C names would meet.
    (folder / "comparison.inc").write_text(text[1].replace('extern "C" ', ""), encoding="utf-8")
    library = folder / "libfake_cuda.so"
    subprocess.run(
        [
            os.environ.get("CXX", "c++"), "-std=c++20", "-O1", "-shared", "-fPIC", "-w",
            f"-I{folder}", f"-I{DEVICE_CODE.parent}", *map(str, FOLDER.glob("*.cpp")),
            "-o", str(library),
        ],
        check=True,
    )  # fmt: skip
    return library


def fake_driver_environment(library: Path, **settings: str) -> dict[str, str]:
    """Return an environment in which the library is the driver."""
    names = dict.fromkeys(("KERNEL_FOUNDRY_CUDA_DRIVER", "KERNEL_FOUNDRY_NVML"), str(library))
    return os.environ | names | settings

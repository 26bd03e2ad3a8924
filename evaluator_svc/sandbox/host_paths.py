"""What builder and runner may see of the host's files: interpreter, packages, libraries.

No home folder, no working folder, no `/etc` beyond the loader's own files; what the environment
names for the loader and for CUDA is readable too.
"""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Final

_SYSTEM: Final = (
    "/usr", "/lib", "/lib64", "/sys", "/proc",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/OpenCL", "/etc/localtime",
    "/etc/alternatives",
)  # fmt: skip

_PACKAGES: Final = ("evaluator_svc", "kernel_foundry", "kernel_foundry_native")

_LIBRARY_VARIABLES: Final = (
    "LD_LIBRARY_PATH", "OCL_ICD_FILENAMES", "CUDA_HOME", "CUDA_PATH", "KERNEL_FOUNDRY_NVRTC",
    "KERNEL_FOUNDRY_CUDA_DRIVER", "KERNEL_FOUNDRY_NVML", "KERNEL_FOUNDRY_CUTLASS",
)  # fmt: skip
"""Each a file, a folder, or several with colons between."""

PASSED_ON: Final = (
    *_LIBRARY_VARIABLES, "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES",
    "KERNEL_FOUNDRY_NULL_DEVICES",
)  # fmt: skip
"""What a driver or compiler may need to be found; a locked process gets no other variable of
the supervisor's."""

_DEVICE_NODES: Final = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/dri")
"""`/dev/dri`: Intel GPUs through Level Zero."""


def device_nodes() -> tuple[str, ...]:
    """Return the device nodes that a locked process may use, NVIDIA's as far as there are any."""
    return (*_DEVICE_NODES, *sorted(str(path) for path in Path("/dev").glob("nvidia*")))


def readable_paths() -> tuple[str, ...]:
    """Return the existing paths that a locked process needs, without repetition."""
    wanted = [*_SYSTEM, sys.prefix, sys.base_prefix, sys.exec_prefix]
    # The environment's python is a link, often to an installation somewhere else.
    wanted.append(str(Path(sys.executable).resolve().parent.parent))
    for package in _PACKAGES:
        wanted += _package_folders(package)
    for variable in _LIBRARY_VARIABLES:
        wanted += _folders(os.environ.get(variable, ""))
    found = dict.fromkeys(path for path in wanted if path != "/" and Path(path).exists())
    return tuple(found)


def package_root() -> str:
    """Return the folder from which `evaluator_svc` is imported."""
    return str(Path(__file__).resolve().parents[2])


def _folders(paths: str) -> list[str]:
    """Return the absolute folders that a variable names, or that hold the files it names."""
    named = [Path(part) for part in paths.split(":") if part.startswith("/")]
    return [str(path if path.is_dir() else path.parent) for path in named]


def _package_folders(package: str) -> list[str]:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        return []
    return [str(Path(folder).resolve()) for folder in spec.submodule_search_locations]

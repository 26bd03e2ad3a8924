"""The host's files that a locked process may see: interpreter, packages, libraries, a device.

No home folder, no working folder, no `/etc` beyond the loader's own files, no `/proc` of other
processes; what the environment names for the loader and for CUDA is readable too.
"""

import importlib.util
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kernel_foundry.paths import data_dir

_SYSTEM: Final = (
    "/usr", "/lib", "/lib64", "/sys",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/OpenCL", "/etc/localtime",
    "/etc/alternatives",
)  # fmt: skip

_PROCESS: Final = tuple(
    f"/proc/{name}"
    for name in (
        "self", "cpuinfo", "meminfo", "stat", "version", "filesystems", "devices", "modules",
        "loadavg", "uptime", "sys", "driver",
    )
)  # fmt: skip
"""What runtimes and drivers look up; command lines of other processes may hold secrets."""

_INSTALLED: Final = ("bin", "lib", "lib64", "include")
"""What an interpreter's installation consists of."""

OWN_PACKAGES: Final = ("evaluator_svc", "kernel_foundry", "kernel_foundry_native")
"""What a locked process imports of ours."""

_PACKAGE_FOLDERS: Final = ("site-packages", "dist-packages")
"""Names of folders that packages are installed in. A `.pth` file may put those of another
environment on `sys.path`, and any other folder, which stays closed."""

_OWN_INSTALLATION: Final = "kernel_foundry-*.dist-info"
"""What lies where we are installed: in a folder of any name, by `pip install --target`."""

DEVICE_VARIABLES: Final = (
    "OCL_ICD_FILENAMES", "KERNEL_FOUNDRY_NVRTC", "KERNEL_FOUNDRY_CUDA_DRIVER",
    "KERNEL_FOUNDRY_NVML", "KERNEL_FOUNDRY_CUTLASS",
)  # fmt: skip
"""What is read when a device or a compiler is opened, and not while libraries are loaded: a fork
need not have it from what it was forked from."""

_LIBRARY_VARIABLES: Final = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", *DEVICE_VARIABLES)
"""Each a file, a folder, or several with colons between."""

PASSED_ON: Final = (
    *_LIBRARY_VARIABLES, "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES",
    "KERNEL_FOUNDRY_NULL_DEVICES",
)  # fmt: skip
"""What a driver or compiler may need to be found; a locked process gets no other variable of
the supervisor's."""

_BASIC_NODES: Final = ("/dev/null", "/dev/urandom", "/dev/random")
"""`/dev/zero` is not among them: mapped as shared, it is memory that no limit counts."""
_INTEL_NODES: Final = "/dev/dri"
_NVIDIA_NODES: Final = ("nvidiactl", "nvidia-uvm", "nvidia-caps", "nvidia[0-9]*")
"""The driver, its unified memory, parts of a divided GPU, GPUs; none for displays and switches."""
_NVIDIA_GPU: Final = re.compile(r"/dev/nvidia[0-9]+")


def own_variables(names: Iterable[str]) -> dict[str, str]:
    """Return those of the named environment variables that this process has, in the same order."""
    return {name: os.environ[name] for name in names if name in os.environ}


def device_nodes(kind: str, node: str = "") -> tuple[str, ...]:
    """Return the device nodes that a process which opens a device may use.

    Args:
        kind: Of the device; "" for a process that opens none.
        node: The device's own node, when known: none of another GPU is among them then.
    """
    if kind == "sycl":
        return (*_BASIC_NODES, _INTEL_NODES)
    if kind != "cuda":
        return _BASIC_NODES
    found = [str(path) for name in _NVIDIA_NODES for path in sorted(Path("/dev").glob(name))]
    others = [path for path in found if node and path != node and _NVIDIA_GPU.fullmatch(path)]
    return (*_BASIC_NODES, *(path for path in found if path not in others))


def readable_paths() -> tuple[str, ...]:
    """Return the existing paths that a locked process needs, without repetition."""
    wanted = [*_SYSTEM, *_PROCESS, sys.prefix, sys.base_prefix, sys.exec_prefix]
    # The environment's python is a link, often to an installation somewhere else.
    wanted.append(str(Path(sys.executable).resolve().parent.parent))
    wanted += [path for path in sys.path if _has_packages(Path(path))]
    for package in OWN_PACKAGES:
        wanted += _package_folders(package)
    for variable in _LIBRARY_VARIABLES:
        wanted += _named(os.environ.get(variable, ""))
    found = [part for path in wanted if Path(path).exists() for part in _without_secrets(path)]
    return tuple(dict.fromkeys(found))


def _has_packages(folder: Path) -> bool:
    return folder.name in _PACKAGE_FOLDERS or any(folder.glob(_OWN_INSTALLATION))


def _without_secrets(path: str) -> list[str]:
    """Return `path`, or, where a private folder lies in it, what an installation keeps there.

    An interpreter may be installed in the home folder itself, or in `~/.local` beside our data.
    """
    private = (Path.home().resolve(), data_dir().resolve())
    if not any(folder.is_relative_to(Path(path).resolve()) for folder in private):
        return [path]
    parts = (Path(path) / name for name in _INSTALLED)
    return [str(part) for part in parts if part.exists()]


def package_root() -> str:
    """Return the folder from which `evaluator_svc` is imported."""
    return str(Path(__file__).resolve().parents[2])


def _named(paths: str) -> list[str]:
    """What a variable names, with the folders of files: a library's parts lie beside it."""
    named = [Path(part) for part in paths.split(":") if part.startswith("/")]
    return [str(p) for path in named for p in ([path] if path.is_dir() else [path, path.parent])]


def _package_folders(package: str) -> list[str]:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        return []
    return [str(Path(folder).resolve()) for folder in spec.submodule_search_locations]

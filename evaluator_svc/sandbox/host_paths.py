"""What builder and runner may see of the host's files: interpreter, packages, libraries.

No home folder, no working folder, no `/etc` beyond the loader's own files.
"""

import importlib.util
import sys
from pathlib import Path
from typing import Final

_SYSTEM: Final = (
    "/usr", "/lib", "/lib64", "/sys", "/proc",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/OpenCL", "/etc/localtime",
    "/etc/alternatives",
)  # fmt: skip

_PACKAGES: Final = ("evaluator_svc", "kernel_foundry", "kernel_foundry_native")

DEVICE_NODES: Final = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/dri")
"""`/dev/dri`: Intel GPUs through Level Zero."""


def readable_paths() -> tuple[str, ...]:
    """Return the existing paths that a locked process needs, without repetition."""
    wanted = [*_SYSTEM, sys.prefix, sys.base_prefix, sys.exec_prefix]
    # The environment's python is a link, often to an installation somewhere else.
    wanted.append(str(Path(sys.executable).resolve().parent.parent))
    for package in _PACKAGES:
        wanted += _package_folders(package)
    found = dict.fromkeys(path for path in wanted if path != "/" and Path(path).exists())
    return tuple(found)


def package_root() -> str:
    """Return the folder from which `evaluator_svc` is imported."""
    return str(Path(__file__).resolve().parents[2])


def _package_folders(package: str) -> list[str]:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        return []
    return [str(Path(folder).resolve()) for folder in spec.submodule_search_locations]

"""Where NVRTC and CUDA's headers are: NVIDIA's wheels, a toolkit, or what the environment names.

Loads nothing. A library and the headers come from the same place, for their versions to agree.
"""

import importlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

_TOOLKITS = Path("/usr/local")
_MARK = "cuda_fp16.h"
"""A header that is in every place that counts."""


def find_nvrtc() -> Path | None:
    """Return NVRTC's path; None leaves the search to the system's loader."""
    for root in _roots():
        for folder in (root / "lib", root / "lib64", root / "cuda_nvrtc" / "lib"):
            found = sorted(folder.glob("libnvrtc.so.[0-9]*"))
            if found:
                return found[-1]
    return _ask_pathfinder()


def cuda_include_paths() -> list[str]:
    """Return the folders of headers: CUDA's own, CCCL, and CUTLASS where there is one."""
    return [str(path) for path in (*_cuda_folders(), *_cutlass_folders()) if path.is_dir()]


def _roots() -> Iterator[Path]:
    """Folders that look like a toolkit: named ones, wheels of CUDA 13, of 12, the usual places."""
    named = (os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH"))
    yield from (Path(path) for path in named if path)
    if importlib.util.find_spec("nvidia") is not None:
        for folder in importlib.import_module("nvidia").__path__:
            yield from sorted(Path(folder).glob("cu[0-9]*"), reverse=True)
            yield Path(folder)  # wheels of CUDA 12 have a folder for each part
    yield _TOOLKITS / "cuda"
    yield from sorted(_TOOLKITS.glob("cuda-[0-9]*"), reverse=True)


def _cuda_folders() -> tuple[Path, ...]:
    for root in _roots():
        if (root / "include" / _MARK).is_file():
            return root / "include", root / "include" / "cccl"
        if (root / "cuda_runtime" / "include" / _MARK).is_file():
            return tuple(
                root / part / "include" for part in ("cuda_runtime", "cuda_cccl", "cuda_nvcc")
            )
    return ()


def _cutlass_folders() -> tuple[Path, ...]:
    named = os.environ.get("KERNEL_FOUNDRY_CUTLASS")
    if named:
        return Path(named) / "include", Path(named) / "tools" / "util" / "include"
    wheel = importlib.util.find_spec("cutlass_library")
    if wheel is None or wheel.origin is None:
        return ()
    source = Path(wheel.origin).parent / "source"
    return source / "include", source / "tools" / "util" / "include"


def _ask_pathfinder() -> Path | None:
    """Ask NVIDIA's own search where it is installed."""
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
    except ImportError:
        return None
    try:
        found = pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path
    except pathfinder.DynamicLibNotFoundError:
        return None
    return None if found is None else Path(found)

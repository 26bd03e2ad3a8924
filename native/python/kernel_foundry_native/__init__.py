"""Native parts of Kernel Foundry: devices, launches, the measuring loop, comparison.

Nothing is loaded at import; `device_kind` loads a device kind and says why it cannot.
"""

import importlib
import importlib.metadata
import os
from importlib.resources import files
from pathlib import Path
from types import ModuleType

from kernel_foundry_native.cuda_files import cuda_include_paths, find_nvrtc
from kernel_foundry_native.errors import (
    CompileError,
    DriverError,
    DriverUnavailableError,
    LaunchError,
    LoadError,
    NativeError,
    OutOfMemoryError,
)

__all__ = [
    "CompileError",
    "DriverError",
    "DriverUnavailableError",
    "LaunchError",
    "LoadError",
    "NativeError",
    "OutOfMemoryError",
    "blocks_include_path",
    "cuda_include_paths",
    "device_kind",
    "prelude",
]

_KINDS = ("cuda", "null", "sycl")

_NVRTC_VARIABLE = "KERNEL_FOUNDRY_NVRTC"
_OPENCL_RUNTIME = "intel-opencl-rt"


def device_kind(name: str) -> ModuleType:
    """Return the module of a device kind: "null", "sycl" or "cuda".

    Raises:
        DriverUnavailableError: it was not built, or a library of it is missing; the message is
            the loader's own.
        ValueError: no such kind.
    """
    if name not in _KINDS:
        raise ValueError(f"no device kind {name!r}: expected one of {', '.join(_KINDS)}")
    if name == "sycl":
        _find_opencl_runtime()
    elif name == "cuda":
        _name_nvrtc()
    try:
        return importlib.import_module(f"kernel_foundry_native._{name}")
    except ModuleNotFoundError as error:
        raise DriverUnavailableError(
            f"this build has no {name} module: it was built without the intel-sycl-rt wheel; "
            "install the extra kernel-foundry[sycl] and build again"
        ) from error
    except ImportError as error:
        raise DriverUnavailableError(str(error)) from error


def prelude(language: str) -> str:
    """Return the text that is put before a candidate's device code in "sycl" or "cuda"."""
    return files(__name__).joinpath(f"{language}_prelude.hpp").read_text(encoding="utf-8")


def blocks_include_path(language: str) -> str:
    """Return the folder of a language's building blocks, `<kf/…>` (docs/blocks.md)."""
    return str(Path(__file__).parent / "include" / language)


def _name_nvrtc() -> None:
    """Say where NVRTC is when the system's loader would not find it."""
    found = None if os.environ.get(_NVRTC_VARIABLE) else find_nvrtc()
    if found is not None:
        os.environ[_NVRTC_VARIABLE] = str(found)


def _find_opencl_runtime() -> None:
    """Point the OpenCL loader at the wheel's CPU runtime.

    The wheel's own registration file carries a path of the machine it was built on.
    """
    if "OCL_ICD_FILENAMES" in os.environ:
        return
    try:
        listed = importlib.metadata.files(_OPENCL_RUNTIME) or ()
    except importlib.metadata.PackageNotFoundError:
        return  # a system-wide runtime may be registered properly; the device count tells
    for entry in listed:
        if entry.name == "libintelocl.so":
            os.environ["OCL_ICD_FILENAMES"] = os.path.realpath(entry.locate())
            return

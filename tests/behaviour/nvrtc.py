"""Compiles CUDA C++ with the NVRTC at hand, for tests: no driver, no GPU, no evaluator."""

import ctypes
import re
from dataclasses import dataclass
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any, Final

ARCHITECTURE: Final = "sm_90a"
_PRELUDE: Final = "#define INFINITY __int_as_float(0x7f800000)\n"
_HALF: Final = "#include <cuda_fp16.h>\n"
"""Takes the compiler longer than most of what is compiled here, so only where it is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaObject:
    """What one compile gave; empty bytes when it failed."""

    cubin: bytes
    ptx: bytes
    log: str


@cache
def absence() -> str:
    """Return why NVRTC cannot be used here; empty when it can."""
    try:
        _library()
    except OSError as error:
        return f"NVRTC: {error}"
    return ""


def build(
    source: str, *, file_name: str = "candidate.cu", options: tuple[str, ...] = ()
) -> CudaObject:
    """Compile `source` for sm_90a, as candidates are compiled."""
    nvrtc = _library()
    program = ctypes.c_void_p()
    prelude = _PRELUDE + _HALF * ("half" in source)
    text = f'{prelude}#line 1 "{file_name}"\n{source}'.encode()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"unit.cu", 0, None, None))
    folder = _toolkit() / "include"
    arguments = (
        f"-arch={ARCHITECTURE}",
        "-std=c++17",
        "-default-device",
        "-lineinfo",
        *options,
        "--ptxas-options=-v",
        f"-I{folder}",
        f"-I{folder / 'cccl'}",
    )
    array = (ctypes.c_char_p * len(arguments))(*(o.encode() for o in arguments))
    failed = nvrtc.nvrtcCompileProgram(program, len(arguments), array)
    try:
        log = _part(nvrtc, program, "ProgramLog").rstrip(b"\0").decode()
        if failed:
            return CudaObject(cubin=b"", ptx=b"", log=log)
        return CudaObject(
            cubin=_part(nvrtc, program, "CUBIN"), ptx=_part(nvrtc, program, "PTX"), log=log
        )
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _part(nvrtc: Any, program: ctypes.c_void_p, name: str) -> bytes:
    size = ctypes.c_size_t()
    _check(getattr(nvrtc, f"nvrtcGet{name}Size")(program, ctypes.byref(size)))
    data = ctypes.create_string_buffer(size.value)
    _check(getattr(nvrtc, f"nvrtcGet{name}")(program, data))
    return data.raw


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"NVRTC returned {status}")


def _toolkit() -> Path:
    found = util.find_spec("nvidia.cu13") if util.find_spec("nvidia") else None
    if found is None or not found.submodule_search_locations:
        raise OSError("the wheel nvidia-cuda-nvrtc is not installed")
    return Path(next(iter(found.submodule_search_locations)))


@cache
def _library() -> Any:
    folder = _toolkit() / "lib"
    names = sorted(p for p in folder.glob("libnvrtc.so.*") if re.fullmatch(r".*\.so\.\d+", p.name))
    if not names:
        raise OSError(f"no libnvrtc.so in {folder}")
    for built_ins in folder.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(built_ins))  # NVRTC asks for it by name alone, which a wheel cannot answer
    return ctypes.CDLL(str(names[-1]))

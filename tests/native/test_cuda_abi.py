"""The hand-declared part of the CUDA driver's interface is what NVIDIA's cuda.h declares."""

import re
from pathlib import Path

import pytest

import kernel_foundry_native as native

SOURCES = Path(__file__).parents[2] / "native" / "src"

PREFIXES = {
    "error": "CUDA_ERROR",
    "device": "CU_DEVICE_ATTRIBUTE",
    "function": "CU_FUNC_ATTRIBUTE",
    "limit": "CU_LIMIT",
    "jit": "CU_JIT",
    "stream": "CU_STREAM",
    "event": "CU_EVENT",
    "ipc": "CU_IPC_MEM",
    "memhostalloc": "CU_MEMHOSTALLOC",
}
"""What a name of ours begins with, and NVIDIA's."""


@pytest.fixture(scope="module")
def header() -> str:
    """Return the text of cuda.h, its comments left out."""
    for folder in native.cuda_include_paths():
        file = Path(folder, "cuda.h")
        if file.is_file():
            return re.sub(r"/\*.*?\*/", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    pytest.skip("no cuda.h: install the extra kernel-foundry[cuda]")


def listed_functions() -> dict[str, str]:
    """Return exported symbol and parameters of every function that is loaded."""
    text = (SOURCES / "cuda_driver.hpp").read_text(encoding="utf-8").replace("\\\n", " ")
    return dict(re.findall(r"X\(\w+, (cu\w+),\s*\((.*?)\)\)", text))


def kinds_of(parameters: str) -> list[str]:
    """Return for each parameter whether it is a pointer, and the size class of a number."""
    kinds = []
    for parameter in filter(None, (p.strip() for p in parameters.split(","))):
        text = parameter.replace("*", " * ").replace("const", "")
        if "*" in text:
            kinds.append("pointer")
            continue
        kind = " ".join(text.split()[:-1])
        kinds.append(
            {
                "unsigned int": "32", "unsigned": "32", "int": "32", "cuuint32_t": "32",
                "CUdevice": "32", "Ordinal": "32", "CUdevice_attribute": "32",
                "CUfunction_attribute": "32", "CUlimit": "32", "CUresult": "32", "Result": "32",
                "CUstreamCaptureMode": "32", "size_t": "64", "std::size_t": "64",
                "CUdeviceptr": "64", "Address": "64", "unsigned long long": "64",
                "unsigned char": "8", "CUipcMemHandle": "handle", "IpcHandle": "handle",
                "CUcontext": "object", "Context": "object", "CUmodule": "object",
                "Module": "object", "CUfunction": "object", "Function": "object",
                "CUstream": "object", "Stream": "object", "CUevent": "object", "Event": "object",
                "CUgraph": "object", "Graph": "object", "CUgraphExec": "object",
                "GraphExec": "object",
            }[kind]
        )  # fmt: skip
    return kinds


def test_functions_are_those_of_the_header(header: str) -> None:
    functions = listed_functions()
    assert len(functions) > 40
    for symbol, parameters in functions.items():
        plain = re.sub(r"_v\d+$|WithFlags$", "", symbol)
        declared = re.search(rf"CUresult CUDAAPI {plain}\(([^;]*)\);", header)
        assert declared, symbol
        theirs = "" if declared[1] == "void" else declared[1]
        assert kinds_of(parameters) == kinds_of(theirs), symbol


def test_symbols_carry_the_version_that_the_header_gives_them(header: str) -> None:
    for symbol in listed_functions():
        plain = re.sub(r"_v\d+$|WithFlags$", "", symbol)
        renamed = re.search(
            rf"^#define {plain}\s+(?:__CUDA_API_PTSZ\()?(\w+)", header, flags=re.MULTILINE
        )
        # The older function is loaded beside the newer one.
        if renamed and symbol != "cuEventElapsedTime":
            assert symbol == renamed[1]


def test_numbers_are_those_of_the_header(header: str) -> None:
    text = (SOURCES / "cuda_abi.hpp").read_text(encoding="utf-8")
    numbers = re.findall(r"^  (\w+) = (\d+),", text, flags=re.MULTILINE)
    theirs = {
        name: int(value, 0)
        for name, value in re.findall(
            r"\b(CU\w+)\s*(?:=|(?<=PORTABLE)|(?<=DEVICEMAP))\s*(0x[0-9a-fA-F]+|\d+)", header
        )
    }
    checked = 0
    for name, value in numbers:
        begin, _, rest = name.partition("_")
        if name == "success":
            continue
        assert theirs[f"{PREFIXES[begin]}_{rest.upper()}"] == int(value), name
        checked += 1
    assert checked > 35

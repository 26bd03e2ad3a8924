"""Without a driver or NVRTC the CUDA kind says what was tried."""

import os
import subprocess
import sys


def run_child(code: str, **environment: str) -> str:
    """Return what Python code prints about the error it gets."""
    child = subprocess.run(
        [sys.executable, "-c", PRELUDE + code + EPILOGUE],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return child.stdout


PRELUDE = """
import kernel_foundry_native as native
cuda = native.device_kind("cuda")
try:
"""
EPILOGUE = """
except native.DriverUnavailableError as error:
    print(error)
"""


def test_a_missing_driver_is_named_with_every_path_tried() -> None:
    said = run_child("    cuda.device_count()", KERNEL_FOUNDRY_CUDA_DRIVER="/nonexistent/cuda.so")
    assert "/nonexistent/cuda.so" in said


def test_a_library_that_is_no_driver_is_refused() -> None:
    libc = "libc.so.6"
    said = run_child("    cuda.open_device(0)", KERNEL_FOUNDRY_CUDA_DRIVER=libc)
    assert "cuInit" in said


def test_a_missing_nvrtc_is_named() -> None:
    code = "    cuda.open_compiler(architecture='sm_90')"
    said = run_child(code, KERNEL_FOUNDRY_NVRTC="/nonexistent/nvrtc.so")
    assert "/nonexistent/nvrtc.so" in said

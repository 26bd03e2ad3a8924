"""NVRTC builds CUDA code for an architecture with no GPU and no driver."""

import re
from typing import Any

import pytest

import kernel_foundry_native as native
from tests.native.cuda_case import KERNELS, SOURCE


def build(compiler: Any, source: str, *kernels: str) -> Any:
    """Build with the headers of this machine."""
    chosen = [f"-I{path}" for path in native.cuda_include_paths()]
    return compiler.compile(source=source, options=chosen, kernels=kernels)


def test_a_build_is_a_cubin_with_its_ptx_and_a_log(hopper_compiler: Any) -> None:
    built = build(hopper_compiler, SOURCE, *KERNELS)
    assert built.code.startswith(b"\x7fELF")
    for kernel in KERNELS:
        assert b".entry " + kernel.encode() in built.assembly
        assert kernel in built.log
    assert "registers" in built.log
    assert built.build_ns > 0


def test_a_compiler_tells_what_it_is(hopper_compiler: Any) -> None:
    assert hopper_compiler.architecture == "sm_90"
    assert hopper_compiler.compiler_version


def test_what_does_not_compile_is_told_with_its_place(hopper_compiler: Any) -> None:
    with pytest.raises(native.CompileError, match=r'\(2\).*"no_such_name" is undefined'):
        build(
            hopper_compiler,
            'extern "C" __global__ void k(float* x) {\n  *x = no_such_name;\n}',
            "k",
        )


def test_a_kernel_that_is_not_there_is_named(hopper_compiler: Any) -> None:
    with pytest.raises(native.CompileError, match="absent"):
        build(hopper_compiler, SOURCE, "absent")


def test_spills_are_in_the_log(hopper_compiler: Any) -> None:
    source = """
extern "C" __global__ void __launch_bounds__(1024) k(float* x) {
  float kept[200];
#pragma unroll
  for (int i = 0; i < 200; ++i) kept[i] = x[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 200; ++i) x[i * 1024 + threadIdx.x] = kept[i] * kept[199 - i];
}
"""
    log = build(hopper_compiler, source, "k").log
    spilled = re.search(r"(\d+) bytes spill stores", log)
    assert spilled is not None, log
    assert int(spilled[1]) > 0, log


def test_the_prelude_compiles_and_names_short_floats(hopper_compiler: Any) -> None:
    source = """
extern "C" __global__ void k(__half* x, __nv_bfloat16* y, uint32_t count) {
  if (threadIdx.x < count) x[threadIdx.x] = __float2half(__bfloat162float(y[threadIdx.x]));
}
"""
    built = build(hopper_compiler, native.prelude("cuda") + source, "k")
    assert b".entry k" in built.assembly


@pytest.mark.parametrize("architecture", ["sm_3", "banana"])
def test_an_architecture_that_is_none_is_refused(architecture: str) -> None:
    with pytest.raises((ValueError, native.DriverUnavailableError), match=architecture):
        native.device_kind("cuda").open_compiler(architecture=architecture)

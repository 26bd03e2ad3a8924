"""What CUDA code may take for granted, what builders are told of what fails, where files are."""

from pathlib import Path
from typing import Any

import pytest

import kernel_foundry_native as native
from evaluator_svc.policy.source import check_source
from kernel_foundry.domain.language import Language
from kernel_foundry_native import cuda_files

STANDARD_HEADERS = (
    "algorithm", "array", "bit", "cassert", "cfloat", "climits", "cmath", "complex", "concepts",
    "cstddef", "cstdint", "cstdio", "cstdlib", "cstring", "functional", "initializer_list",
    "iterator", "limits", "new", "numbers", "numeric", "optional", "ratio", "span", "tuple",
    "type_traits", "utility", "variant", "assert.h", "float.h", "limits.h", "math.h", "stddef.h",
    "stdint.h", "stdio.h", "stdlib.h", "string.h",
)  # fmt: skip
"""Every one that the policy lets pass."""

LIBRARY = """
extern "C" __global__ void k(const float* x, float* out, int count) {
  const std::size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float a = x[i], b = std::fma(a, 2.0f, 1.0f);
  std::swap(a, b);
  std::pair<float, int32_t> both{std::move(a), std::lrint(b)};
  const auto [first, second] = std::make_tuple(both.first, std::lround(x[i]) + both.second);
  static_assert(std::is_same_v<decltype(std::exp(a)), float>);
  static_assert(std::numeric_limits<int>::max() == INT_MAX && FLT_MAX > 3e38f);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(std::clamp(first, 0.0f, 1.0f));
  out[i] = std::max(first, -std::numeric_limits<float>::infinity()) + second + bits;
}
"""

COPY = """
extern "C" __global__ void k(const float* x, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = 2 * x[i];
}
"""

TOO_MUCH_SHARED = """
extern "C" __global__ void k(float* x) {
  __shared__ float all[1 << 20];
  all[threadIdx.x] = x[0];
  __syncthreads();
  x[threadIdx.x] = all[threadIdx.x ^ 1];
}
"""


def build(compiler: Any, text: str, *options: str, kernel: str = "k") -> Any:
    """Build `text` behind the prelude, as a builder does."""
    folders = [f"-I{folder}" for folder in native.cuda_include_paths()]
    return compiler.compile(
        source=native.prelude("cuda") + text, options=[*folders, *options], kernels=[kernel]
    )


@pytest.mark.parametrize(
    "text",
    [
        "constexpr float low = -INFINITY;\n" + COPY,
        "__device__ float odd = NAN;\n" + COPY,
        "static_assert(sizeof(int64_t) == 8 && sizeof(uint8_t) == 1);\n" + COPY,
        'extern "C" __global__ void k(half* x, bfloat16* y, __half2 z) { x[0] = __low2half(z); }',
        "#include <cassert>\n#include <stdlib.h>\n#include <cstring>\n#include <cuda.h>\n" + COPY,
        "#include <cuda_runtime.h>\n#include <cooperative_groups.h>\n#include <mma.h>\n" + COPY,
        "#include <cub/block/block_reduce.cuh>\n" + COPY,
        "#include <cuda_fp8.h>\n"
        'extern "C" __global__ void k(const __nv_fp8_e4m3* x, __nv_fp8_e5m2* y) '
        "{ y[0] = __nv_fp8_e5m2(float(x[0]) * 2.0f); }",
    ],
    ids=["infinity", "nan", "integers", "half", "c", "cuda", "cub", "fp8"],
)
def test_what_kernels_take_for_granted_is_there(hopper_compiler: Any, text: str) -> None:
    assert build(hopper_compiler, text).code


def test_standard_headers_that_pass_are_there(hopper_compiler: Any) -> None:
    """With their names in std, for what device code may do with them."""
    includes = "".join(f"#include <{header}>\n" for header in STANDARD_HEADERS)
    assert check_source(includes, Language.CUDA) == ()
    assert build(hopper_compiler, includes + LIBRARY).code


def test_code_may_use_all_that_the_generation_has(hopper_compiler: Any) -> None:
    assert b".target sm_90a" in build(hopper_compiler, COPY).assembly


def test_another_standard_may_be_asked_for(hopper_compiler: Any) -> None:
    text = "#if __cplusplus < 202002L\n#error too old\n#endif\n" + COPY
    assert build(hopper_compiler, text, "-std=c++20").code
    with pytest.raises(native.CompileError, match="too old"):
        build(hopper_compiler, text)


@pytest.mark.parametrize(
    ("text", "kernel", "says"),
    [
        (COPY, "kernel", "no kernel called kernel"),
        (COPY.replace('"C"', '"C++"'), "k", "no kernel called k"),
        (COPY.replace("__global__", "__device__"), "k", "no kernel called k"),
        (TOO_MUCH_SHARED, "k", "too much shared data"),
    ],
    ids=["prefix", "mangled", "no kernel", "assembler"],
)
def test_what_does_not_build_is_a_compile_error(
    hopper_compiler: Any, text: str, kernel: str, says: str
) -> None:
    with pytest.raises(native.CompileError, match=says):
        build(hopper_compiler, text, kernel=kernel)


def test_architectures_that_are_too_old_are_named_with_those_that_are_not(
    hopper_compiler: Any,
) -> None:
    assert hopper_compiler.architecture == "sm_90"
    with pytest.raises(native.DriverUnavailableError, match=r"sm_35, only for .*sm_90"):
        native.device_kind("cuda").open_compiler(0, "sm_35")


@pytest.fixture
def toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of a toolkit that the environment names."""
    for file in ("lib64/libnvrtc.so.13", "include/cuda_fp16.h", "include/cccl/cub/cub.cuh"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    return tmp_path


def test_a_named_toolkit_comes_first(toolkit: Path) -> None:
    include = toolkit / "include"
    assert cuda_files.find_nvrtc() == toolkit / "lib64" / "libnvrtc.so.13"
    assert native.cuda_include_paths() == [str(include), str(include / "cccl")]


def test_cutlass_is_where_the_environment_says(
    toolkit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_FOUNDRY_CUTLASS", str(toolkit))
    assert native.cuda_include_paths()[2:] == [str(toolkit / "include")]

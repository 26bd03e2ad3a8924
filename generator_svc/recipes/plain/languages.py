"""What differs between the languages in a plain kernel: its frame, its types, its functions."""

from dataclasses import dataclass
from typing import Final

from generator_svc.recipes.plain.tensors import NUMBER, TRUTH, WHOLE
from kernel_foundry.domain.language import Language

KINDS: Final = {
    **dict.fromkeys(("float32", "float16", "bfloat16"), NUMBER),
    **dict.fromkeys(("int64", "int32", "int16", "int8", "uint8"), WHOLE),
    "bool": TRUTH,
}
"""What elements of each data type are computed in; others no plain kernel reads."""


@dataclass(frozen=True, kw_only=True)
class KernelFrame:
    """How a language writes what is around a kernel's loop."""

    preamble: str
    head: str
    """With {name} and {parameters}; {block_parameters} where threads share an element."""
    each: str
    """Sets `first` and `stride` where every thread has elements of its own."""
    shared: str
    """Sets `lane`, `first`, `stride` and `parts` of {kind} where a block shares an element."""
    block_parameter: str
    """The parameter that `shared` needs; empty: none."""
    barrier: str
    prefix: str
    """Before a mathematical function."""
    types: dict[str, str]
    """C++ type of a data type in memory, where it is not that of computing."""
    narrowing: dict[str, str]
    """How an element is stored, with {0}, where an assignment does not do."""
    widening: dict[str, str]
    """How an element is loaded, with {0}, where a conversion does not do."""


_WHOLE_TYPES = {"int32": "int32_t", "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t"}

CUDA: Final = KernelFrame(
    preamble="",
    head='extern "C" __global__ void __launch_bounds__(BLOCK) {name}({parameters}) {{\n',
    each="const Index first = (Index)blockIdx.x * BLOCK + threadIdx.x, "
    "stride = (Index)gridDim.x * BLOCK;",
    shared="__shared__ {kind} parts[BLOCK];\n  const int lane = threadIdx.x;\n"
    "  const Index first = blockIdx.x, stride = gridDim.x;",
    block_parameter="",
    barrier="__syncthreads();",
    prefix="",
    types={**_WHOLE_TYPES, "float16": "__half", "bfloat16": "__nv_bfloat16"},
    narrowing={"float16": "__float2half({0})", "bfloat16": "__float2bfloat16({0})"},
    widening={"float16": "__half2float({0})", "bfloat16": "__bfloat162float({0})"},
)

_BFLOAT16 = """\
typedef sycl::ext::oneapi::bfloat16 BF16;
static inline float widen(BF16 value) {
  return sycl::bit_cast<float>((unsigned)sycl::bit_cast<uint16_t>(value) << 16);
}
static inline BF16 narrow(float value) {  // to the nearest, ties to even
  const unsigned bits = sycl::bit_cast<unsigned>(value);
  const unsigned rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return sycl::bit_cast<BF16>((uint16_t)((value != value ? bits | 0x400000u : rounded) >> 16));
}
"""
"""By bits: the conversions of SYCL's own type ask for instructions that not every CPU has."""

SYCL: Final = KernelFrame(
    preamble=_BFLOAT16,
    head='extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))\n'
    "void {name}({parameters}) {{\n"
    "  const auto item = syclext::this_work_item::get_nd_item<1>();\n",
    each="const Index first = item.get_global_id(0), stride = item.get_global_range(0);",
    shared="const int lane = item.get_local_id(0);\n"
    "  const Index first = item.get_group(0), stride = item.get_group_range(0);",
    block_parameter="sycl::local_accessor<{kind}, 1> parts",
    barrier="sycl::group_barrier(item.get_group());",
    prefix="sycl::",
    types={**_WHOLE_TYPES, "float16": "sycl::half", "bfloat16": "BF16"},
    narrowing={"bfloat16": "narrow({0})"},
    widening={"bfloat16": "widen({0})"},
)

FRAMES: Final = {Language.CUDA: CUDA, Language.SYCL: SYCL}

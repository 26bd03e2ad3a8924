"""Headers by the names in a source: what builds with them is what builds with all."""

import pytest

import kernel_foundry_native as native
from kernel_foundry_native.sycl_headers import (
    ALL_HEADERS,
    header_option,
    needed_headers,
    with_all_headers,
)

_KERNEL = """
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void k(const float* x, float* out{parameters}) {{
  const auto item = syclext::this_work_item::get_nd_item<1>();
  const auto i = item.get_global_id(0);
  {body}
}}
"""


def _kernel(body: str, parameters: str = "") -> str:
    return _KERNEL.format(body=body, parameters=parameters)


SOURCES = {
    "no header": _kernel("out[i] = x[i];"),
    "mathematics": _kernel("out[i] = sycl::native::exp(sycl::fmax(x[i], 0.0f));"),
    "a sum over a group": _kernel(
        "out[i] = sycl::reduce_over_group(item.get_group(), x[i], sycl::plus<float>());"
    ),
    "lanes": _kernel("out[i] = sycl::permute_group_by_xor(item.get_sub_group(), x[i], 1);"),
    "local memory": _kernel(
        "tile[item.get_local_id(0)] = x[i]; sycl::group_barrier(item.get_group());"
        " out[i] = tile[0];",
        ", sycl::local_accessor<float, 1> tile",
    ),
    "atomics": _kernel(
        "sycl::atomic_ref<float, sycl::memory_order::relaxed, sycl::memory_scope::device>(out[0])"
        " += x[i];"
    ),
    "vectors": _kernel("sycl::float4 v; v.load(i, x); out[i] = sycl::dot(v, v);"),
    "halves": _kernel("out[i] = exp(half(x[i])) + float(bfloat16(x[i]));"),
    "limits": _kernel("out[i] = std::fmax(x[i], -std::numeric_limits<float>::infinity());"),
}


@pytest.mark.sycl
@pytest.mark.parametrize("name", SOURCES)
def test_the_object_is_that_of_all_headers(compiler, name):
    named = (header_option(SOURCES[name]),)
    objects = [
        bytes(
            compiler.compile(
                source=native.prelude("sycl") + SOURCES[name], options=options, kernels=["k"]
            ).code
        )
        for options in (with_all_headers(named), named)
    ]
    assert objects[0] == objects[1]


def test_a_name_that_nobody_knows_takes_all():
    assert needed_headers(SOURCES["no header"]) == 0
    assert needed_headers(SOURCES["local memory"]) not in (0, ALL_HEADERS)
    for body in ("sycl::stream s;", "using namespace sycl;", "A ## B"):
        assert needed_headers(_kernel(body)) == ALL_HEADERS

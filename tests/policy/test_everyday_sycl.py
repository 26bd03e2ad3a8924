"""Everyday C++ of SYCL kernels is built, and no rule refuses or suspects what it becomes."""

from collections.abc import Iterator
from typing import Any

import pytest

import kernel_foundry_native as native
from evaluator_svc.inspector import inspect_spirv
from evaluator_svc.policy.source import check_source
from kernel_foundry.domain.finding import Severity
from kernel_foundry_native.sycl_headers import header_option

KERNEL = """\
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void everyday_{name}(const float* x, float* out, int n) {{
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i >= n) return;
"""
TABLE = f"static constexpr float T[2049] = {{{', '.join(f'{i}.5f' for i in range(2049))}}};"
BODIES = {
    "lrint": "out[i] = std::lrint(x[i]) + std::llrint(x[i]) + std::lrint(double(x[i]));",
    "lround": "out[i] = std::lround(x[i]) + std::llround(double(x[i])) + lroundf(x[i]);",
    "rint": "out[i] = std::rint(x[i]) + std::nearbyint(x[i]) + std::round(x[i]) + rint(x[i]);",
    "class": "out[i] = std::isnormal(x[i]) + std::isfinite(x[i]) + std::signbit(x[i]);",
    "utility": "float a = 1, b = x[i]; std::swap(a, b); out[i] = std::pair(std::move(a), b).first;",
    "prefetch": "__builtin_prefetch(x + i + 64); __builtin_prefetch(x, 0, 3); out[i] = x[i];",
    "table": f"{TABLE} out[i] = T[i % 2049] * x[i];",
    "unreachable": "if (i < 0) __builtin_unreachable(); out[i] = x[i];",
    "assume": "__builtin_assume(i >= 0); out[i] = x[i];",
    "memcpy": "float v; __builtin_memcpy(&v, x + i, 4); out[i] = v;",
    "frexp": "int e; const float m = std::frexp(x[i], &e); out[i] = std::ldexp(m, e + 1);",
    "modf": "float p; out[i] = std::modf(x[i], &p) + p;",
    "gamma": "out[i] = std::tgamma(x[i]) + std::lgamma(x[i]);",
}


@pytest.fixture(scope="module")
def compiler() -> Iterator[Any]:
    try:
        opened = native.device_kind("sycl").open_compiler()
    except native.NativeError as error:
        pytest.skip(str(error))
    yield opened
    opened.release()


@pytest.mark.sycl
def test_everyday_code_is_built_and_passes(compiler: Any) -> None:
    """All kernels in one build: most of a build's time is the headers'."""
    names = tuple(f"everyday_{name}" for name in BODIES)
    code = "".join(f"{KERNEL.format(name=n)}  {body}\n}}\n" for n, body in BODIES.items())
    source, headers = native.prelude("sycl") + code, header_option(code)
    built = compiler.compile(source=source, options=[headers], kernels=list(names))
    found = (*check_source(code, "sycl"), *inspect_spirv(built.code, names).findings)
    assert [(f.rule, f.message) for f in found if f.severity is not Severity.INFO] == []

"""A small task, device and device code that the plan tests share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kernel_foundry.plan import (
    DeviceLimits,
    LaunchSequence,
    NameTable,
    ScalarName,
    TensorName,
    bind,
    constants,
    default_configuration,
    kernels,
    parse,
)

SYCL_CODE = """\
#define KERNEL SYCL_EXT_ONEAPI_FUNCTION_PROPERTY
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scale(const float* x, float* out, int n, float factor) { out[0] = x[0] * factor; }

extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<2>))
void tile(const float* x, float* out, sycl::local_accessor<float, 1> cache, size_t n) {}
"""
CUDA_CODE = """\
extern "C" __global__ void __launch_bounds__(256) scale(
    const float* __restrict__ x, float* __restrict__ out, int n, float factor) {}
extern "C" __global__ void sums(const __half* h, double* d, unsigned char* flags, int64_t n) {}
"""


@pytest.fixture(scope="session")
def names() -> NameTable:
    def tensor(name: str, shape: tuple[int, ...], role: Any, **more: str) -> TensorName:
        return TensorName(
            name=name,
            dtype=more.get("dtype", "float32"),
            shape=shape,
            role=role,
            path=more.get("path", name),
        )

    return NameTable(
        tensors=(
            tensor("x", (6, 1000), "input"),
            tensor("mask", (6,), "input", dtype="bool"),
            tensor("norm_weight", (1000,), "parameter", path="norm.weight"),
            tensor("half_weight", (1000,), "buffer", path="half.weight", dtype="float16"),
            tensor("out", (6, 1000), "output"),
        ),
        scalars=(
            ScalarName(name="eps", value=1e-5),
            ScalarName(name="n_head", value=4),
            ScalarName(name="stride", value=(2, 1)),
            ScalarName(name="mode", value="mean"),
        ),
    )


@pytest.fixture(scope="session")
def device() -> DeviceLimits:
    """A device with limits that are easy to exceed."""
    return DeviceLimits(
        compute_units=2,
        sub_group_size=16,
        shared_bytes=49_152,
        max_block=1_024,
        memory_bytes=1 << 20,
    )


@pytest.fixture(scope="session")
def bind_text(names: NameTable, device: DeviceLimits) -> Callable[..., LaunchSequence]:
    """Parse and bind a plan against the shared task."""

    def run(
        plan_text: str,
        *,
        language: str = "sycl",
        code: str | None = None,
        configuration: Mapping[str, Any] | None = None,
        table: NameTable = names,
        library_ops: tuple[str, ...] = (),
    ) -> LaunchSequence:
        plan = parse(plan_text)
        chosen = default_configuration(plan) if configuration is None else configuration
        source = code or (SYCL_CODE if language == "sycl" else CUDA_CODE)
        macros = {**chosen, **constants(plan, table, chosen, device)}
        return bind(
            plan,
            kernels(source, language, macros),
            names=table,
            configuration=chosen,
            device=device,
            language=language,
            library_ops=library_ops,
        )

    return run

"""SYCL spellings: operations, kernel heads, and functions that recipes bring along."""

from generator_svc.recipes.cpp_operations import USES_ERF, USES_EXP, Spelling
from generator_svc.recipes.genome import Genes
from generator_svc.recipes.kernel_templates import kernel_text

_NAMES = {
    "abs": "__builtin_elementwise_abs",
    "sqrt": "__builtin_elementwise_sqrt",
    "log": "__builtin_elementwise_log",
    "fmax": "__builtin_elementwise_max",
    "pow": "__builtin_elementwise_pow",
}

_REDUCERS = {"sum": "sycl::plus<float>()", "max": "sycl::maximum<float>()",
             "min": "sycl::minimum<float>()"}  # fmt: skip


def sycl_spelling(genes: Genes) -> Spelling:
    """Return the spelling of operations.

    Genes "exp" and "erf" may ask for our own functions in place of the library's; where gene "who"
    makes elements explicit vectors, the error function always is our own.
    """
    is_vector = genes.get("who") == "vector"
    polynomial_exp = genes.get("exp") == "polynomial"
    polynomial_erf = genes.get("erf") == "polynomial" or is_vector
    brought: list[tuple[frozenset[str], str]] = []
    if polynomial_exp:
        brought.append((USES_EXP, kernel_text("sycl/kernels/exp.hpp", is_vector=is_vector)))
    if polynomial_erf:
        brought.append((USES_ERF, kernel_text("sycl/kernels/erf.hpp")))
    return Spelling(
        names={
            **_NAMES,
            "exp": "recipe_exp" if polynomial_exp else "__builtin_elementwise_exp",
            "erf": "recipe_erf" if polynomial_erf else "sycl::erf",
        },
        brought=tuple(brought),
    )


def vector_types() -> str:
    """Return explicit vectors and their accesses to memory."""
    return kernel_text("sycl/kernels/vectors.hpp")


def vector_stream() -> str:
    """Return the store of vectors that stay out of the caches."""
    return kernel_text("sycl/kernels/vector_stream.hpp")


def reduce_over(group: str, kind: str, value: str) -> str:
    """Return the reduction of `value` over the work-items of `group`."""
    return f"sycl::reduce_over_group({group}, {value}, {_REDUCERS[kind]})"


def kernel_head(name: str, parameters: list[str], *, sub_group: bool) -> str:
    """Return a one-dimensional kernel's head, with a fixed sub-group size SG when wanted."""
    properties = "SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))"
    if sub_group:
        properties += "\nSYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::sub_group_size<SG>))"
    return f'extern "C" {properties}\nvoid {name}({", ".join(parameters)}) {{\n'

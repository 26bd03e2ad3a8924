"""SYCL spellings: operations, kernel heads, and the blocks that they are in."""

from generator_svc.recipes.cpp_operations import USES_ERF, USES_EXP, Spelling
from generator_svc.recipes.genome import Genes

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

    Genes "exp" and "erf" may ask for our blocks' functions in place of the library's; where gene
    "who" makes elements explicit vectors, the error function always is the blocks'.
    """
    is_vector = genes.get("who") == "vector"
    polynomial_exp = genes.get("exp") == "polynomial"
    polynomial_erf = genes.get("erf") == "polynomial" or is_vector
    own = (USES_EXP if polynomial_exp else frozenset()) | (
        USES_ERF if polynomial_erf else frozenset()
    )
    return Spelling(
        names={
            **_NAMES,
            "exp": "kf::exp" if polynomial_exp else "__builtin_elementwise_exp",
            "erf": "kf::erf" if polynomial_erf else "sycl::erf",
        },
        brought=((own, "#include <kf/math.hpp>\n"),),
    )


def reduce_over(group: str, kind: str, value: str) -> str:
    """Return the reduction of `value` over the work-items of `group`."""
    return f"sycl::reduce_over_group({group}, {value}, {_REDUCERS[kind]})"


def kernel_head(name: str, parameters: list[str], *, sub_group: bool) -> str:
    """Return a one-dimensional kernel's head, with a fixed sub-group size SG when wanted."""
    properties = "SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))"
    if sub_group:
        properties += "\nSYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::sub_group_size<SG>))"
    return f'extern "C" {properties}\nvoid {name}({", ".join(parameters)}) {{\n'

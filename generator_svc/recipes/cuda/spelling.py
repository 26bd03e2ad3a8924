"""CUDA spellings: operations, and the functions and types that kernels bring along."""

from generator_svc.recipes.cpp_operations import USES_ERF, Spelling
from generator_svc.recipes.genome import Genes
from generator_svc.recipes.kernel_templates import kernel_text

_NAMES = {"abs": "fabsf", "sqrt": "sqrtf", "log": "logf", "fmax": "fmaxf", "pow": "powf"}

_OWN = {
    "max": "fmaxf({0}, {1})",
    "min": "fminf({0}, {1})",
    "rsqrt": "rsqrtf({0})",
}

_FAST = {
    # Two units in the last place; the quotient is 0 where it is below 1e-37 anyway.
    "tanh": "(1.0f - __fdividef(2.0f, 1.0f + {exp}(2.0f * {0})))",
    "sigmoid": "__fdividef(1.0f, 1.0f + {exp}(-{0}))",
    "silu": "__fdividef({0}, 1.0f + {exp}(-{0}))",
    "gelu_tanh": "__fdividef({0}, "
    "1.0f + {exp}(-1.59576912f * ({0} + 0.044715f * {0} * {0} * {0})))",
}

_JOINS = {"sum": "Sum", "max": "Maximum", "min": "Minimum"}
"""Types that join two parts of a reduction."""


def cuda_spelling(genes: Genes) -> Spelling:
    """Return the spelling of operations.

    Gene "exp" may ask for the hardware's exponential and quotient in place of the library's, gene
    "erf" for our own error function.
    """
    fast, polynomial_erf = genes.get("exp") == "fast", genes.get("erf") == "polynomial"
    return Spelling(
        names={
            **_NAMES,
            "exp": "__expf" if fast else "expf",
            "erf": "recipe_erf" if polynomial_erf else "erff",
        },
        own={**_OWN, **(_FAST if fast else {})},
        brought=((USES_ERF, kernel_text("cuda/kernels/erf.cuh")),) if polynomial_erf else (),
    )


def memory_functions(*, streaming: bool) -> str:
    """Return packs and their accesses; with `streaming`, what is used once leaves the cache."""
    return kernel_text("cuda/kernels/packs.cuh", is_streaming=streaming)


def over_team(kind: str, place: int, value: str) -> str:
    """Return the reduction of `value` over the threads that share a row."""
    return f"over_team<{_JOINS[kind]}, {place}>({value})"


def team_functions(spelling: Spelling, kinds: frozenset[str], team: str) -> str:
    """Return what `over_team` needs for the reductions `kinds`.

    Args:
        spelling: Of operations.
        kinds: "sum", "max", "min".
        team: "warp", "block", or "tree": a block that reduces by barriers alone.
    """
    joins = "".join(
        f"struct {name} {{\n  static __device__ __forceinline__ float join(float a, float b) "
        f"{{ return {spelling.join(kind, 'a', 'b')}; }}\n}};\n"
        for kind, name in _JOINS.items()
        if kind in kinds
    )
    return joins + kernel_text(f"cuda/kernels/team_{team}.cuh")

"""Which preprocessor directives, headers and pragmas device code may have.

Knows nothing of what stands between directives.
"""

import re
from collections.abc import Iterator
from typing import Final

from evaluator_svc.policy.finding import short
from evaluator_svc.policy.lexemes import SourceText
from evaluator_svc.policy.violation import Violation
from kernel_foundry.domain.language import Language

_STANDARD_HEADERS: Final = frozenset(
    {
        *("algorithm", "array", "bit", "cassert", "cfloat", "climits", "cmath", "complex"),
        *("concepts", "cstddef", "cstdint", "cstring", "functional", "initializer_list"),
        *("limits", "numbers", "numeric", "tuple", "type_traits", "utility"),
        *("assert.h", "float.h", "limits.h", "math.h", "stddef.h", "stdint.h", "string.h"),
    }
)
_HEADERS: Final[dict[Language, frozenset[str]]] = {
    Language.SYCL: _STANDARD_HEADERS | {"CL/sycl.hpp"},
    Language.CUDA: _STANDARD_HEADERS
    | {
        *("cooperative_groups.h", "cuda.h", "cuda_awbarrier.h", "cuda_awbarrier_primitives.h"),
        *("cuda_bf16.h", "cuda_fp16.h", "cuda_fp4.h", "cuda_fp6.h", "cuda_fp8.h"),
        *("cuda_pipeline.h", "cuda_pipeline_primitives.h", "cuda_runtime.h"),
        *("device_launch_parameters.h", "math_constants.h", "mma.h", "vector_types.h"),
    },
}
_HEADER_FOLDERS: Final[dict[Language, tuple[str, ...]]] = {
    Language.SYCL: ("sycl/",),
    Language.CUDA: (
        "cooperative_groups/",
        "crt/",
        "cub/",
        "cuda/",
        "cute/",
        "cutlass/",
        "nv/",
        "thrust/",
    ),
}
"""Folders all of whose headers may be included."""
_ALLOWED_HEADERS: Final[dict[Language, str]] = {
    Language.SYCL: "sycl/… and standard headers such as cmath, cstdint, limits, array",
    Language.CUDA: "cub/…, cuda/std/…, cute/…, cutlass/…, cuda_fp16.h, mma.h and standard headers "
    "such as cstdint",
}

_DIRECTIVE: Final = re.compile(r"^[ \t\v\f]*#[ \t\v\f]*(\w+)([^\n]*)$", re.M)
# Not there: error and warning, whose text the compiler reads without regard to comments, and line,
# which would make diagnostics point elsewhere.
_DIRECTIVES: Final = frozenset(
    {
        *("define", "undef", "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else"),
        *("endif", "pragma", "include"),
    }
)
_INCLUDE: Final = re.compile(r"""(?:<([\w./+-]+)>|"([\w./+-]+)")""")
_PRAGMA: Final = re.compile(
    r"once|ivdep|nounroll|unroll(?:\s*\(\s*\w+\s*\)|\s+\w+)?"
    r"|(?:clang|GCC)\s+(?:loop|unroll|ivdep|fp)\b[\w\s(),]*"
    r"|STDC\s+FP_CONTRACT\s+\w+"
    r"|nv_diag_(?:suppress|default)\s+[\w ,]+"
)


def directive_violations(text: SourceText, language: Language) -> Iterator[Violation]:
    """Iterate over the directives that are not allowed."""
    for match in _DIRECTIVE.finditer(text.bare):
        # A header's name may be a literal: blank in `bare`, there in `plain`.
        rest = text.plain[match.start(2) : match.end(2)].strip()
        for rule, message, hint in _directive(match[1], rest, language):
            yield Violation(rule=rule, message=message, hint=hint, offset=match.start(1))


def _directive(name: str, rest: str, language: Language) -> Iterator[tuple[str, str, str]]:
    if name not in _DIRECTIVES:
        hint = "#include, #define and conditionals are"
        yield "source.directive", f"#{short(name)} is not allowed", hint
    elif name == "pragma" and not _PRAGMA.fullmatch(rest):
        yield "source.pragma", "this #pragma is not allowed", "#pragma unroll, ivdep and once are"
    elif name == "include":
        reason = _include(rest, language)
        if reason:
            yield "source.include", reason, f"allowed: {_ALLOWED_HEADERS[language]}"


def _include(rest: str, language: Language) -> str:
    """Return why a header may not be included; empty when it may."""
    match = _INCLUDE.fullmatch(rest)
    if match is None:
        return "an #include must name its header literally"
    name: str = match[1] or match[2]
    if not {"", ".", ".."}.isdisjoint(name.split("/")):
        return "absolute and relative paths cannot be included"
    if name in _HEADERS[language] or name.startswith(_HEADER_FOLDERS[language]):
        return ""
    return f"{short(name)} cannot be included"

"""Refuses device code that would bring files, assembly or tricks before the compiler.

Looks at the text as the compiler's first phases leave it. A refusal quotes the candidate's own
words only, never a file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from evaluator_svc.policy.finding import MAX_FINDINGS, refusal, short
from evaluator_svc.policy.lexemes import SourceText, read
from kernel_foundry.domain.finding import Finding
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

_LOOSE_SPLICE: Final = re.compile(r"\\[ \t\v\f]+[\r\n]")
"""Some compilers join these lines and some do not."""

_MAX_CHARACTERS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class _Rule:
    """Something that may stand nowhere outside comments and literals."""

    pattern: re.Pattern[str]
    message: str
    hint: str


_RULES: Final = (
    _Rule(
        re.compile(r"\?\?[=/'()!<>-]|%:|<:(?!:)|:>"),
        "digraphs and trigraphs are not allowed",
        "write # [ ] themselves",
    ),
    _Rule(re.compile(r"\\[uUN]"), "escaped names are not allowed", "write the name itself"),
    _Rule(
        re.compile(r"\b(?:__has_include|__has_include_next|__has_embed)\b"),
        "asking which files there are is not allowed",
        "include what is needed",
    ),
    _Rule(
        re.compile(r"\b(?:_Pragma|__pragma)\b"),
        "_Pragma is not allowed",
        "write #pragma unroll on a line of its own",
    ),
    _Rule(
        re.compile(r"^[ \t]*(?:export[ \t]+)?(?:import|module)\b[ \t]*[<\"\w:;]", re.M),
        "modules are not allowed",
        "include a header",
    ),
)
_ASSEMBLY: Final = _Rule(
    re.compile(r"\b(?:asm|__asm|__asm__)\b"),
    "inline assembly is not allowed in SYCL: on a CPU it runs in the host's process",
    "the compiler maps sub-groups to vector instructions by itself",
)


def check_source(device_code: str, language: str) -> tuple[Finding, ...]:
    """Return why the device code may not be compiled; empty when it may.

    Args:
        device_code: The candidate's source as written.
        language: A `Language` value.
    """
    if len(device_code) > _MAX_CHARACTERS:
        return (refusal(f"{len(device_code)} characters; at most {_MAX_CHARACTERS} are read"),)
    if "\0" in device_code:
        return (refusal("the source holds a NUL character", "write plain text"),)
    loose = _LOOSE_SPLICE.search(device_code)
    if loose is not None:
        line = device_code.count("\n", 0, loose.start()) + 1
        hint = "end the line with the backslash"
        return (refusal("blanks after a line's last backslash are not allowed", hint, line),)
    text = read(device_code)
    # Both change where literals end, and so what is a comment: the reading below would be void.
    for offset, what in ((text.raw_string, "raw strings"), (text.joined.find("??/"), "trigraphs")):
        if offset >= 0:
            return (refusal(f"{what} are not allowed", "do without", text.line(offset)),)
    found = sorted(_violations(text, Language(language)), key=lambda v: v[0])
    return tuple(refusal(message, hint, text.line(at)) for at, message, hint in found)[
        :MAX_FINDINGS
    ]


def _violations(text: SourceText, language: Language) -> Iterator[tuple[int, str, str]]:
    for match in _DIRECTIVE.finditer(text.bare):
        # A header's name may be a literal: blank in `bare`, there in `plain`.
        rest = text.plain[match.start(2) : match.end(2)].strip()
        for message, hint in _directive(match[1], rest, language):
            yield match.start(1), message, hint
    rules = (*_RULES, _ASSEMBLY) if language is Language.SYCL else _RULES
    for rule in rules:
        for match in rule.pattern.finditer(text.bare):
            yield match.start(), rule.message, rule.hint


def _directive(name: str, rest: str, language: Language) -> Iterator[tuple[str, str]]:
    if name not in _DIRECTIVES:
        yield f"#{short(name)} is not allowed", "#include, #define and conditionals are"
    elif name == "pragma" and not _PRAGMA.fullmatch(rest):
        yield "this #pragma is not allowed", "#pragma unroll, ivdep and once are"
    elif name == "include":
        reason = _include(rest, language)
        if reason:
            yield reason, f"allowed: {_ALLOWED_HEADERS[language]}"


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

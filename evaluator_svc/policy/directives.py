"""Which preprocessor directives, headers and pragmas device code may have.

What stands between directives is for `source_patterns`.
"""

import re
from collections.abc import Iterator
from typing import Final

from evaluator_svc.languages import backend_of
from evaluator_svc.policy.finding import short
from evaluator_svc.policy.lexemes import SourceText
from evaluator_svc.policy.violation import Violation
from kernel_foundry.domain.language import Language

_STANDARD_HEADERS: Final = frozenset(
    {
        *("algorithm", "array", "bit", "cassert", "cfloat", "climits", "cmath", "complex"),
        *("concepts", "cstddef", "cstdint", "cstring", "functional", "initializer_list"),
        *("limits", "numbers", "numeric", "tuple", "type_traits", "utility"),
        *("cstdio", "cstdlib", "iterator", "new", "optional", "ratio", "span", "variant"),
        *("assert.h", "float.h", "limits.h", "math.h", "stddef.h", "stdint.h", "stdio.h"),
        *("stdlib.h", "string.h"),
    }
)

_DIRECTIVE: Final = re.compile(r"^[ \t\v\f]*#[ \t\v\f]*(\w+)([^\n]*)$", re.M)
# Not there: line, which would make diagnostics point elsewhere.
_DIRECTIVES: Final = frozenset(
    {
        *("define", "undef", "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else"),
        *("endif", "pragma", "include", "error", "warning"),
    }
)
_MESSAGES: Final = ("error", "warning")
_COMMENT: Final = re.compile(r"/\*|//")
_INCLUDE: Final = re.compile(r"""(?:<([\w./+-]+)>|"([\w./+-]+)")""")
_LOOP_PRAGMA: Final = re.compile(
    r"ivdep|nounroll|unroll(?:\b[\w\s()+*/%<>?:-]*)?"
    r"|(?:clang|GCC)\s+(?:loop|unroll|nounroll|ivdep)\b[\w\s(),]*"
)
_OTHER_PRAGMA: Final = re.compile(
    r"once|(?:end)?region\b[\w\s]*"
    r"|(?:clang|GCC)\s+fp\b[\w\s(),]*"
    r"|STDC\s+FP_CONTRACT\s+\w+"
    r"|(?:clang|GCC)\s+diagnostic\s+(?:push|pop|(?:ignored|warning)\s+\"-W[\w+=-]+\")"
    r"|(?:nv_)?diag_(?:suppress|default|warning|remark|once)\s*=?\s*[\w ,]+"
    r"|nv_diagnostic\s+(?:push|pop)|(?:nv|hd)_(?:exec_check|warning)_disable"
)
_QUOTED: Final = re.compile(r"""\s*\(\s*"([^"\\\n]{0,200})"\s*\)""")
_PARENTHESES: Final = re.compile(r"\s*\(([^()\n]{0,200})\)")


def directive_violations(text: SourceText, language: Language) -> Iterator[Violation]:
    """Iterate over the directives that are not allowed."""
    for match in _DIRECTIVE.finditer(text.bare):
        # A header's name may be a literal: blank in `bare`, there in `plain`.
        rest = text.plain[match.start(2) : match.end(2)].strip()
        if match[1] in _MESSAGES and _COMMENT.search(text.joined[match.start(2) : match.end(2)]):
            # The compiler may read such a line without regard to comments.
            message, hint = f"#{match[1]} holds a comment", "leave the comment out"
            yield Violation(
                rule="source.directive", message=message, hint=hint, offset=match.start(1)
            )
        for rule, message, hint in _directive(match[1], rest, language):
            yield Violation(rule=rule, message=message, hint=hint, offset=match.start(1))


def is_loop_pragma(text: SourceText, offset: int) -> bool:
    """Return whether what follows a `_Pragma` asks for unrolling or the like, spelt out."""
    match = _QUOTED.match(text.plain, offset)
    return match is not None and _LOOP_PRAGMA.fullmatch(match[1].strip()) is not None


def probes_allowed_header(text: SourceText, offset: int, language: Language) -> bool:
    """Return whether what follows a `__has_include` is a header that may be included."""
    match = _PARENTHESES.match(text.plain, offset)
    return match is not None and not _include(match[1].strip(), language)


def _directive(name: str, rest: str, language: Language) -> Iterator[tuple[str, str, str]]:
    if name not in _DIRECTIVES:
        hint = "#include, #define and conditionals are"
        yield "source.directive", f"#{short(name)} is not allowed", hint
    elif name == "pragma" and not (_LOOP_PRAGMA.fullmatch(rest) or _OTHER_PRAGMA.fullmatch(rest)):
        yield "source.pragma", "this #pragma is not allowed", "#pragma unroll, ivdep and once are"
    elif name == "include":
        reason = _include(rest, language)
        if reason:
            yield "source.include", reason, f"allowed: {backend_of(language).headers_hint}"


def _include(rest: str, language: Language) -> str:
    """Return why a header may not be included; empty when it may."""
    match = _INCLUDE.fullmatch(rest)
    if match is None:
        return "an #include must name its header literally"
    name: str = match[1] or match[2]
    if not {"", ".", ".."}.isdisjoint(name.split("/")):
        return "absolute and relative paths cannot be included"
    backend = backend_of(language)
    if name in _STANDARD_HEADERS | backend.headers or name.startswith(backend.header_folders):
        return ""
    return f"{short(name)} cannot be included"

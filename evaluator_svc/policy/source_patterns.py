"""Patterns that the rules find between the directives of device code.

Every pattern is bounded in what it looks at from one place, so that hostile text costs no more
than honest text. `directives.py` checks the directives.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from evaluator_svc.policy.directives import is_loop_pragma, probes_allowed_header
from evaluator_svc.policy.lexemes import SourceText
from evaluator_svc.policy.limits import LARGE_EXTENT, MAX_LIST_NUMBERS, MAX_STRING_CHARACTERS
from evaluator_svc.policy.reading import speaks_to_reader
from evaluator_svc.policy.rules import rule_of
from evaluator_svc.policy.violation import Violation
from kernel_foundry.domain.language import Language

LOOSE_SPLICE: Final = re.compile(r"\\[ \t\v\f]+[\r\n]")
"""Some compilers join these lines and some do not."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Something that may stand nowhere outside comments and literals."""

    rule: str
    pattern: re.Pattern[str]
    message: str
    hint: str


_NUMBER: Final = r"(?:0[xX][0']{0,20}[1-9a-fA-F][\w']{0,40}|[1-9][\w']{0,40})"
"""A whole number other than zero, with its suffix."""

_PATTERNS: Final = (
    _Pattern(
        "source.digraph",
        re.compile(r"\?\?[=/'()!<>-]|%:|<:(?!:)|:>"),
        "digraphs and trigraphs are not allowed",
        "write # [ ] themselves",
    ),
    _Pattern(
        "source.escaped_name",
        re.compile(r"\\[uUN]"),
        "escaped names are not allowed",
        "write the name itself",
    ),
    _Pattern(
        "source.file_probe",
        re.compile(r"\b(?:__has_include|__has_include_next|__has_embed)\b"),
        "asking which files there are is not allowed",
        "include what is needed",
    ),
    _Pattern(
        "source.pragma_operator",
        re.compile(r"\b(?:_Pragma|__pragma)\b"),
        "this _Pragma is not allowed",
        'write _Pragma("unroll 4") with its text in place, or #pragma on a line of its own',
    ),
    _Pattern(
        "source.module",
        re.compile(r"^[ \t]*(?:export[ \t]+)?(?:import|module)\b[ \t]*[<\"\w:;]", re.M),
        "modules are not allowed",
        "include a header",
    ),
    _Pattern(
        "source.assembly",
        re.compile(r"\b(?:asm|__asm|__asm__)\b"),
        "inline assembly is not allowed in SYCL: on a CPU it runs in the host's process",
        "the compiler maps sub-groups to vector instructions by itself",
    ),
    _Pattern(
        "source.absolute_address",
        re.compile(
            rf"\b(?:reinterpret_cast|bit_cast)\s{{0,9}}<[^;<>]{{1,80}}\*[\w\s]{{0,40}}>\s{{0,9}}"
            rf"\(\s{{0,9}}{_NUMBER}\s{{0,9}}\)"
            rf"|\([\w:\s]{{1,80}}\*[\s*]{{0,9}}\)\s{{0,9}}(?:{_NUMBER}"
            rf"|\(\s{{0,9}}{_NUMBER}\s{{0,9}}\))"
        ),
        "a number is cast to a pointer",
        "memory comes from the plan: pass a tensor or empty(shape, dtype)",
    ),
    _Pattern(
        "source.token_paste",
        re.compile("##"),
        "names are put together by ##",
        "",
    ),
)
_ATTRIBUTES: Final = re.compile(
    r"\b__attribute__\s{0,9}\(\(((?:[^()]|\([^()]{0,200}\)){0,200})\)\)"
    r"|\[\[([^\[\]]{0,300})\]\]|\b__declspec\s{0,9}\(([^()]{0,200})\)"
)
_ARGUMENTS: Final = re.compile(r"\([^()]*\)")
_LINKER_ATTRIBUTES: Final = frozenset(
    {
        *("constructor", "destructor", "init_priority", "section", "alias", "ifunc", "weakref"),
        *("cleanup", "naked", "interrupt", "copy", "retain", "allocate", "dllimport", "dllexport"),
    }
)
_EXTERN: Final = re.compile(r"\bextern\b([^;{}]{0,400})([;{}])")
_HONEST_EXTERN: Final = re.compile(
    r"__shared__|__global__|SYCL_EXTERNAL|nd_range_kernel|\btemplate\b"
)
_EXACT: Final = re.compile(r"([A-Za-z_]\w{0,60})\s{0,9}[=!]=\s{0,9}(\d{4,12})[uUlL]{0,3}\b(?!\.)")
_MACRO: Final = re.compile(r"[A-Z][A-Z0-9_]+")
_WAIT: Final = re.compile(
    r"(?<![}\s])\s{0,9}\bwhile\s{0,9}\(([^;{}]{0,300})\)\s{0,40}(?:;|\{\s*\})"
)
_SHARED: Final = re.compile(r"volatile|atomic|\bload\b|acquire|__ldcg|__ldcv", re.IGNORECASE)
_LIST: Final = re.compile(r"[{};]|(?<![\w.])\.?\d[\w.']*")
_ASSEMBLER: Final = re.compile(
    r"(?<![\w.%$])\.(?:loc|file|section|version|target|address_size|entry|func|extern|visible"
    r"|weak|alias)\b"
)
_ESCAPED_BLANK: Final = re.compile(r"\\[nt]")
_ADJACENT: Final = re.compile(r'"\s{0,200}"')


def pattern_violations(text: SourceText, language: Language) -> Iterator[Violation]:
    """Iterate over everything but directives that a rule finds."""
    for pattern in _PATTERNS:
        if rule_of(pattern.rule).is_for(language):
            for match in pattern.pattern.finditer(text.bare):
                if not _is_harmless(pattern.rule, text, match, language):
                    yield Violation(
                        rule=pattern.rule,
                        message=pattern.message,
                        hint=pattern.hint,
                        offset=match.start(),
                    )
    if rule_of("source.assembly_directive").is_for(language):
        yield from _assembly_directives(text)
    yield from _attributes(text)
    yield from _externals(text)
    yield from _tables(text)
    yield from _exact_shapes(text)
    yield from _spin_waits(text)
    yield from _addresses_reader(text)


def _is_harmless(rule: str, text: SourceText, match: re.Match[str], language: Language) -> bool:
    """Return whether what a pattern found says in place that it is ordinary."""
    if rule == "source.pragma_operator":
        return match[0] == "_Pragma" and is_loop_pragma(text, match.end())
    if rule == "source.file_probe":
        return match[0] == "__has_include" and probes_allowed_header(text, match.end(), language)
    return False


def _attributes(text: SourceText) -> Iterator[Violation]:
    for match in _ATTRIBUTES.finditer(text.bare):
        inside = _ARGUMENTS.sub(" ", match[1] or match[2] or match[3] or "")
        for word in re.findall(r"\w+", inside):
            if word.strip("_") in _LINKER_ATTRIBUTES:
                yield Violation(
                    rule="source.linker_attribute",
                    message=f"the attribute {word.strip('_')} is not allowed",
                    hint="kernels and functions need none of the linker's attributes",
                    offset=match.start(),
                )


def _assembly_directives(text: SourceText) -> Iterator[Violation]:
    message = "inline assembly holds a directive of the assembler"
    hint = "instructions and .reg are allowed"
    found = False
    for offset, literal in text.literals:
        if _ASSEMBLER.search(_ESCAPED_BLANK.sub("  ", literal)):
            found = True
            yield Violation(
                rule="source.assembly_directive", message=message, hint=hint, offset=offset
            )
    # Strings beside each other are one: none of them needs to hold the whole word.
    if not found and len(text.literals) > 1:
        together = _ESCAPED_BLANK.sub("  ", _ADJACENT.sub("", text.plain))
        for literal in re.findall(r'"(?:\\.|[^"\\\n])*"', together):
            if _ASSEMBLER.search(literal):
                yield Violation(rule="source.assembly_directive", message=message, hint=hint)
                return


def _externals(text: SourceText) -> Iterator[Violation]:
    for match in _EXTERN.finditer(text.bare):
        if match[2] == ";" and not _HONEST_EXTERN.search(match[1]):
            yield Violation(
                rule="source.extern",
                message="something is declared to be elsewhere",
                hint="define what is called in the source",
                offset=match.start(),
            )


def _tables(text: SourceText) -> Iterator[Violation]:
    for offset, count in _lists(text.bare):
        if count >= MAX_LIST_NUMBERS:
            yield Violation(
                rule="source.literal_table",
                message=f"a list of {count} numbers",
                hint="compute what can be computed",
                offset=offset,
            )
    for offset, literal in text.literals:
        if len(literal) >= MAX_STRING_CHARACTERS:
            message = f"a string of {len(literal)} characters"
            yield Violation(rule="source.literal_table", message=message, offset=offset)


def _lists(text: str) -> Iterator[tuple[int, int]]:
    """Iterate over lists in braces, and how many numbers each holds; blocks of code are none."""
    stack: list[list[int]] = []  # offset, count of numbers, whether it is code
    for match in _LIST.finditer(text):
        token = match[0]
        if token == "{":
            stack.append([match.start(), 0, 0])
        elif not stack:
            continue
        elif token == ";":
            stack[-1][2] = 1
        elif token == "}":
            offset, count, is_code = stack.pop()
            if not is_code:
                yield offset, count
                if stack:
                    stack[-1][1] += count
        else:
            stack[-1][1] += 1


def _exact_shapes(text: SourceText) -> Iterator[Violation]:
    for match in _EXACT.finditer(text.bare):
        if int(match[2]) >= LARGE_EXTENT and not _MACRO.fullmatch(match[1]):
            yield Violation(
                rule="source.exact_shape",
                message=f"a path for one size alone: {match[1]} and {match[2]}",
                hint="a condition such as a multiple or a limit serves more shapes",
                offset=match.start(),
            )


def _spin_waits(text: SourceText) -> Iterator[Violation]:
    for match in _WAIT.finditer(text.bare):
        if _SHARED.search(match[1]):
            yield Violation(
                rule="source.spin_wait",
                message="a loop waits for memory to change",
                hint="work-groups that run later are waited for in vain, unless all run at once",
                offset=match.start(),
            )


def _addresses_reader(text: SourceText) -> Iterator[Violation]:
    for offset, words in (*text.comments, *text.literals):
        if speaks_to_reader(words):
            yield Violation(
                rule="source.addressed_reader",
                message="a comment or string addresses a reader; no program here obeys comments",
                offset=offset,
            )
            return

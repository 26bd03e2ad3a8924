"""Puts TUNE and CONST values into the device code as macros: the text that a compiler gets.

Macros are defined after the source's last `#include`, so that a name such as WG cannot break a
header, and `#line` keeps the candidate's own line numbers in diagnostics.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from kernel_foundry.languages import language_named
from kernel_foundry.plan.errors import bind_error
from kernel_foundry.plan.signature import kernels
from kernel_foundry.plan.source_text import (
    lines_inside_lexeme,
    strip_comments,
    strip_comments_and_literals,
)
from kernel_foundry.plan.tree import TuneValue

_INCLUDE: Final = re.compile(r"^[ \t]*#[ \t]*include\b", re.M)
_CONDITIONAL: Final = re.compile(r"^[ \t]*#[ \t]*(if|endif)")
_DEFINITION: Final = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)")


def translation_unit(
    device_code: str, macros: Mapping[str, TuneValue], prelude: str, language: str
) -> str:
    """Return the text to compile.

    Args:
        device_code: The candidate's source.
        macros: TUNE and CONST values, checked by the plan.
        prelude: What every source of the language may rely on.
        language: Name of its language.

    Raises:
        PlanError: `bind`, when a macro's name is a kernel parameter or is defined by the source.
    """
    _check_names(device_code, macros, language)
    record = language_named(language)
    file_name = record.source_file
    needless = re.compile(rf'^[ \t]*#[ \t]*include[ \t]*[<"](?:{record.needless_headers})[>"]')
    lines = device_code.split("\n")
    plain = strip_comments(device_code).split("\n")
    for index, line in enumerate(plain):
        match = needless.match(line)
        if match:  # only the directive: a comment may begin or end on its line
            lines[index] = lines[index][: line.index("#")] + lines[index][match.end() :]
    split_at = _line_after_includes(device_code)
    definitions = [f"#define {name} {macro_text(value)}" for name, value in macros.items()]
    return "\n".join(
        [
            prelude,
            f'#line 1 "{file_name}"',
            *lines[:split_at],
            '#line 1 "configuration"',
            *definitions,
            f'#line {split_at + 1} "{file_name}"',
            *lines[split_at:],
            "",
        ]
    )


def macro_text(value: TuneValue) -> str:
    """Return a value as C text: 1, (-1), 1/0 for a bool, 0.5f, a bare token."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int):
        return _int_text(value)
    if isinstance(value, float):
        return _float_text(value)
    return value


def _int_text(value: int) -> str:
    if value == -(2**63):
        return "(-9223372036854775807LL - 1)"
    suffix = "" if abs(value) < 2**31 else "LL" if abs(value) < 2**63 else "ULL"
    return f"({value}{suffix})" if value < 0 else f"{value}{suffix}"


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NAN"
    text = "INFINITY" if math.isinf(value) else f"{abs(value)!r}f"
    return f"(-{text})" if math.copysign(1.0, value) < 0 else text


def _check_names(device_code: str, macros: Mapping[str, TuneValue], language: str) -> None:
    for kernel in kernels(device_code, language, macros):
        for parameter in kernel.parameters:
            if parameter.name in macros:
                raise bind_error(
                    f"{parameter.name} is a TUNE or CONST name and also a parameter of the kernel "
                    f"{kernel.name}: as a macro it would replace the parameter; drop the parameter "
                    "or rename one of them"
                )
    guard = ""
    for number, line in enumerate(strip_comments(device_code).split("\n"), start=1):
        match = _DEFINITION.match(line)
        if match and match[1] in macros and match[1] != guard:
            raise bind_error(
                f"{match[1]} is a TUNE or CONST name, but line {number} of the device code defines "
                "it too: remove that #define"
            )
        if line.strip():
            unless = re.match(r"[ \t]*#[ \t]*(?:ifndef[ \t]+|if[ \t]+!defined[ \t(]+)(\w+)", line)
            guard = unless[1] if unless else ""


def _line_after_includes(code: str) -> int:
    """How many lines to keep in front of the macros."""
    text = strip_comments_and_literals(code)
    offsets = [match.start() for match in _INCLUDE.finditer(text)]
    if not offsets:
        return 0
    plain = text.split("\n")
    last = text.count("\n", 0, offsets[-1])
    end = _leave_conditionals(plain, last)
    # A comment or a continued line that starts on the include's line must end first.
    inside = lines_inside_lexeme(code)
    raw = code.split("\n")
    while end < len(raw) and (end in inside or raw[end - 1].endswith("\\")):
        end += 1
    return end


def _leave_conditionals(lines: list[str], last_include: int) -> int:
    depth = _conditional_depth(lines[: last_include + 1])
    if depth == 0:
        return last_include + 1
    for index in range(last_include + 1, len(lines)):
        depth += _conditional_depth([lines[index]])
        if depth == 0:
            return index + 1
    return last_include + 1


def _conditional_depth(lines: list[str]) -> int:
    words = (match[1] for match in map(_CONDITIONAL.match, lines) if match)
    return sum(1 if word == "if" else -1 for word in words)

"""Finds the kernels of device code and their parameters, without a compiler.

A scan of comment-free text for `extern "C"` kernels; it does not expand macros in general, but
resolves type names through the plan's macros, `#define`, `typedef` and `using`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kernel_foundry.languages import KernelLanguage, language_named
from kernel_foundry.plan.c_types import UNKNOWN, canonical_type
from kernel_foundry.plan.errors import bind_error, limit_error
from kernel_foundry.plan.source_text import (
    blank_directives,
    line_of,
    matching,
    strip_comments,
    strip_comments_and_literals,
)

_EXTERN_C: Final = re.compile(r'\bextern\s*"."\s*')
_CLUSTER: Final = re.compile(r"\b__cluster_dims__\s*\(([^()]{1,200})\)")
_LAUNCH_BOUNDS: Final = re.compile(r"\b__launch_bounds__\s*\(([^(),]{1,80})")
_TEMPLATE: Final = re.compile(r"\btemplate\s*<")
_ATTRIBUTE_CALL: Final = re.compile(r"\b(?:SYCL_\w+|__\w+__|__attribute__|__declspec|alignas)\s*\(")
_LOCAL_ACCESSOR: Final = re.compile(
    r"(?:::)?(?:sycl::)?local_accessor\s*<\s*(.+?)\s*(?:,\s*(\w+)\s*)?>\s*(?:const\s*)?&?\s*(\w*)$"
)
_QUALIFIERS: Final = re.compile(
    r"\b(?:__restrict__|__restrict|restrict|volatile|__grid_constant__|register)\b"
)
_TYPE_KEYWORDS: Final = frozenset(
    {"void", "bool", "char", "short", "int", "long", "float", "double", "signed", "unsigned"}
)
"""Words that are never a parameter's name; all other types may be (`int half`)."""
_MAX_CODE_CHARACTERS: Final = 262_144
_MAX_KERNELS: Final = 256
_MAX_DECLARATION_CHARACTERS: Final = 16_384
_MAX_PARAMETER_CHARACTERS: Final = 400
_MAX_ATTRIBUTES: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelParameter:
    """One parameter of a kernel."""

    name: str
    """Empty when the declaration names none."""
    ctype: str
    """Canonical type ("float32", "int64", "void", "unknown"): of the number, or of the element
    behind a pointer or in a local accessor."""
    is_pointer: bool
    is_const: bool
    """Whether the element behind a pointer is const."""
    is_local: bool
    """Whether it is a `sycl::local_accessor`."""
    lanes: int
    """Elements of a vector type such as float4; 1 otherwise."""
    declaration: str
    """As written, without comments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSignature:
    """One kernel of the device code."""

    name: str
    parameters: tuple[KernelParameter, ...]
    dimensions: int
    """N of `nd_range_kernel<N>`; 3 in CUDA."""
    line: int
    """1-based line of the kernel's name in the device code."""
    cluster: tuple[int, int, int] | None = None
    """Blocks of a cluster in x, y, z (CUDA); None without `__cluster_dims__`, or when its sizes
    cannot be read."""
    max_threads: int | None = None
    """Threads of a block by `__launch_bounds__` (CUDA); None without, or when it cannot be read."""

    def __str__(self) -> str:
        """Return name and parameters as in C."""
        return f"{self.name}({', '.join(p.declaration for p in self.parameters)})"


def kernels(
    device_code: str, language: str, macros: Mapping[str, object] | None = None
) -> tuple[KernelSignature, ...]:
    """Return the `extern "C"` kernels of `device_code`, in order of appearance.

    Args:
        device_code: The candidate's source; may be hostile.
        language: Name of its language.
        macros: TUNE and CONST values, to resolve type names and dimensions.

    Raises:
        PlanError: `bind`, when one name is declared with two different parameter lists; `limit`
            for code too long to scan.
        ValueError: there is no such language.
    """
    record = language_named(language)
    if len(device_code) > _MAX_CODE_CHARACTERS:
        raise limit_error(f"the device code is longer than {_MAX_CODE_CHARACTERS} characters")
    aliases = _aliases(device_code, macros or {})
    found: dict[str, KernelSignature] = {}
    for declaration, offset in _declarations(device_code):
        kernel = _kernel(declaration, offset, device_code, record, aliases)
        if kernel is None:
            continue
        earlier = found.get(kernel.name)
        if earlier is not None and _types(earlier) != _types(kernel):
            raise bind_error(
                f"the kernel {kernel.name} is declared with different parameters in lines "
                f"{earlier.line} and {kernel.line} of the device code: give each its own name"
            )
        found[kernel.name] = kernel
        if len(found) > _MAX_KERNELS:
            raise limit_error(f"the device code has more than {_MAX_KERNELS} kernels")
    return tuple(found.values())


def _declarations(code: str) -> Iterator[tuple[str, int]]:
    """Yield the text of each `extern "C"` declaration up to its body, with its offset."""
    text = blank_directives(strip_comments_and_literals(code))
    done = 0
    for match in _EXTERN_C.finditer(text):
        if match.start() < done or not code[match.start() : match.end()].rstrip().endswith('"C"'):
            continue
        if text[match.end() : match.end() + 1] == "{":
            closing = matching(text, match.end())
            done = len(text) if closing < 0 else closing
            yield from _block_declarations(text, match.end() + 1, done - 1)
        else:
            # Attributes may stand before extern: begin after the previous declaration.
            start = max(text.rfind(mark, done, match.start()) for mark in ";{}") + 1
            start = max(start, done)
            done = _declaration_end(text, match.end(), len(text))
            head = text[start : match.start()] + " " * (match.end() - match.start())
            yield head + text[match.end() : done], start


def _block_declarations(text: str, start: int, end: int) -> Iterator[tuple[str, int]]:
    position = start
    while position < end:
        stop = _declaration_end(text, position, end)
        yield text[position:stop], position
        if stop < end and text[stop] == "{":
            closing = matching(text, stop)
            position = end if closing < 0 else closing
        else:
            position = stop + 1


def _declaration_end(text: str, start: int, end: int) -> int:
    depth = 0
    for position in range(start, end):
        character = text[position]
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character in "{;" and depth <= 0:
            return position
    return end


def _kernel(
    declaration: str, offset: int, code: str, language: KernelLanguage, aliases: Mapping[str, str]
) -> KernelSignature | None:
    if len(declaration) > _MAX_DECLARATION_CHARACTERS:
        return None
    mark = language.kernel_mark.search(declaration)
    if mark is None:
        return None
    if language.kernel_dimensions is None:
        extent = _resolve_word(mark[1].strip(), aliases)
        dimensions = int(extent) if extent in ("1", "2", "3") else 0
    else:
        dimensions = language.kernel_dimensions
    bare = _without_attributes(declaration)
    match = re.search(r"\b([A-Za-z_]\w*)\s*\(", bare)
    if match is None:
        return None
    end = matching(bare, match.end() - 1)
    if end < 0:
        return None
    line = line_of(code, offset + match.start(1))
    if dimensions == 0:
        raise bind_error(
            f"the kernel {match[1]} (line {line} of the device code) needs nd_range_kernel<1>, "
            "<2> or <3>"
        )
    if _TEMPLATE.search(bare, 0, match.start()):
        raise bind_error(
            f"the kernel {match[1]} (line {line} of the device code) is a template, which no "
            'extern "C" kernel can be: use TUNE and CONST names, which are macros, in place of its '
            "parameters"
        )
    return KernelSignature(
        name=match[1],
        parameters=tuple(_parameters(bare[match.end() : end - 1], aliases)),
        dimensions=dimensions,
        line=line,
        cluster=_cluster(declaration, aliases),
        max_threads=_max_threads(declaration, aliases),
    )


def _max_threads(declaration: str, aliases: Mapping[str, str]) -> int | None:
    match = _LAUNCH_BOUNDS.search(declaration)
    word = _resolve_word(match[1].strip(), aliases) if match else ""
    return int(word) if re.fullmatch(r"[0-9]{1,5}", word) else None


def _cluster(declaration: str, aliases: Mapping[str, str]) -> tuple[int, int, int] | None:
    match = _CLUSTER.search(declaration)
    if match is None:
        return None
    words = [_resolve_word(part.strip("() "), aliases) for part in match[1].split(",")]
    if len(words) > 3 or not all(re.fullmatch(r"[0-9]{1,5}", word) for word in words):
        return None
    x, y, z = (*map(int, words), 1, 1)[:3]
    return x, y, z


def _without_attributes(declaration: str) -> str:
    """Blank attributes with their arguments, keeping columns."""
    text = declaration
    for _ in range(_MAX_ATTRIBUTES):
        match = _ATTRIBUTE_CALL.search(text)
        start = match.start() if match else text.find("[[")
        if start < 0:
            break
        end = matching(text, match.end() - 1 if match else start)
        end = len(text) if end < 0 else end
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return re.sub(r"\b__\w+__\b", lambda word: " " * len(word[0]), text)


def _parameters(text: str, aliases: Mapping[str, str]) -> Iterator[KernelParameter]:
    parts = _split(text)
    if parts in ([""], ["void"]):
        return
    for part in parts:
        yield _parameter(part, aliases)


def _parameter(text: str, aliases: Mapping[str, str]) -> KernelParameter:
    declaration = " ".join(text.split())
    if len(declaration) > _MAX_PARAMETER_CHARACTERS:
        declaration = text = "unreadable"
    bare = " ".join(_QUALIFIERS.sub(" ", text).split())
    accessor = _LOCAL_ACCESSOR.search(bare)
    if accessor:
        extent = _resolve_word(accessor[2] or "1", aliases)
        ctype, lanes = canonical_type(accessor[1], aliases) if extent == "1" else (UNKNOWN, 0)
        return KernelParameter(
            name=accessor[3], ctype=ctype, lanes=lanes, is_pointer=False, is_const=False,
            is_local=True, declaration=declaration,
        )  # fmt: skip
    bare, arrays = re.subn(r"\[[^\[\]]*\]", "", bare)
    element, _, behind = bare.rpartition("*")
    pointer_count = bare.count("*") + arrays
    own = behind if "*" in bare else bare
    words = [word for word in own.split() if word != "const"]
    named = bool(words) and words[-1] not in _TYPE_KEYWORDS and ("*" in bare or len(words) > 1)
    name = words[-1] if named and words[-1].isidentifier() else ""
    type_text = element if "*" in bare else " ".join(words[:-1] if name else words)
    is_known = pointer_count <= 1 and "&" not in bare
    ctype, lanes = canonical_type(type_text, aliases) if is_known else (UNKNOWN, 1)
    return KernelParameter(
        name=name,
        ctype=ctype,
        lanes=lanes,
        is_pointer=pointer_count == 1,
        is_const=pointer_count == 1 and bool(re.search(r"\bconst\b", element or bare)),
        is_local=False,
        declaration=declaration,
    )


def _split(text: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for character in text:
        if character in "(<[{":
            depth += 1
        elif character in ")>]}":
            depth -= 1
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return [*parts, current.strip()]


def _resolve_word(word: str, aliases: Mapping[str, str]) -> str:
    for _ in range(8):
        if word not in aliases:
            return word
        word = aliases[word].strip("() ")
    return word


def _aliases(code: str, macros: Mapping[str, object]) -> dict[str, str]:
    """Names that stand for other text: the source's own, then the plan's macros."""
    text = strip_comments(code)
    found = {
        match[1]: match[2].strip()
        for match in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]([^\n\\]+)$", text, re.M)
    }
    # Short pieces only: the scan stays linear whatever the text is.
    text = " ".join(text.split())
    for match in re.finditer(r"\btypedef ([\w:<>, ]{1,120}?) (\w{1,80}) ?;", text):
        found[match[2]] = match[1]
    for match in re.finditer(r"\busing (\w{1,80}) ?= ?([\w:<>, ]{1,120}?) ?;", text):
        found[match[1]] = match[2]
    for match in re.finditer(r"\bconstexpr \w{1,80} (\w{1,80}) ?= ?(\d{1,20}) ?;", text):
        found[match[1]] = match[2]
    found.update({name: str(value) for name, value in macros.items()})
    # A name that stands for itself (using half = sycl::half) needs no alias, and must not loop.
    return {name: value for name, value in found.items() if value.split("::")[-1] != name}


def _types(kernel: KernelSignature) -> tuple[tuple[str, bool, bool, int], ...]:
    return tuple((p.ctype, p.is_pointer, p.is_local, p.lanes) for p in kernel.parameters)


__all__ = ["KernelParameter", "KernelSignature", "kernels", "strip_comments"]

"""Counts kinds of instructions in a kernel's PTX, for profiles without counters."""

import re
from collections import Counter
from typing import Final

from kernel_foundry.domain.profile import Share

_ENTRY: Final = re.compile(r"^\s*(?:\.visible\s+)?\.entry\s+(\w+)", re.M)
_INSTRUCTION: Final = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)(?:\s[^\n]*)?;", re.M)
_KINDS: Final = (
    ("matrix products", re.compile(r"w?mma\.|wgmma\.mma|tcgen05\.mma")),
    ("copies to shared memory", re.compile(r"cp\.async|cp\.reduce")),
    ("shared memory", re.compile(r"(?:ld|st|atom|red)\.shared|ldmatrix|stmatrix")),
    ("atomics", re.compile(r"atom|red\.")),
    (
        "global memory",
        re.compile(r"(?:ld|st)\.(?:global|volatile|relaxed|weak)|(?:ld|st)\.[buf]\d"),
    ),
    ("spills", re.compile(r"(?:ld|st)\.local")),
    ("special functions", re.compile(r"(?:ex2|lg2|sin|cos|tanh|rcp|rsqrt|sqrt|div)\.")),
    ("fused multiply-adds", re.compile(r"fma\.")),
    ("float arithmetic", re.compile(r"(?:add|sub|mul|min|max|neg|abs)\S*\.(?:f|bf)\d+")),
    ("conversions", re.compile(r"cvt")),
    ("barriers and shuffles", re.compile(r"bar\.|barrier|mbarrier|shfl|vote|redux|fence|membar")),
    ("branches", re.compile(r"bra|ret|call|setp|selp|exit")),
    ("parameters", re.compile(r"ld\.(?:param|const)|st\.param")),
    ("integer arithmetic", re.compile(r"add|sub|mul|mad|shl|shr|and|or|xor|not|lop3|prmt|bf[ei]")),
)
"""By the first that matches the beginning of an instruction's name."""
_OTHER: Final = "others"
_MOST: Final = 6
_MAX_CHARACTERS: Final = 4 << 20


def instruction_mix(assembly: str, kernel: str) -> tuple[Share, ...]:
    """Return the commonest kinds of instructions of a kernel, functions it calls left out.

    Args:
        assembly: PTX.
        kernel: Its name; empty shares where it is not there.
    """
    assembly = assembly[:_MAX_CHARACTERS]
    entries = list(_ENTRY.finditer(assembly))
    for index, entry in enumerate(entries):
        if entry[1] == kernel:
            end = entries[index + 1].start() if index + 1 < len(entries) else len(assembly)
            return _mix(assembly[entry.end() : end])
    return ()


def _mix(body: str) -> tuple[Share, ...]:
    counts = Counter(_kind(match[1]) for match in _INSTRUCTION.finditer(body))
    total = sum(counts.values())
    return tuple(Share(name=kind, share=n / total) for kind, n in counts.most_common(_MOST))


def _kind(name: str) -> str:
    return next((kind for kind, pattern in _KINDS if pattern.match(name)), _OTHER)

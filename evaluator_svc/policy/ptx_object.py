"""Refuses PTX that reaches beyond its own code or keeps state between calls.

A kernel runs in a process of its own, so what ends it is its own harm: traps are let be, as the
toolkit's headers have them too. What a kernel could remember from one call to the next is refused,
and so are the system's functions: printing, the device's heap, launches from the device. Clocks and
hints that keep data in the cache have honest uses and are told.
"""

import re
from collections.abc import Iterator
from typing import Final

from evaluator_svc.policy.finding import MAX_FINDINGS, refusal, remark, short
from evaluator_svc.policy.taint import Addresses
from evaluator_svc.ptx import Instruction, Module, PtxError, parse
from kernel_foundry.domain.finding import Finding, Severity

_SYSTEM_FUNCTIONS: Final = (
    (re.compile(r"vprintf"), "printf is not allowed", "kernels print nothing"),
    (
        re.compile(r"malloc|free|\w*aligned_alloc"),
        "the device's heap is not allowed",
        "have the plan pass empty(shape, dtype), or use shared memory",
    ),
    (re.compile(r"__assert\w*"), "assert is not allowed", "use static_assert, or nothing"),
    (
        re.compile(r"(?:__)?cuda\w*"),
        "calls of the CUDA runtime are not allowed in kernels",
        "the plan launches kernels, one after the other",
    ),
)
_CLOCK: Final = re.compile(r"%(?:clock\w*|globaltimer\w*|pm\d\w*)")
_KEPT: Final = frozenset({"L2::evict_last", "createpolicy", "applypriority"})
_LASTING: Final = ("global", "const")
"""Memory that outlives a launch; constants are written through forged addresses only."""
_LENGTH: Final = re.compile(r"\d{1,4}")


def check_ptx(code: bytes, kernels: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    """Return why a PTX module may not be loaded, and remarks; empty when there is neither.

    Args:
        code: The text.
        kernels: Names of kernels that must be in it.
    """
    try:
        module = parse(code)
    except PtxError as error:
        return (refusal(f"the assembly cannot be read: {error.reason}"),)
    refused = (*_imports(module), *_state(module))[:MAX_FINDINGS]
    return (*refused, *_missing(module, kernels), *_remarks(module))


def _imports(module: Module) -> Iterator[Finding]:
    for function in module.functions.values():
        if not function.is_declaration:
            continue
        for pattern, message, hint in _SYSTEM_FUNCTIONS:
            if pattern.fullmatch(function.name):
                yield refusal(message, hint)
                break
        else:
            message = f"{short(readable(function.name))} is not part of the kernel's own code"
            yield refusal(message, "define all functions in the source")
    for variable in module.variables.values():
        if variable.is_managed or (variable.is_extern and variable.space != "shared"):
            message = f"{short(readable(variable.name))} is not the kernel's own memory"
            yield refusal(message, "have the plan pass a buffer")


def _state(module: Module) -> Iterator[Finding]:
    candidates = [v for v in module.variables.values() if v.space in _LASTING]
    for function in module.functions.values():
        candidates += [v for v in function.variables.values() if v.space in _LASTING]
    addresses = Addresses(module, frozenset(v.name for v in candidates))
    told: set[str] = set()
    for function, instruction in module.instructions():
        for name in sorted(addresses.written(function, instruction) - told):
            told.add(name)
            yield refusal(
                f"the global variable {short(readable(name))} would keep state between calls",
                "make it constexpr or __constant__, or have the plan pass zeros(shape, dtype)",
                module.source_line(instruction.location),
            )


def _missing(module: Module, kernels: tuple[str, ...]) -> Iterator[Finding]:
    present = {kernel.name for kernel in module.kernels()}
    for kernel in kernels:
        if kernel not in present:
            yield refusal(f"the object code has no kernel called {short(kernel)}")


def _remarks(module: Module) -> Iterator[Finding]:
    seen: set[str] = set()
    for _, instruction in module.instructions():
        for what, severity, message, hint in _oddities(instruction):
            if what not in seen:
                seen.add(what)
                yield remark(severity, message, hint, module.source_line(instruction.location))


def _oddities(instruction: Instruction) -> Iterator[tuple[str, Severity, str, str]]:
    if any(_CLOCK.fullmatch(operand) for operand in instruction.inputs):
        message = "the kernel reads a clock"
        yield "clock", Severity.WARNING, message, "results and work may not depend on time"
    if not _KEPT.isdisjoint(instruction.parts):
        message = "the kernel asks the cache to keep data; the cache is emptied between calls"
        yield "cache", Severity.INFO, message, ""


def readable(name: str) -> str:
    """Return the last part of a mangled name; all others as they are."""
    if not name.startswith("_Z"):
        return name
    found, position = name, 2
    while match := _LENGTH.search(name, position):
        end = match.end() + int(match[0])
        if end > len(name) or end == match.end():
            break
        found, position = name[match.end() : end], end
    return found

"""Refuses SPIR-V that reaches beyond its own code: host functions, assembly, state between calls.

Grounded on what the SYCL compiler of the pinned wheel emits: a C function that is declared and not
defined becomes an import, which the CPU runtime resolves in the running process.
"""

import re
from collections.abc import Iterator
from typing import Final

from evaluator_svc.policy.finding import MAX_FINDINGS, refusal, short
from evaluator_svc.spirv import Module, SpirvError, parse
from evaluator_svc.spirv.opcodes import Op, StorageClass
from kernel_foundry.domain.finding import Finding

_BUILT_IN_FUNCTION: Final = re.compile(
    r"(?:_Z\d+)?(?:__spirv_|__devicelib_)\w+"
    # Integer arithmetic that SPIR-V has no instruction for; the runtime's compiler expands it.
    r"|llvm\.(?:[us](?:add|sub|shl)\.sat|fsh[lr]|bswap|bitreverse|ct(?:pop|lz|tz))\.(?:v\d+)?i\d+"
)
"""SPIR-V instructions as functions and the runtime's own library, mangled or not. Mathematics is
no import: the compiler links it in."""

_FORBIDDEN_CAPABILITIES: Final = {
    5603: "function pointers",
    5604: "indirect calls",
    5606: "inline assembly",
}
_FORBIDDEN_OPCODES: Final = {
    Op.CONSTANT_FUNCTION_POINTER_INTEL: "function pointers",
    Op.FUNCTION_POINTER_CALL_INTEL: "function pointers",
    Op.ASM_TARGET_INTEL: "inline assembly",
    Op.ASM_INTEL: "inline assembly",
    Op.ASM_CALL_INTEL: "inline assembly",
}


def check_spirv(code: bytes, kernels: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    """Return why a SPIR-V module may not be loaded; empty when it may.

    Args:
        code: What the compiler produced.
        kernels: Names of kernels that must be in it.
    """
    try:
        module = parse(code)
    except SpirvError as error:
        return (refusal(f"the object code cannot be read: {error.reason}"),)
    findings = (*_imports(module), *_state(module), *_host_code(module))[:MAX_FINDINGS]
    return (*findings, *_missing(module, kernels))


def _imports(module: Module) -> Iterator[Finding]:
    hint = "only SYCL's own functions can be called; define all others in the source"
    imported = {found.id for found in module.imports}
    for found in module.imports:
        if found.is_function:
            allowed = _BUILT_IN_FUNCTION.fullmatch(found.name) is not None
        else:
            allowed = found.id in module.built_ins
        if not allowed:
            yield refusal(f"{short(found.name)} is not part of the kernel's own code", hint)
    for function in module.functions.values():
        if not function.body and function.id not in imported:
            yield refusal(f"the function {short(function.name)} has no body", hint)


def _state(module: Module) -> Iterator[Finding]:
    for variable in module.variables(StorageClass.CROSS_WORKGROUP):
        if not variable.is_constant:
            yield refusal(
                f"the global variable {short(variable.name)} would keep state between calls",
                "make it constexpr, or have the plan pass zeros(shape, dtype)",
            )


def _host_code(module: Module) -> Iterator[Finding]:
    used = {name for n, name in _FORBIDDEN_CAPABILITIES.items() if n in module.capabilities}
    used |= {name for op, name in _FORBIDDEN_OPCODES.items() if op in module.opcodes}
    for name in sorted(used):
        yield refusal(f"the object code uses {name}", "call functions by name, in plain C++")


def _missing(module: Module, kernels: tuple[str, ...]) -> Iterator[Finding]:
    present = set(module.entry_points.values())
    for kernel in kernels:
        # The SYCL compiler puts this prefix before the name of a free-function kernel.
        if present.isdisjoint({kernel, f"__sycl_kernel_{kernel}"}):
            yield refusal(f"the object code has no kernel called {short(kernel)}")

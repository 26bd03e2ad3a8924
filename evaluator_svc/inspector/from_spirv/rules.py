"""Refuses SPIR-V that reaches beyond its own code: host functions, assembly, state between calls.

Grounded on what the SYCL compiler of the pinned wheel emits: a C function that is declared and not
defined becomes an import, which the CPU runtime resolves in the running process.
"""

import re
from collections.abc import Iterator
from typing import Final

from evaluator_svc.inspector.from_spirv.pointers import Origin, Pointers
from evaluator_svc.inspector.lowered_program import LoweredProgram, Space
from evaluator_svc.inspector.module_rules import (
    absolute_address,
    constant_tables,
    foreign_function,
    lasting_variable,
    missing_kernels,
)
from evaluator_svc.inspector.stale_reads import stale_reads
from evaluator_svc.policy.finding import MAX_FINDINGS, rule_finding, short
from evaluator_svc.spirv import Instruction, Module
from evaluator_svc.spirv.opcodes import OPENCL_PRINTF, Op, StorageClass
from kernel_foundry.domain.finding import Finding

_BUILT_IN_FUNCTION: Final = re.compile(
    r"(?:_Z\d+)?(?:__spirv_|__devicelib_)\w+"
    # Integer arithmetic that SPIR-V has no instruction for; the runtime's compiler expands it.
    r"|llvm\.(?:[us](?:add|sub|shl)\.sat|fsh[lr]|bswap|bitreverse|ct(?:pop|lz|tz))\.(?:v\d+)?i\d+"
    # Names that are left when the compiler has expanded a loop that moves or fills an array.
    r"|llvm\.mem(?:(?:cpy|move)(?:\.inline)?\.p\d+|set(?:\.inline)?)\.p\d+\.i\d+"
)
"""SPIR-V instructions as functions, the runtime's own library, mangled or not, and what a compiler
expands. Mathematics is no import: the compiler links it in."""

_PLAIN: Final = "call functions by name, in plain C++"
_ONE_CALL: Final = "the plan launches kernels, one after the other"
_CAPABILITIES: Final = {
    17: ("object.pipe", "pipes", "have the plan pass empty(shape, dtype)"),
    19: ("object.device_launch", "launches from the device", _ONE_CALL),
    5603: ("object.function_pointer", "function pointers", _PLAIN),
    5604: ("object.function_pointer", "indirect calls", _PLAIN),
    5606: ("object.assembly", "inline assembly", _PLAIN),
}
_OPCODES: Final = {
    Op.ENQUEUE_MARKER: _CAPABILITIES[19],
    Op.ENQUEUE_KERNEL: _CAPABILITIES[19],
    Op.CONSTANT_FUNCTION_POINTER_INTEL: _CAPABILITIES[5603],
    Op.FUNCTION_POINTER_CALL_INTEL: _CAPABILITIES[5603],
    Op.ASM_TARGET_INTEL: _CAPABILITIES[5606],
    Op.ASM_INTEL: _CAPABILITIES[5606],
    Op.ASM_CALL_INTEL: _CAPABILITIES[5606],
}
_OWN_MEMORY: Final = {Space.GROUP: "local"}
"""A work-item's own variables are not among it: arguments look like them."""
_PRINTF: Final = re.compile(r"printf")
_CLOCK: Final = re.compile(r"clock|cycle_?counter", re.IGNORECASE)


def findings(
    module: Module, program: LoweredProgram[Instruction], kernels: tuple[str, ...]
) -> tuple[Finding, ...]:
    """Return the rules' findings in a SPIR-V module.

    Args:
        module: The module.
        program: The same, lowered.
        kernels: Names of kernels that must be in it.
    """
    refused = (*_imports(module), *_state(module), *_host_code(module))[:MAX_FINDINGS]
    stale = stale_reads(program, _OWN_MEMORY)
    tables = constant_tables(_constant_bytes(module))
    odd = (*stale, *_pointers(module), *_clocks(module), *tables)
    return (*refused, *missing_kernels(_kernel_names(module), kernels), *odd)


def _imports(module: Module) -> Iterator[Finding]:
    hint = "only SYCL's own functions can be called; define all others in the source"
    imported = {found.id for found in module.imports}
    for found in module.imports:
        if found.is_function:
            allowed = _BUILT_IN_FUNCTION.fullmatch(found.name) is not None
        else:
            allowed = found.id in module.built_ins
        if _PRINTF.search(found.name):
            yield _print()
        elif not allowed:
            yield foreign_function(found.name, hint)
    for function in module.functions.values():
        if not function.body and function.id not in imported:
            yield rule_finding(
                "object.import", f"the function {short(function.name)} has no body", hint
            )


def _state(module: Module) -> Iterator[Finding]:
    for variable in module.variables(StorageClass.CROSS_WORKGROUP):
        if not variable.is_constant:
            hint = "make it constexpr, or have the plan pass zeros(shape, dtype)"
            yield lasting_variable(variable.name, hint)


def _host_code(module: Module) -> Iterator[Finding]:
    used = {what for number, what in _CAPABILITIES.items() if number in module.capabilities}
    used |= {what for opcode, what in _OPCODES.items() if opcode in module.opcodes}
    for rule, name, hint in sorted(used):
        yield rule_finding(rule, f"the object code uses {name}", hint)
    if any(
        i.opcode == Op.EXT_INST and i.operands[1:2] == (OPENCL_PRINTF,)
        for i in module.instructions()
    ):
        yield _print()


def _print() -> Finding:
    return rule_finding("object.print", "printf is not allowed", "kernels print nothing")


def _pointers(module: Module) -> Iterator[Finding]:
    pointers = Pointers(module)
    for name in sorted(pointers.written_constants()):
        yield rule_finding(
            "object.global_state",
            f"the constant {short(name)} is written to: it would keep state between calls",
            "have the plan pass zeros(shape, dtype)",
        )
    for origin in sorted(set(pointers.forged()), key=lambda o: o.value):
        if origin is Origin.NUMBERS:
            yield absolute_address("a pointer is made of numbers alone")
        else:
            yield rule_finding(
                "object.forged_pointer",
                "a pointer is made of numbers that were read from memory",
                "keep offsets there, and add them to a pointer that the plan passes",
            )


def _clocks(module: Module) -> Iterator[Finding]:
    if Op.READ_CLOCK_KHR in module.opcodes or any(
        found.is_function and _CLOCK.search(found.name) for found in module.imports
    ):
        message = "the kernel reads a clock"
        yield rule_finding("object.clock", message, "results and work may not depend on time")


def _constant_bytes(module: Module) -> int:
    pointers = (module.pointer(v.type_id) for v in module.globals if v.is_constant)
    return sum(module.size_bytes(p.pointee) for p in pointers if p is not None)


def _kernel_names(module: Module) -> set[str]:
    names = set(module.entry_points.values())
    # The SYCL compiler puts this prefix before the name of a free-function kernel.
    return names | {name.removeprefix("__sycl_kernel_") for name in names}

"""Refuses PTX that reaches beyond its own code or keeps state between calls.

A kernel runs in a process of its own, so what ends it is its own harm: traps are let be, as the
toolkit's headers have them too. What a kernel could remember from one call to the next is refused,
and so are the system's functions: printing, the device's heap, launches from the device. Clocks
raise suspicion, except where the toolkit's own barriers time their back-off.
"""

import re
from collections.abc import Iterator
from typing import Final

from evaluator_svc.inspector.from_ptx.addresses import absolute_accesses
from evaluator_svc.inspector.from_ptx.taint import Addresses, mentioned
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
from evaluator_svc.ptx import Function, Instruction, Location, Module
from evaluator_svc.ptx.module import LASTING, OWN_FILE, names_in
from kernel_foundry.domain.finding import Finding

_SYSTEM_FUNCTIONS: Final = (
    (re.compile(r"vprintf"), "object.print", "printf is not allowed", "kernels print nothing"),
    (
        re.compile(r"malloc|free|\w*aligned_alloc"),
        "object.heap",
        "the device's heap is not allowed",
        "have the plan pass empty(shape, dtype), or use shared memory",
    ),
    (
        re.compile(r"__assert\w*"),
        "object.assert",
        "assert is not allowed",
        "use static_assert, or nothing",
    ),
    (
        re.compile(r"(?:__)?cuda\w*"),
        "object.device_runtime",
        "calls of the CUDA runtime are not allowed in kernels",
        "the plan launches kernels, one after the other",
    ),
)
_GRID: Final = re.compile(
    r"%(?:n?tid|n?ctaid|n?clusterid|cluster_n?ctaid)(?:\.[xyzw])?"
    r"|%(?:laneid|lanemask_\w+|is_explicit_cluster|cluster_n?ctarank"
    r"|(?:dynamic|total|aggr)_smem_size|reserved_smem_offset_\w+|envreg[12])"
)
"""Special registers that are the same in every launch of one size, or, as the last two, where
cooperative groups find a grid's barrier."""
_CLOCK: Final = re.compile(r"%(?:clock(?:64|_hi)?|globaltimer(?:_lo|_hi)?|pm\d(?:_64)?)")
_PROCESSOR: Final = re.compile(r"%(?:n?smid|n?warpid)")
_SPECIAL: Final = re.compile(
    "|".join(f"(?:{p.pattern})" for p in (_GRID, _CLOCK, _PROCESSOR))
    + r"|%gridid|%current_graph_exec|%envreg\d+"
)
"""All that are known; a register that is declared by such a name may be either."""
_KEPT: Final = frozenset({"L2::evict_last", "createpolicy", "applypriority"})
_LIBRARY_WAIT: Final = ("threading_support", "cuda_local.h")
"""How the names begin of headers that hold libcu++'s own waiting, the second since CUDA 13.3."""
_NO_STATE: Final = "make it constexpr or __constant__, or have the plan pass zeros(shape, dtype)"
_NO_DECISION: Final = "read it by an index; its address may decide nothing"
_OWN_MEMORY: Final = {Space.GROUP: "shared", Space.PRIVATE: "local"}
"""Memory in which data of an earlier launch may last."""
_LENGTH: Final = re.compile(r"\d{1,4}")


def findings(
    module: Module, program: LoweredProgram[Instruction], kernels: tuple[str, ...]
) -> tuple[Finding, ...]:
    """Return the rules' findings in a PTX module.

    Args:
        module: The module.
        program: The same, lowered.
        kernels: Names of kernels that must be in it.
    """
    refused = (*_imports(module), *_state(module))[:MAX_FINDINGS]
    stale = stale_reads(program, _OWN_MEMORY)
    table_bytes = sum(v.size_bytes for v in module.variables.values() if v.space in LASTING)
    odd = (*stale, *_oddities(module), *_absolute(module), *constant_tables(table_bytes))
    present = {kernel.name for kernel in module.kernels()}
    return (*refused, *missing_kernels(present, kernels), *odd)


def _imports(module: Module) -> Iterator[Finding]:
    for function in module.functions.values():
        if not function.is_declaration:
            continue
        for pattern, rule, message, hint in _SYSTEM_FUNCTIONS:
            if pattern.fullmatch(function.name):
                yield rule_finding(rule, message, hint)
                break
        else:
            yield foreign_function(readable(function.name), "define all functions in the source")
    for variable in module.variables.values():
        if variable.is_managed or (variable.is_extern and variable.space != "shared"):
            message = f"{short(readable(variable.name))} is not the kernel's own memory"
            yield rule_finding("object.foreign_memory", message, "have the plan pass a buffer")


def _state(module: Module) -> Iterator[Finding]:
    candidates = [v for v in module.variables.values() if v.space in LASTING]
    for function in module.functions.values():
        candidates += [v for v in function.variables.values() if v.space in LASTING]
    addresses = Addresses(module, frozenset(v.name for v in candidates))
    seen: set[str] = set()
    for function, instruction in module.instructions():
        line = module.source_line(instruction.location)
        for name in sorted(addresses.written(function, instruction) - seen):
            seen.add(name)
            yield lasting_variable(readable(name), _NO_STATE, line)
        for name in sorted(addresses.deciding(function, instruction) - seen):
            seen.add(name)
            yield lasting_variable(readable(name), _NO_DECISION, line)
    # Whatever is done with them: who has an address can make others of it.
    empty = {v.name for v in candidates if v.space == "global" and not v.has_values}
    for name in sorted((empty & set(mentioned(module))) - seen):
        yield lasting_variable(readable(name), _NO_STATE)


def _oddities(module: Module) -> Iterator[Finding]:
    """Iterate over what single instructions give away, each rule once."""
    seen: set[str] = set()
    for function, instruction in module.instructions():
        found = (*_special(module, function, instruction), *_odd(module, instruction))
        for rule, message, hint in found:
            if rule not in seen:
                seen.add(rule)
                yield rule_finding(rule, message, hint, module.source_line(instruction.location))


def _special(
    module: Module, function: Function, instruction: Instruction
) -> Iterator[tuple[str, str, str]]:
    """Iterate over what an instruction's special registers tell, wherever they stand in it."""
    location = instruction.location
    for operand in (instruction.predicate, *instruction.operands):
        if "%" not in operand:
            continue
        for name in names_in(operand):
            register = name.partition("@")[0]
            is_known = _SPECIAL.fullmatch(register) is not None
            if not is_known and (register[0] != "%" or function.declares(name)):
                continue
            if _GRID.fullmatch(register):
                continue
            if _CLOCK.fullmatch(register):
                if not _waits_in_library(module, location):
                    hint = "results and work may not depend on time"
                    yield "object.clock", "the kernel reads a clock", hint
            elif _PROCESSOR.fullmatch(register):
                message = "the kernel asks which multiprocessor or warp slot it runs on"
                yield "object.processor_id", message, "results may not depend on it"
            else:
                message = f"the kernel asks which launch it is ({short(register)})"
                yield "object.launch_counter", message, "every launch does the same work"


def _odd(module: Module, instruction: Instruction) -> Iterator[tuple[str, str, str]]:
    location = instruction.location
    if instruction.opcode == "nanosleep" and not _waits_in_library(module, location):
        yield "object.sleep", "the kernel sleeps", "wait on a barrier instead"
    if instruction.opcode == "discard":
        yield "object.discard", "the kernel throws written data away", "leave caches alone"
    if not _KEPT.isdisjoint(instruction.parts):
        message = "the kernel asks the cache to keep data; the cache is emptied between calls"
        yield "object.cache_hint", message, ""


def _waits_in_library(module: Module, location: Location | None) -> bool:
    """Return whether an instruction is part of the back-off of the toolkit's own waiting."""
    while location is not None:
        name = module.files.get(location.file, "").rpartition("/")[2]
        if name == OWN_FILE:
            return False
        if name.startswith(_LIBRARY_WAIT):
            return True
        location = location.caller
    return False


def _absolute(module: Module) -> Iterator[Finding]:
    for instruction in absolute_accesses(module):
        yield absolute_address(
            "memory is accessed at an address that is made of numbers alone",
            module.source_line(instruction.location),
        )
        return


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

"""The resources of each kernel of a cubin, from its attributes and from the assembler's report.

The attributes are the driver's own source; spilled registers, and shared memory without what the
system reserves, are in the report alone.
"""

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from evaluator_svc.cubin.elf import Elf, read
from kernel_foundry.domain.evaluation import KernelResources

_ATTRIBUTES: Final = ".nv.info"
_KERNEL_CODE: Final = ".text."
_SHARED: Final = ".nv.shared."
_RESERVED: Final = ".nv.shared.reserved.0"
"""There where the system keeps the first part of shared memory for itself."""
_RESERVED_BYTES: Final = 1024
_FRAME_SIZE: Final = 0x11
_REGISTER_COUNT: Final = 0x2F
_HAS_SIZE: Final = 4
"""Format of an attribute whose value follows it; the value of all others is in place."""
_NUMBER_OF_SYMBOL: Final = struct.Struct("<II")

_LOG_KERNEL: Final = re.compile(r"Compiling entry function '([^'\n]*)' for")
_LOG_OTHER: Final = re.compile(r"Function properties for (\S+)")
_LOG_STACK: Final = re.compile(
    r"(\d{1,9}) bytes stack frame, (\d{1,9}) bytes spill stores, (\d{1,9}) bytes spill loads"
)
_LOG_USED: Final = re.compile(r"Used (\d{1,9}) registers")
_LOG_SHARED: Final = re.compile(r"(\d{1,9}) bytes smem")
_MAX_LINES: Final = 20_000


@dataclass(slots=True)
class _Reported:
    """What the assembler said of one kernel."""

    registers: int | None = None
    shared_bytes: int | None = None
    local_bytes: int | None = None
    spill_bytes: int = 0


def resources(code: bytes, log: str) -> tuple[KernelResources, ...]:
    """Return what each kernel takes, in order of their names.

    Args:
        code: The cubin.
        log: The compiler's, with the assembler's report (`-v`) in it; may be empty.

    Raises:
        CubinError: not a well-formed cubin.
    """
    elf = read(code)
    registers = dict(_per_symbol(elf, _REGISTER_COUNT))
    frames = dict(_per_symbol(elf, _FRAME_SIZE))
    reported = _reports(log)
    return tuple(
        _of_kernel(elf, kernel, registers, frames, reported.get(kernel, _Reported()))
        for kernel in sorted(_kernels(elf))
    )


def _kernels(elf: Elf) -> Iterator[str]:
    for name in elf.sections:
        # Functions that are only called have code of their own, too, but no attributes.
        kernel = name.removeprefix(_KERNEL_CODE)
        if kernel != name and f"{_ATTRIBUTES}.{kernel}" in elf.sections:
            yield kernel


def _of_kernel(
    elf: Elf,
    kernel: str,
    registers: Mapping[str, int],
    frames: Mapping[str, int],
    reported: _Reported,
) -> KernelResources:
    section = elf.sections.get(_SHARED + kernel)
    shared = reported.shared_bytes
    if shared is None:
        reserved = _RESERVED_BYTES if _RESERVED in elf.sections else 0
        shared = 0 if section is None else max(0, section.size_bytes - reserved)
    return KernelResources(
        kernel=kernel,
        registers=registers.get(kernel, reported.registers or 0),
        shared_bytes=shared,
        local_bytes=frames.get(kernel, reported.local_bytes or 0),
        spill_bytes=reported.spill_bytes,
    )


def _per_symbol(elf: Elf, wanted: int) -> Iterator[tuple[str, int]]:
    """Iterate over the values of a module-wide attribute, by symbol."""
    section = elf.sections.get(_ATTRIBUTES)
    data = section.data if section is not None else b""
    position = 0
    while position + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, position)
        position += 4
        if form != _HAS_SIZE:
            continue
        value = data[position : position + size]
        position += size
        if attribute == wanted and len(value) >= _NUMBER_OF_SYMBOL.size:
            symbol, number = _NUMBER_OF_SYMBOL.unpack_from(value)
            if symbol < len(elf.symbols):
                yield elf.symbols[symbol], number


def _reports(log: str) -> dict[str, _Reported]:
    """Return the assembler's reports by kernel; those of other functions are left out."""
    found: dict[str, _Reported] = {}
    current: _Reported | None = None
    kernel = ""
    for line in log.split("\n")[:_MAX_LINES]:
        if match := _LOG_KERNEL.search(line):
            kernel = match[1]
            current = found.setdefault(kernel, _Reported(shared_bytes=0))
        elif match := _LOG_OTHER.search(line):
            current = found.get(match[1])
        elif match := _LOG_STACK.search(line):
            if current is not None:
                current.local_bytes = int(match[1])
                current.spill_bytes = int(match[2]) + int(match[3])
        elif match := _LOG_USED.search(line):
            own = found.get(kernel)
            if own is not None:
                own.registers = int(match[1])
                shared = _LOG_SHARED.search(line)
                own.shared_bytes = int(shared[1]) if shared else 0
    return found

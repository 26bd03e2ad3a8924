"""Sections and symbols of a 64-bit ELF file.

The file comes from a compiler that was fed hostile text and through a cache on disk: every offset
is checked before it is used.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_MAGIC: Final = b"\x7fELF\x02\x01"
"""64 bits, little-endian."""
_CUDA_MACHINE: Final = 190
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_MAX_BYTES: Final = 256 << 20
_MAX_SYMBOLS: Final = 100_000
_NO_BITS: Final = 8
_SYMBOL_TABLE: Final = 2


class CubinError(Exception):
    """The bytes are no cubin that can be read."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section; one that takes no place in the file has no data."""

    name: str
    size_bytes: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Elf:
    """What a file holds."""

    sections: Mapping[str, Section]
    """By name; the first of each."""
    symbols: tuple[str, ...]
    """Names, by index."""


def read(code: bytes) -> Elf:
    """Return sections and symbols.

    Raises:
        CubinError: no well-formed ELF file for CUDA devices.
    """
    if len(code) > _MAX_BYTES:
        raise CubinError(f"{len(code)} bytes are more than the {_MAX_BYTES} that are looked at")
    if len(code) < _HEADER.size or not code.startswith(_MAGIC):
        raise CubinError("no 64-bit ELF file")
    header = _HEADER.unpack_from(code)
    machine, offset, size, count, names = header[2], header[6], header[11], header[12], header[13]
    if machine != _CUDA_MACHINE:
        raise CubinError(f"machine {machine} is not a CUDA device")
    if size != _SECTION.size or offset + size * count > len(code) or names >= count:
        raise CubinError("the table of sections does not lie inside the file")
    table = [_SECTION.unpack_from(code, offset + size * i) for i in range(count)]
    strings = _data(code, table[names])
    sections: dict[str, Section] = {}
    symbols: tuple[str, ...] = ()
    for entry in table:
        data = _data(code, entry)
        name = _string(strings, entry[0])
        sections.setdefault(name, Section(name=name, size_bytes=entry[5], data=data))
        if entry[1] == _SYMBOL_TABLE and entry[6] < count:
            symbols = _symbols(data, _data(code, table[entry[6]]))
    return Elf(sections=sections, symbols=symbols)


def _data(code: bytes, entry: tuple[int, ...]) -> bytes:
    kind, offset, size = entry[1], entry[4], entry[5]
    if kind == _NO_BITS:
        return b""
    if offset + size > len(code):
        raise CubinError("a section does not end inside the file")
    return code[offset : offset + size]


def _symbols(data: bytes, strings: bytes) -> tuple[str, ...]:
    count = len(data) // _SYMBOL.size
    if count > _MAX_SYMBOLS:
        raise CubinError(f"{count} symbols are more than {_MAX_SYMBOLS}")
    entries = (_SYMBOL.unpack_from(data, i * _SYMBOL.size) for i in range(count))
    return tuple(_string(strings, entry[0]) for entry in entries)


def _string(strings: bytes, offset: int) -> str:
    end = strings.find(b"\0", offset)
    if end < 0:
        return ""
    return strings[offset:end].decode("utf-8", errors="replace")

"""How many fields the bytes of a message hold, counted before any of them becomes an object.

Two bytes can be a message of their own, which takes hundreds of bytes of memory and a microsecond
to read: a limit of bytes alone bounds neither.

Source of the format: https://protobuf.dev/programming-guides/encoding/
"""

from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

_COUNTED_FROM_BYTES: Final = 64 * 1024
"""Fewer bytes hold too few fields to matter, and need not be looked at twice."""

_DOUBLES_A_FIELD: Final = 16
"""Packed numbers of fixed width are read in one call: they count for less."""
_DOUBLE_BYTES: Final = 8

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_FIXED_TYPES: Final = (
    FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_SFIXED64,
    FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_FIXED32, FieldDescriptor.TYPE_SFIXED32,
)  # fmt: skip
_TEXT_TYPES: Final = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)

_DEEPEST: Final = 100
"""As protobuf's own readers have it."""


def check_field_count(data: bytes, descriptor: Descriptor, most: int) -> None:
    """Refuse bytes of more than `most` fields, those of all messages within counted.

    Each number of a packed sequence counts as a field, or as a sixteenth where its width is fixed.

    Raises:
        ValueError: there are more, or the bytes are no message.
    """
    if len(data) < _COUNTED_FROM_BYTES:
        return
    left = most
    outer: list[tuple[_Kinds, int]] = []
    kinds, end, position = _kinds(descriptor), len(data), 0
    while True:
        while position < end:
            left -= 1
            if left < 0:
                break
            tag, position = _varint(data, position)
            wire_type = tag & 7
            if wire_type == _LENGTH:
                length, position = _varint(data, position)
                stop = position + length
                if stop > end:
                    raise ValueError("a field ends behind its message")
                kind = kinds.get(tag >> 3)
                if isinstance(kind, Descriptor):
                    outer.append((kinds, end))
                    kinds, end = _kinds(kind), stop
                    if len(outer) > _DEEPEST:
                        raise ValueError("messages are nested too deeply")
                    continue
                if kind is not None:
                    left -= length // kind
                position = stop
            elif wire_type == _VARINT:
                _, position = _varint(data, position)
            elif wire_type in (_FIXED64, _FIXED32):
                position += 8 if wire_type == _FIXED64 else 4
            else:
                raise ValueError(f"a field has wire type {wire_type}, which no message of ours has")
        if left < 0:
            raise ValueError(f"it has more than {most} fields")
        if position != end:
            raise ValueError("a field ends behind its message")
        if not outer:
            return
        kinds, end = outer.pop()


_Kinds = dict[int, Any]
"""What a field that has a length is, by its number: a message's descriptor, the bytes that count
as one field where it is a packed sequence, or nothing (a text, an unknown field)."""


@cache
def _kinds(descriptor: Descriptor) -> _Kinds:
    kinds: _Kinds = {}
    for field in descriptor.fields:
        if field.message_type is not None:
            kinds[field.number] = field.message_type
        elif field.type in _FIXED_TYPES:
            kinds[field.number] = _DOUBLES_A_FIELD * _DOUBLE_BYTES
        elif field.type not in _TEXT_TYPES:
            kinds[field.number] = 1
    return kinds


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A number and where the next byte after it is."""
    try:
        byte = data[position]
        if byte < 0x80:
            return byte, position + 1
        value, shift = byte & 0x7F, 7
        while byte >= 0x80:
            position += 1
            byte = data[position]
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 70:
                raise ValueError("a number has more than ten bytes")
    except IndexError:
        raise ValueError("it ends within a number") from None
    return value, position + 1

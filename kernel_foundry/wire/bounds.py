"""Bounds of the texts and sequences of a request, as its proto states them beside each field.

`protos/kernel_foundry/common/v1/bounds.proto` has the options. What a whole message may hold is in
`rpc/limits.py`; what only the domain knows, such as the form of a name, is checked by the services.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from kernel_foundry.common.v1 import bounds_pb2
from kernel_foundry.errors import InvalidArgumentError

_TEXT_TYPES = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)


def check_bounds(message: Message) -> None:
    """Refuse a message with a text or a sequence beyond its bound, at any depth.

    Raises:
        InvalidArgumentError: `metadata["field"]` is the path of the field.
    """
    fault = _fault(message, _bounds(message.DESCRIPTOR))
    if fault is not None:
        path, what = fault
        raise InvalidArgumentError(f"{path}: {what}", field=path)


def longest(field: FieldDescriptor) -> int | None:
    """Return the most characters of a text, or of each of several; None where none are stated."""
    options = field.GetOptions()
    stated = options.HasExtension(bounds_pb2.longest)
    return options.Extensions[bounds_pb2.longest] if stated else None


def most(field: FieldDescriptor) -> int | None:
    """Return the most values of a sequence; None where none are stated."""
    options = field.GetOptions()
    stated = options.HasExtension(bounds_pb2.most)
    return options.Extensions[bounds_pb2.most] if stated else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    texts: tuple[tuple[str, int], ...]
    """Name and most characters."""
    sequences: tuple[tuple[str, int | None, int | None], ...]
    """Name, most values, and most characters of each."""
    parts: tuple[tuple[str, bool, "_Bounds"], ...]
    """Messages within: name, whether there are several, and their own bounds."""


@cache
def _bounds(descriptor: Descriptor) -> _Bounds:
    fields = descriptor.fields
    return _Bounds(
        texts=tuple(
            (field.name, characters)
            for field in fields
            if field.type in _TEXT_TYPES
            and not field.is_repeated
            and (characters := longest(field)) is not None
        ),
        sequences=tuple((f.name, most(f), longest(f)) for f in fields if f.is_repeated),
        parts=tuple(
            (f.name, f.is_repeated, _bounds(f.message_type)) for f in fields if f.message_type
        ),
    )


def _fault(message: Any, bounds: _Bounds) -> tuple[str, str] | None:
    """The path of the first field beyond its bound, and what is wrong with it."""
    for name, characters in bounds.texts:
        length = len(getattr(message, name))
        if length > characters:
            return name, f"{length} characters, expected at most {characters}"
    for name, count, characters_each in bounds.sequences:
        values = getattr(message, name)
        if not values:
            continue
        if count is not None and len(values) > count:
            return name, f"{len(values)} of them, expected at most {count}"
        if characters_each is not None and (length := max(map(len, values))) > characters_each:
            return name, f"one of {length} characters, expected at most {characters_each}"
    for name, is_repeated, inner in bounds.parts:
        if is_repeated:
            for index, part in enumerate(getattr(message, name)):
                if fault := _fault(part, inner):
                    return f"{name}[{index}].{fault[0]}", fault[1]
        elif message.HasField(name) and (fault := _fault(getattr(message, name), inner)):
            return f"{name}.{fault[0]}", fault[1]
    return None

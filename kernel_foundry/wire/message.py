"""Domain values to and from protobuf messages, by structure, with validation on the way in.

Each message mirrors a frozen dataclass field by field, so type hints and descriptors say all
there is to convert (see protos/DESIGN.md). Knows no single type and nothing of grpc.
"""

import dataclasses
import types
import typing
from enum import Enum
from functools import cache
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from kernel_foundry.errors import InvalidArgumentError

T = TypeVar("T")
M = TypeVar("M", bound=Message)


def to_message(value: object, message_class: type[M]) -> M:
    """Return the message that mirrors the dataclass instance `value`.

    Raises:
        InvalidArgumentError: protobuf cannot hold a field (an int over 64 bits, a lone
            surrogate in a string).
    """
    message = message_class()
    _write_dataclass(message, value, "")
    return message


def build(message_class: type[M], **fields: object) -> M:
    """Return a message whose `fields` are given as domain values; raises as `to_message`."""
    message = message_class()
    slots = _slots(message.DESCRIPTOR)
    for name, value in fields.items():
        _write(slots[name], message, value, "")
    return message


def from_message(kind: type[T], message: Message, path: str = "") -> T:
    """Return the `kind` that `message` describes. No default is invented.

    Args:
        kind: A domain dataclass.
        message: Its message.
        path: Where the message stands in the request, for error messages.

    Raises:
        InvalidArgumentError: a message that must be there is missing, an enum is not set or
            unknown, a sequence has the wrong length, or the dataclass refuses the values.
            `metadata["field"]` is the path of the field.
    """
    prefix = f"{path}." if path else ""
    shape = _shape(typing.cast("Any", kind), message.DESCRIPTOR)
    values = {name: getattr(message, name) for name in shape.plain}
    for field in shape.others:
        values[field.name] = _read(field, message, prefix)
    try:
        return kind(**values)
    except ValueError as error:
        raise _invalid(path or kind.__name__, str(error)) from error


def read_field(kind: type[T], message: Message, name: str) -> T:
    """Return field `name` of a request or response as `kind`; raises as `from_message`."""
    field = _field(typing.cast("Any", kind), message.DESCRIPTOR.fields_by_name[name])
    return typing.cast("T", _read(field, message, ""))


@cache
def enum_members(kind: type[Enum], descriptor: EnumDescriptor) -> dict[int, Enum | None]:
    """Return the domain member for each number of a proto enum; None where there is none.

    A proto enum's values are named after the domain's, behind the prefix of its value 0,
    `<PREFIX>_UNSPECIFIED`.
    """
    prefix = descriptor.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return {
        value.number: kind.__members__.get(value.name.removeprefix(prefix))
        for value in descriptor.values
    }


def _invalid(path: str, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{path}: {what}", field=path)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """A field's type hint and descriptor, taken apart once."""

    name: str
    kind: Any
    """Type of the value, or of one item."""
    is_optional: bool
    length: int | None
    """Of a tuple of fixed length."""
    is_repeated: bool
    is_message: bool
    has_presence: bool
    members: dict[int, Enum | None] | None
    """Of an enum."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """A dataclass's fields, by how they are read."""

    plain: tuple[str, ...]
    """Scalars that are there always and taken as they are."""
    others: tuple[_Field, ...]


@cache
def _shape(kind: Any, descriptor: Descriptor) -> _Shape:
    hints = typing.get_type_hints(kind)
    fields = [
        _field(hints[field.name], descriptor.fields_by_name[field.name])
        for field in dataclasses.fields(kind)
    ]
    others = tuple(f for f in fields if f.is_repeated or f.has_presence or f.members is not None)
    return _Shape(plain=tuple(field.name for field in fields if field not in others), others=others)


@cache
def _field(hint: Any, descriptor: FieldDescriptor) -> _Field:
    is_optional = isinstance(hint, types.UnionType)
    if is_optional:
        (hint,) = (a for a in typing.get_args(hint) if a is not types.NoneType)
    length = None
    if typing.get_origin(hint) is tuple:
        arguments = typing.get_args(hint)
        hint = arguments[0]
        length = None if arguments[-1] is Ellipsis else len(arguments)
    return _Field(
        name=descriptor.name,
        kind=hint,
        is_optional=is_optional,
        length=length,
        is_repeated=descriptor.is_repeated,
        is_message=descriptor.message_type is not None,
        has_presence=descriptor.has_presence,
        members=enum_members(hint, descriptor.enum_type) if descriptor.enum_type else None,
    )


@cache
def _number_by_enum(kind: type[Enum], descriptor: EnumDescriptor) -> dict[Enum | None, int]:
    return {member: number for number, member in enum_members(kind, descriptor).items()}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """Where a field's value goes in a message."""

    name: str
    is_repeated: bool
    is_message: bool
    enum_type: EnumDescriptor | None


@cache
def _slots(descriptor: Descriptor) -> dict[str, _Slot]:
    return {
        field.name: _Slot(
            name=field.name,
            is_repeated=field.is_repeated,
            is_message=field.message_type is not None,
            enum_type=field.enum_type,
        )
        for field in descriptor.fields
    }


@cache
def _slots_of(kind: Any, descriptor: Descriptor) -> tuple[_Slot, ...]:
    slots = _slots(descriptor)
    return tuple(slots[field.name] for field in dataclasses.fields(kind))


def _write_dataclass(message: Message, value: Any, prefix: str) -> None:
    for slot in _slots_of(value.__class__, message.DESCRIPTOR):
        _write(slot, message, getattr(value, slot.name), prefix)


def _write(slot: _Slot, message: Message, value: Any, prefix: str) -> None:
    """Write one field; `prefix` leads to its message, for errors."""
    if value is None or value == ():
        return
    if not slot.is_message:
        _write_scalars(slot, message, value, prefix)
    elif slot.is_repeated:
        items = getattr(message, slot.name)
        for index, item in enumerate(value):
            _write_dataclass(items.add(), item, f"{prefix}{slot.name}[{index}].")
    else:
        part = getattr(message, slot.name)
        part.SetInParent()
        _write_dataclass(part, value, f"{prefix}{slot.name}.")


def _write_scalars(slot: _Slot, message: Message, value: Any, prefix: str) -> None:
    if slot.enum_type is not None:
        value = _numbers(value, slot.enum_type, is_repeated=slot.is_repeated)
    try:
        if slot.is_repeated:
            getattr(message, slot.name).extend(value)  # samples: hundreds in one call
        else:
            setattr(message, slot.name, value)
    except (TypeError, ValueError) as error:
        raise _invalid(prefix + slot.name, str(error)) from error


def _numbers(value: Any, enum_type: EnumDescriptor, *, is_repeated: bool) -> Any:
    if is_repeated:
        return [_number_by_enum(item.__class__, enum_type)[item] for item in value]
    return _number_by_enum(value.__class__, enum_type)[value]


def _read(field: _Field, message: Message, prefix: str) -> Any:
    """Return one field's value; `prefix` leads to its message, for errors."""
    value = getattr(message, field.name)
    if field.is_repeated:
        # A sequence has no presence; only tuples of fixed length are optional, never empty.
        return None if field.is_optional and not value else _read_tuple(field, value, prefix)
    if field.has_presence and not message.HasField(field.name):
        if field.is_optional:
            return None
        raise _invalid(prefix + field.name, "is missing")
    if field.is_message:
        return from_message(field.kind, value, prefix + field.name)
    return value if field.members is None else _member(field, value, prefix + field.name)


def _read_tuple(field: _Field, values: Any, prefix: str) -> tuple[Any, ...]:
    path = prefix + field.name
    if field.length not in (None, len(values)):
        raise _invalid(path, f"expected {field.length} values, got {len(values)}")
    if field.is_message:
        return tuple(
            from_message(field.kind, value, f"{path}[{index}]")
            for index, value in enumerate(values)
        )
    if field.members is None:
        return tuple(values)
    return tuple(_member(field, value, f"{path}[{index}]") for index, value in enumerate(values))


def _member(field: _Field, number: int, path: str) -> Enum:
    member = (field.members or {}).get(number)
    if member is None:
        raise _invalid(path, f"{number} is no {field.kind.__name__}")
    return member

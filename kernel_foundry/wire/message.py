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

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
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
    for name, value in fields.items():
        _write_field(message, name, value, name)
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
    hints = _field_types(typing.cast("Any", kind))
    values = {name: _read(hint, message, name, prefix + name) for name, hint in hints.items()}
    try:
        return kind(**values)
    except ValueError as error:
        raise _invalid(path or kind.__name__, str(error)) from error


def read_field(kind: type[T], message: Message, name: str) -> T:
    """Return field `name` of a request or response as `kind`; raises as `from_message`."""
    return typing.cast("T", _read(kind, message, name, name))


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


@cache
def _field_types(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


@cache
def _number_by_enum(kind: type[Enum], descriptor: EnumDescriptor) -> dict[Enum | None, int]:
    return {member: number for number, member in enum_members(kind, descriptor).items()}


def _descriptor(message: Message, name: str) -> FieldDescriptor:
    # The stubs do not know that upb's descriptors have the same attributes.
    return typing.cast("FieldDescriptor", message.DESCRIPTOR.fields_by_name[name])


def _write_dataclass(message: Message, value: Any, path: str) -> None:
    prefix = f"{path}." if path else ""
    for name in _field_types(value.__class__):
        _write_field(message, name, getattr(value, name), prefix + name)


def _write_field(message: Message, name: str, value: Any, path: str) -> None:
    field = _descriptor(message, name)
    if value is None:
        return
    if field.message_type is not None and field.is_repeated:
        for index, item in enumerate(value):
            _write_dataclass(getattr(message, name).add(), item, f"{path}[{index}]")
    elif field.message_type is not None:
        getattr(message, name).SetInParent()
        _write_dataclass(getattr(message, name), value, path)
    else:
        _write_scalars(message, field, value, path)


def _write_scalars(message: Message, field: FieldDescriptor, value: Any, path: str) -> None:
    try:
        if field.is_repeated:
            getattr(message, field.name).extend(_scalar(field, item) for item in value)
        else:
            setattr(message, field.name, _scalar(field, value))
    except (TypeError, ValueError) as error:
        raise _invalid(path, str(error)) from error


def _scalar(field: FieldDescriptor, value: Any) -> Any:
    if field.enum_type is None:
        return value
    return _number_by_enum(value.__class__, field.enum_type)[value]


def _read(kind: Any, message: Message, name: str, path: str) -> Any:
    field = _descriptor(message, name)
    value = getattr(message, name)
    is_optional = typing.get_origin(kind) in (types.UnionType, typing.Union)
    if is_optional:
        (kind,) = (a for a in typing.get_args(kind) if a is not types.NoneType)
    if field.is_repeated:
        # A sequence has no presence; only tuples of fixed length are optional, never empty.
        return None if is_optional and not value else _read_tuple(kind, field, value, path)
    if field.has_presence and not message.HasField(name):
        if is_optional:
            return None
        raise _invalid(path, "is missing")
    return _read_value(kind, field, value, path)


def _read_tuple(kind: Any, field: FieldDescriptor, values: Any, path: str) -> tuple[Any, ...]:
    item, *rest = typing.get_args(kind)
    if rest != [Ellipsis] and len(values) != 1 + len(rest):
        raise _invalid(path, f"expected {1 + len(rest)} values, got {len(values)}")
    if field.message_type is None and field.enum_type is None:
        return tuple(values)
    return tuple(
        _read_value(item, field, value, f"{path}[{index}]") for index, value in enumerate(values)
    )


def _read_value(kind: Any, field: FieldDescriptor, value: Any, path: str) -> Any:
    if field.message_type is not None:
        return from_message(kind, value, path)
    if field.enum_type is None:
        return value
    member = enum_members(kind, field.enum_type).get(value)
    if member is None:
        raise _invalid(path, f"{value} is no {kind.__name__}")
    return member

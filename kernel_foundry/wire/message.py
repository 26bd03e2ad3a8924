"""Domain values to and from protobuf messages, by structure, with validation on the way in.

Each message mirrors a frozen dataclass field by field, so type hints and descriptors say all there
is to convert (see protos/DESIGN.md).
"""

import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING
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
    kind: Any = value.__class__
    try:
        _writer(kind, message.DESCRIPTOR)(message, value)
    except _RefusedError as refused:
        raise _invalid(refused.path, refused.what) from refused.__cause__
    return message


def build(message_class: type[M], **fields: object) -> M:
    """Return a message whose `fields` are given as domain values; raises as `to_message`."""
    message = message_class()
    try:
        for name, value in fields.items():
            if value is not None and value != ():
                _field_writer(message.DESCRIPTOR.fields_by_name[name])(message, value)
    except _RefusedError as refused:
        raise _invalid(refused.path, refused.what) from refused.__cause__
    return message


def from_message(kind: type[T], message: Message, path: str = "") -> T:
    """Return the `kind` that `message` describes; unset fields take the dataclass's default.

    Messages, enums, `optional` scalars and empty sequences can be unset.

    Args:
        kind: A domain dataclass.
        message: Its message.
        path: Where in the request the message is, for error messages.

    Raises:
        InvalidArgumentError: a message or an enum without default is not set, an enum is
            unknown, a sequence has the wrong length, or the dataclass refuses the values.
            `metadata["field"]` is the path of the field.
    """
    reader = _reader(typing.cast("Any", kind), message.DESCRIPTOR)
    try:
        return typing.cast("T", reader(message))
    except _RefusedError as refused:
        where = ".".join(part for part in (path, refused.path) if part)
        raise _invalid(where or kind.__name__, refused.what) from refused.__cause__


def read_field(kind: type[T], message: Message, name: str) -> T:
    """Return field `name` of a request or response as `kind`; raises as `from_message`."""
    field = _field(typing.cast("Any", kind), message.DESCRIPTOR.fields_by_name[name])
    try:
        return typing.cast("T", _field_reader(field)(message))
    except _RefusedError as refused:
        raise _invalid(refused.path, refused.what) from refused.__cause__


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
    """Length of a tuple of fixed length."""
    is_repeated: bool
    message_type: Descriptor | None
    has_presence: bool
    members: dict[int, Enum | None] | None
    """Members of an enum by number."""
    is_named: bool
    """Whether it is an enum whose values travel as strings, since others may be registered."""
    default: Any
    """The value if it is not set; `MISSING`: it has to be set."""


@cache
def _field(hint: Any, descriptor: FieldDescriptor, default: Any = MISSING) -> _Field:
    is_optional = isinstance(hint, types.UnionType)
    if is_optional:
        (hint,) = (a for a in typing.get_args(hint) if a is not types.NoneType)
        default = None
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
        message_type=descriptor.message_type,
        has_presence=descriptor.has_presence,
        members=enum_members(hint, descriptor.enum_type) if descriptor.enum_type else None,
        is_named=not descriptor.enum_type and isinstance(hint, type) and issubclass(hint, Enum),
        default=default,
    )


@cache
def _number_by_enum(kind: type[Enum], descriptor: EnumDescriptor) -> dict[Enum | None, int]:
    return {member: number for number, member in enum_members(kind, descriptor).items()}


class _RefusedError(Exception):
    """A field cannot be converted; `path` leads there from the message at hand."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(path, what)
        self.path = path
        self.what = what

    def within(self, name: str) -> "_RefusedError":
        """Return the same refusal, seen from the message that holds this one as `name`."""
        outer = _RefusedError(f"{name}.{self.path}" if self.path else name, self.what)
        outer.__cause__ = self.__cause__
        return outer


Writer = Callable[[Any, Any], None]
"""Puts a value into a message; raises _RefusedError."""


@cache
def _writer(kind: Any, descriptor: Descriptor) -> Writer:
    """Return the function that writes a dataclass into messages of one type.

    A verdict has hundreds of parts: which field is written how is decided once, and where a part
    stands is found out when it is refused. The same holds for `_reader`.
    """
    fields = [descriptor.fields_by_name[field.name] for field in dataclasses.fields(kind)]
    plain = tuple(f.name for f in fields if _is_one_scalar(f))
    others = tuple((f.name, _field_writer(f)) for f in fields if not _is_one_scalar(f))

    def write(message: Any, value: Any) -> None:
        name = ""
        try:
            for name in plain:
                item = getattr(value, name)
                if item is not None:
                    setattr(message, name, item)
        except (TypeError, ValueError) as error:
            raise _RefusedError(name, str(error)) from error
        for name, write_one in others:
            item = getattr(value, name)
            if item is not None and item != ():
                write_one(message, item)

    return write


def _is_one_scalar(field: FieldDescriptor) -> bool:
    return not (field.is_repeated or field.message_type or field.enum_type)


@cache
def _field_writer(field: FieldDescriptor) -> Writer:
    if field.message_type is None:
        return _scalar_writer(field)
    name, descriptor = field.name, field.message_type

    def write_one(message: Any, value: Any) -> None:
        part = getattr(message, name)
        part.SetInParent()
        try:
            _writer(value.__class__, descriptor)(part, value)
        except _RefusedError as refused:
            raise refused.within(name) from refused.__cause__

    def write_all(message: Any, values: Any) -> None:
        items = getattr(message, name)
        write_item = _writer(values[0].__class__, descriptor)
        try:
            for value in values:
                write_item(items.add(), value)
        except _RefusedError as refused:
            raise refused.within(f"{name}[{len(items) - 1}]") from refused.__cause__

    return write_all if field.is_repeated else write_one


def _scalar_writer(field: FieldDescriptor) -> Writer:
    """Return the function that writes a number, a text or an enum, or a sequence of them."""
    name, is_repeated, enum_type = field.name, field.is_repeated, field.enum_type

    def write(message: Any, value: Any) -> None:
        if enum_type is not None:
            value = _numbers(value, enum_type, is_repeated=is_repeated)
        try:
            if is_repeated:
                getattr(message, name).extend(value)  # samples: hundreds in one call
            else:
                setattr(message, name, value)
        except (TypeError, ValueError) as error:
            raise _RefusedError(name, str(error)) from error

    return write


def _numbers(value: Any, enum_type: EnumDescriptor, *, is_repeated: bool) -> Any:
    if is_repeated:
        return [_number_by_enum(item.__class__, enum_type)[item] for item in value]
    return _number_by_enum(value.__class__, enum_type)[value]


Reader = Callable[[Any], Any]
"""From a message to a value; raises _RefusedError."""


@cache
def _reader(kind: Any, descriptor: Descriptor) -> Reader:
    hints = typing.get_type_hints(kind)
    fields = [
        _field(hints[field.name], descriptor.fields_by_name[field.name], field.default)
        for field in dataclasses.fields(kind)
    ]
    plain = tuple(f.name for f in fields if _is_plain(f))
    others = tuple((f.name, _field_reader(f)) for f in fields if not _is_plain(f))

    def read(message: Any) -> Any:
        values = {name: getattr(message, name) for name in plain}
        for name, read_one in others:
            values[name] = read_one(message)
        try:
            return kind(**values)
        except ValueError as error:
            raise _RefusedError("", str(error)) from error

    return read


def _is_plain(field: _Field) -> bool:
    """Whether a field is a scalar that is there always and taken as it is."""
    is_enum = field.is_named or field.members is not None
    return not (field.is_repeated or field.has_presence or is_enum)


def _field_reader(field: _Field) -> Reader:
    name, item = field.name, _item_reader(field)
    if field.is_repeated:
        return _sequence_reader(field, item)

    def read_present(message: Any) -> Any:
        if not message.HasField(name):
            if field.default is not MISSING:
                return field.default
            raise _RefusedError(name, "is missing")
        return read_always(message)

    def read_always(message: Any) -> Any:
        try:
            return item(getattr(message, name))
        except _RefusedError as refused:
            raise refused.within(name) from refused.__cause__

    return read_present if field.has_presence else read_always


def _item_reader(field: _Field) -> Reader:
    """Return the function that makes a value of a message's field."""
    if field.message_type is not None:
        return _reader(field.kind, field.message_type)
    if field.is_named:
        return functools.partial(_named, field.kind)
    if field.members is None:
        return lambda value: value
    members, kind, default = field.members, field.kind, field.default

    def read_member(number: int) -> Any:
        if not number and isinstance(default, kind):
            return default
        member = members.get(number)
        if member is None:
            raise _RefusedError("", f"{number} is no {kind.__name__}")
        return member

    return read_member


def _named(kind: type[Enum], name: str) -> Enum:
    """The value of an enum that languages are added to, by its name."""
    try:
        return kind(name)
    except ValueError:
        raise _RefusedError("", f"{name[:80]!r} is no {kind.__name__}") from None


def _sequence_reader(field: _Field, item: Reader) -> Reader:
    name, length = field.name, field.length
    empty = None if field.is_optional else () if field.default is MISSING else field.default
    is_as_is = field.message_type is None and field.members is None

    def read(message: Any) -> Any:
        values = getattr(message, name)
        # A sequence has no presence; only tuples of fixed length are optional, never empty.
        if not values and (empty or length is None or field.is_optional):
            return empty
        if length is not None and length != len(values):
            raise _RefusedError(name, f"expected {length} values, got {len(values)}")
        if is_as_is:
            return tuple(values)
        read_values: list[Any] = []
        try:
            for value in values:
                read_values.append(item(value))  # noqa: PERF401  its length tells which is refused
        except _RefusedError as refused:
            raise refused.within(f"{name}[{len(read_values)}]") from refused.__cause__
        return tuple(read_values)

    return read

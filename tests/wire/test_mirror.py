"""Protos and domain say the same: every dataclass, field, type and enum value, both ways."""

import dataclasses
import importlib
import inspect
import pkgutil
import types
import typing
from enum import Enum
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor

import kernel_foundry.domain
from kernel_foundry.domain.language import Language
from kernel_foundry.wire.message import enum_members
from kernel_foundry.wire.registry import MESSAGES

_NAMED = {Language}
"""Enums that travel as strings, since values may be registered."""
_SCALAR_TYPES = {
    str: FieldDescriptor.TYPE_STRING,
    int: FieldDescriptor.TYPE_INT64,
    float: FieldDescriptor.TYPE_DOUBLE,
    bool: FieldDescriptor.TYPE_BOOL,
    bytes: FieldDescriptor.TYPE_BYTES,
}


def _domain_classes() -> list[type]:
    modules = [
        importlib.import_module(f"kernel_foundry.domain.{info.name}")
        for info in pkgutil.iter_modules(kernel_foundry.domain.__path__)
    ]
    return [
        value
        for module in modules
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__ == module.__name__
    ]


def _enum_pairs() -> dict[type[Enum], Any]:
    """Return the proto enum of each domain enum, as the fields pair them."""
    pairs = {}
    for kind, message_class in MESSAGES.items():
        for name, hint in typing.get_type_hints(kind).items():
            for part in typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,):
                if inspect.isclass(part) and issubclass(part, Enum) and part not in _NAMED:
                    pairs[part] = message_class.DESCRIPTOR.fields_by_name[name].enum_type
    return pairs


def test_every_domain_dataclass_has_a_message() -> None:
    """The registry lists all of them, under the same name."""
    dataclasses_ = {kind for kind in _domain_classes() if dataclasses.is_dataclass(kind)}
    assert dataclasses_ == set(MESSAGES)
    for kind, message_class in MESSAGES.items():
        assert kind.__name__ == message_class.DESCRIPTOR.name


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_fields_have_the_same_names_and_types(kind: type) -> None:
    """Every field stands on both sides.

    Presence stands exactly where None is allowed, or where a scalar's default is not the wire's.
    """
    proto_fields = MESSAGES[kind].DESCRIPTOR.fields_by_name
    hints = typing.get_type_hints(kind)
    assert set(hints) == set(proto_fields)
    for own in dataclasses.fields(kind):
        _check_field(hints[own.name], proto_fields[own.name], own.default)


def _check_field(hint: Any, field: FieldDescriptor, default: Any) -> None:
    unset = (dataclasses.MISSING, None, field.default_value)
    has_default = field.enum_type is None and default not in unset
    where = field.full_name
    is_optional = isinstance(hint, types.UnionType)
    if is_optional:
        (hint,) = (a for a in typing.get_args(hint) if a is not types.NoneType)
    if typing.get_origin(hint) is tuple:
        is_fixed = typing.get_args(hint)[-1] is not Ellipsis
        assert field.is_repeated, where
        assert is_fixed or not is_optional, f"{where}: empty cannot mean None"
        assert len(set(typing.get_args(hint)) - {Ellipsis}) == 1, f"{where}: mixed tuple"
        hint = typing.get_args(hint)[0]
    else:
        assert not field.is_repeated, where
        is_message = field.message_type is not None
        assert field.has_presence == (is_optional or is_message or has_default), where
    if dataclasses.is_dataclass(hint):
        assert field.message_type is MESSAGES[typing.cast("type", hint)].DESCRIPTOR, where
    elif hint in _NAMED:
        assert field.type == FieldDescriptor.TYPE_STRING, where
    elif issubclass(hint, Enum):
        assert field.enum_type is not None, where
    else:
        assert field.type == _SCALAR_TYPES[hint], where


def test_every_domain_enum_has_a_proto_enum() -> None:
    """Each is used by a field, under the same name."""
    enums = {kind for kind in _domain_classes() if issubclass(kind, Enum)} - _NAMED
    pairs = _enum_pairs()
    assert enums == set(pairs)
    assert [e.__name__ for e in pairs] == [descriptor.name for descriptor in pairs.values()]


def test_enum_values_are_one_to_one() -> None:
    """Value 0 is UNSPECIFIED and stands for nothing; all others pair up."""
    for kind, descriptor in _enum_pairs().items():
        members = dict(enum_members(kind, descriptor))
        assert descriptor.values_by_number[0].name.endswith("_UNSPECIFIED")
        assert members.pop(0) is None
        assert sorted(kind.__members__) == sorted(m.name for m in members.values() if m is not None)
        assert len(members) == len(kind.__members__)

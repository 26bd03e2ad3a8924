"""Domain values to and from plain data (dicts, lists, strings, numbers), and JSON.

One structural rule serves the store, the pipes between processes and `--json`: a dataclass is a
dict of its fields, an enum its value, a tuple a list. The converter for protobuf is in
`wire/message.py`.
"""

import dataclasses
import json
import math
import types
import typing
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any, TypeVar

from kernel_foundry.shown_value import shown

T = TypeVar("T")

_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class PlainError(ValueError):
    """Plain data that does not fit the type; the message starts with the field's path."""


def to_plain(value: Any) -> Any:
    """Return `value` as JSON-ready data; non-finite floats become the strings JSON lacks."""
    kind: Any = type(value)
    if kind is tuple or kind is list:
        # Most of what is stored are samples: no call for each of them.
        return [
            item if type(item) is float and math.isfinite(item) else to_plain(item)
            for item in value
        ]
    names = _field_names(kind)
    if names is not None:
        return {name: to_plain(getattr(value, name)) for name in names}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value


def from_plain(kind: type[T], data: Any, path: str = "") -> T:
    """Return the `kind` that `data` describes.

    Raises:
        PlainError: a field is missing, unknown or of the wrong type, or the value is refused
            by the dataclass itself.
    """
    return typing.cast("T", _read(kind, data, path or kind.__name__))


def to_json(value: Any) -> str:
    """Return `value` as one line of JSON."""
    try:
        return _dump(value, default=_members)
    except ValueError:  # a number that JSON lacks: rare, and then the long way
        return _dump(to_plain(value))


def from_json(kind: type[T], text: str | bytes) -> T:
    """Return the `kind` that the JSON `text` describes; raises as `from_plain` does."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlainError(f"{kind.__name__}: not JSON: {error}") from error
    return from_plain(kind, data)


def _dump(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    # Frozen values hold no circles, and looking for some would take a sixth of the time.
    return json.dumps(
        value, allow_nan=False, check_circular=False, separators=(",", ":"), default=default
    )


def _members(value: Any) -> Any:
    """Return plain data for a `value` that `json` does not know, one level of it."""
    kind: Any = type(value)
    names = _field_names(kind)
    if names is not None:
        return {name: getattr(value, name) for name in names}
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"{kind.__name__} is not plain data")


@cache
def _field_names(kind: Any) -> tuple[str, ...] | None:
    """The names of a dataclass's fields, of which there may be none; None for others."""
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple(field.name for field in dataclasses.fields(kind))


@cache
def _origin(kind: Any) -> Any:
    return typing.get_origin(kind)


@cache
def _arguments(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind)


@cache
def _field_types(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(kind: Any, data: Any, path: str) -> Any:
    origin = _origin(kind)
    if origin in (types.UnionType, typing.Union):
        return _read_optional(kind, data, path)
    if origin is tuple:
        return _read_tuple(_arguments(kind), data, path)
    if _field_names(kind) is not None:
        return _read_dataclass(typing.cast("type", kind), data, path)
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(data)
        except ValueError as error:
            raise PlainError(f"{path}: {shown(data)} is no {kind.__name__}") from error
    return _read_scalar(kind, data, path)


def _read_optional(kind: Any, data: Any, path: str) -> Any:
    if data is None:
        return None
    (inner,) = [a for a in _arguments(kind) if a is not type(None)]
    return _read(inner, data, path)


def _read_tuple(arguments: tuple[Any, ...], data: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        raise PlainError(f"{path}: expected a list, got {type(data).__name__}")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        kind = arguments[0]
        return tuple(
            d if type(d) is kind else _read(kind, d, f"{path}[{i}]") for i, d in enumerate(data)
        )
    if len(arguments) != len(data):
        raise PlainError(f"{path}: expected {len(arguments)} items, got {len(data)}")
    return tuple(
        _read(a, d, f"{path}[{i}]") for i, (a, d) in enumerate(zip(arguments, data, strict=True))
    )


def _read_dataclass(kind: type, data: Any, path: str) -> Any:
    if not isinstance(data, dict):
        raise PlainError(f"{path}: expected an object, got {type(data).__name__}")
    hints = _field_types(kind)
    unknown = data.keys() - hints.keys()
    if unknown:
        raise PlainError(f"{path}: unknown field {shown(min(unknown))}")
    try:
        return kind(
            **{
                k: v if type(v) is hints[k] else _read(hints[k], v, f"{path}.{k}")
                for k, v in data.items()
            }
        )
    except (TypeError, ValueError) as error:
        if isinstance(error, PlainError):
            raise
        raise PlainError(f"{path}: {error}") from error


def _read_scalar(kind: Any, data: Any, path: str) -> Any:
    if kind is float and isinstance(data, str) and data in _NON_FINITE:
        return _NON_FINITE[data]
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return _as_float(data, path)
    if type(data) is kind:
        return data
    raise PlainError(f"{path}: expected {kind.__name__}, got {type(data).__name__}")


def _as_float(data: int, path: str) -> float:
    try:
        return float(data)
    except OverflowError as error:
        raise PlainError(f"{path}: a number of {data.bit_length()} bits") from error

"""Settings of an entry as workloads: what differs becomes a constant of the task file.

A task's workloads differ in sizes, flags and numbers; settings that differ in anything else make
tasks of their own.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kernel_foundry.domain.task import Tolerance
from kernel_foundry.sdk.task_import.entry import NotRepresentableError
from kernel_foundry.shown_value import shown

MOST_SETTINGS: Final = 256
"""As many as a task has workloads."""
_LARGEST: Final = 1 << 40
_HELD_OUT_EACH: Final = 4
_LONGEST_LITERAL: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSetting:
    """What one run of an entry is called with."""

    values: Mapping[str, Any]
    timed: bool = True
    """Whether the suite times it; the others are for correctness alone."""
    tolerance: Tolerance | None = None
    """What its outputs are held to; None: the suite does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingGroup:
    """Settings that differ in sizes, flags and numbers alone: the workloads of one task."""

    constants: Mapping[str, Any]
    """Values that all of them have, by name."""
    overridden: Mapping[str, Any]
    """Values of the task file's own constants, by name: those of the first workload."""
    workloads: list[dict[str, Any]] = field(default_factory=list)
    """As a sidecar has them; empty if they do not differ."""
    is_timed: bool = True
    """Whether any of them is timed."""
    tolerance: Tolerance | None = None
    """The widest of all; None where not all have one. A workload's own is among its keys."""


def setting_groups(
    settings: Iterable[ImportSetting],
    *,
    splits: Callable[[str, Any], bool] = lambda _name, _value: False,
) -> list[SettingGroup]:
    """Return the groups of settings, in the order in which each first appears.

    Where the suite times all of a group, every fourth is held out, or the last of two or three.

    Args:
        settings: All settings of an entry.
        splits: Whether settings that differ in a flag or a number, given its name and a value,
            make tasks of their own.
    """
    found: dict[str, list[ImportSetting]] = {}
    for setting in _with_floats(list(settings)):
        kind = {
            name: [value] if splits(name, value) else _kind(value)
            for name, value in setting.values.items()
        }
        found.setdefault(json.dumps(kind, sort_keys=True), []).append(setting)
    return [_group(group) for group in found.values()]


def _kind(value: Any) -> Any:
    """What two values have in common that one task may have in two workloads."""
    if is_size(value):
        return "size"
    return type(value).__name__ if type(value) in (bool, float) else [value]


def _with_floats(settings: list[ImportSetting]) -> list[ImportSetting]:
    """Settings in which a number that has a point in one of them is a float in all."""
    floats = {n for s in settings for n, v in s.values.items() if type(v) is float}
    return [
        replace(
            setting,
            values={
                name: float(value) if name in floats and type(value) is int else value
                for name, value in setting.values.items()
            },
        )
        for setting in settings
    ]


def is_size(value: Any) -> bool:
    """Return whether a workload may override such a value."""
    return type(value) is int and 0 < value <= _LARGEST


def literal(value: Any) -> str:
    """Return a value of JSON as Python writes it.

    Raises:
        NotRepresentableError: it is no finite value of JSON, or too long.
    """
    _check_plain(value, depth=0)
    text = repr(value)
    if len(text) > _LONGEST_LITERAL:
        raise NotRepresentableError(f"a value of {len(text)} characters: {shown(value)}")
    return text


def _check_plain(value: Any, *, depth: int) -> None:
    if isinstance(value, list) and depth < 8:
        for item in value:
            _check_plain(item, depth=depth + 1)
    elif isinstance(value, dict) and depth < 8 and all(isinstance(key, str) for key in value):
        for item in value.values():
            _check_plain(item, depth=depth + 1)
    elif isinstance(value, int) and value.bit_length() > 64:
        raise NotRepresentableError(f"an integer beyond 64 bits: {shown(value)}")
    elif not (
        value is None
        or isinstance(value, str | int)
        or (isinstance(value, float) and math.isfinite(value))
    ):
        raise NotRepresentableError(f"no plain finite value: {shown(value)}")


def _group(settings: list[ImportSetting]) -> SettingGroup:
    first = next((setting for setting in settings if setting.timed), settings[0])
    overridden = {
        name: value
        for name, value in first.values.items()
        if is_size(value)
        or (type(value) in (bool, float) and any(s.values[name] != value for s in settings))
    }
    constants = {name: value for name, value in first.values.items() if name not in overridden}
    timed: dict[tuple[Any, ...], bool] = {}
    for setting in settings:
        values = tuple(setting.values[name] for name in overridden)
        timed[values] = timed.get(values, False) or setting.timed
    ordered = sorted(timed, key=lambda values: not timed[values])
    held_out = {values for values in ordered if not timed[values]}
    if not held_out and len(ordered) > 1:
        held_out = set(ordered[_HELD_OUT_EACH - 1 :: _HELD_OUT_EACH] or ordered[-1:])
    stated = {
        tuple(setting.values[name] for name in overridden): setting.tolerance
        for setting in reversed(settings)
    }
    widest = _widest(list(stated.values()))
    workloads = [
        {
            **dict(zip(overridden, values, strict=True)),
            **({"held_out": True} if values in held_out else {}),
            **_own_tolerance(stated[values], widest),
        }
        for values in ordered
    ]
    return SettingGroup(
        constants=constants,
        overridden=overridden,
        workloads=workloads if overridden else [],
        is_timed=any(timed.values()),
        tolerance=widest,
    )


def tolerance_setting(tolerance: Tolerance) -> dict[str, float]:
    """Return a tolerance as a sidecar has it."""
    matched = {} if tolerance.matched == 1.0 else {"matched": tolerance.matched}
    return {"rtol": tolerance.rtol, "atol": tolerance.atol, **matched}


def _widest(stated: list[Tolerance | None]) -> Tolerance | None:
    given = [tolerance for tolerance in stated if tolerance is not None]
    if len(given) < len(stated):
        return None
    return Tolerance(
        rtol=max(t.rtol for t in given),
        atol=max(t.atol for t in given),
        matched=min(t.matched for t in given),
    )


def _own_tolerance(stated: Tolerance | None, widest: Tolerance | None) -> dict[str, Any]:
    is_own = widest is not None and stated is not None and stated != widest
    return {"tolerance": tolerance_setting(stated)} if is_own and stated else {}

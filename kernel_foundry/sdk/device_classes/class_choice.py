"""The classes of devices for a list such as "h200,rtx4090,sycl"."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.device_class import device_class, is_model, is_of_fleet, ways_to_ask
from kernel_foundry.domain.language import Language
from kernel_foundry.errors import BackendUnavailableError, InvalidArgumentError

_NO_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
_SHOWN: Final = 8
"""Devices that a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassChoice:
    """A class of devices that a task is optimised on."""

    label: str
    """What its user calls it, as part of a run's name."""
    class_name: str
    """See `domain.device_class`."""
    device: str
    """What a run asks for: of a fleet the class, unless one device was named."""
    language: Language


def choose_classes(devices: Sequence[DeviceSpec], named: Sequence[str]) -> tuple[ClassChoice, ...]:
    """Return the class that each name stands for.

    A name is a device's id, a class, a kind, or words of a device's model such as "h200". Of
    several classes that have the name, it is the first one's: a fleet lists the largest first.

    Raises:
        BackendUnavailableError: there is no device of a name.
        InvalidArgumentError: two names stand for one class, so that times would be mixed.
    """
    chosen: dict[str, ClassChoice] = {}
    for name in named:
        choice = _choice(devices, name)
        other = chosen.get(choice.class_name)
        if other is not None:
            raise InvalidArgumentError(
                f"{other.label} and {name} are both of class {choice.class_name}: name it once",
                field="device",
            )
        chosen[choice.class_name] = choice
    labels = [choice.label for choice in chosen.values()]
    if len(set(labels)) < len(labels):
        raise InvalidArgumentError(
            f"{', '.join(named)}: two of these give runs one name; name a class in another way",
            field="device",
        )
    return tuple(chosen.values())


def _choice(devices: Sequence[DeviceSpec], name: str) -> ClassChoice:
    found = [d for d in devices if name in ways_to_ask(d)]
    found = found or [d for d in devices if is_model(d, name)]
    if not found:
        known = ", ".join(f"{d.id} ({d.name})" for d in devices[:_SHOWN]) or "none"
        raise BackendUnavailableError(f"there is no device {name!r}; there is {known}", device=name)
    first = found[0]
    class_name = device_class(first)
    return ClassChoice(
        label=_NO_NAME.sub("-", name).strip("-."),
        class_name=class_name,
        device=_asked(devices, first, name),
        language=first.language,
    )


def _asked(devices: Sequence[DeviceSpec], first: DeviceSpec, name: str) -> str:
    """What a run asks for, so that it gets devices of the first one's class alone."""
    if name == first.id:
        return name
    if is_of_fleet(first.id):
        return device_class(first)
    # A single evaluator knows no classes.
    of_kind = {device_class(d) for d in devices if d.kind == first.kind}
    return first.kind if len(of_kind) == 1 else first.id

"""Classes of devices: times compare within one class, and nowhere else.

Also how a device is asked for. An id of a fleet's device has the name of its evaluator behind "@",
as in "cuda:0@gpuhost:50051"; the evaluator itself knows it as "cuda:0".
"""

import re
from typing import Final

from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.digest import content_digest

_OTHER_CHARACTERS: Final = re.compile(r"[^a-z0-9]+")
_LONGEST_MODEL: Final = 48
_DIGITS: Final = 8

CLASS_NAME: Final = re.compile(rf"[a-z]+:[a-z0-9-]+-[0-9a-f]{{{_DIGITS}}}")
"""Pattern of the names of classes on a command line."""


def device_class(device: DeviceSpec) -> str:
    """Return the name of a device's class, such as "cuda:nvidia-h200-1f0c9a7e".

    Devices of one class have the same model, architecture, driver, number of compute units and
    clock policy.
    """
    facts = (
        device.name,
        device.vendor,
        device.architecture,
        device.driver_version,
        str(device.compute_units),
        device.clock_policy,
    )
    return f"{device.kind}:{_model(device)}-{content_digest(*facts)[:_DIGITS]}"


def is_model(device: DeviceSpec, words: str) -> bool:
    """Return whether a device's model has these words in its name: "h200" in "NVIDIA H200"."""
    asked = _OTHER_CHARACTERS.sub("-", words.lower()).strip("-")
    return bool(asked) and f"-{asked}-" in f"-{_model(device)}-"


def _model(device: DeviceSpec) -> str:
    model = _OTHER_CHARACTERS.sub("-", device.name.lower())[:_LONGEST_MODEL].strip("-")
    return model or "device"


def own_id(device_id: str) -> str:
    """Return the id by which a device's own evaluator knows it."""
    return device_id.partition("@")[0]


def is_of_fleet(device_id: str) -> bool:
    """Return whether an id names the evaluator, too."""
    return "@" in device_id


def ways_to_ask(device: DeviceSpec) -> tuple[str, ...]:
    """Return the names by which a request may ask for the device: ids, class, kind."""
    names = (device.id, own_id(device.id), device_class(device), device.kind)
    return tuple(dict.fromkeys(names))


def kept_to_class(asked: str, admitted: DeviceSpec) -> str:
    """Return the device that a run asks for once its task is admitted: of a fleet, one class.

    Args:
        asked: A device id, a class or a kind.
        admitted: The device of the admission.
    """
    if not is_of_fleet(admitted.id) or asked in (admitted.id, device_class(admitted)):
        return asked
    return device_class(admitted)

"""Limits a process to one CUDA device, and to one hardware queue of it.

A driver that sees one device starts faster than one that finds eight, and the work on the others
cannot disturb it.
"""

import os
from pathlib import Path
from typing import Final

from evaluator_svc.sandbox import landlock
from evaluator_svc.sandbox.mechanism import MechanismUnavailableError

_VARIABLE: Final = "CUDA_VISIBLE_DEVICES"
_QUEUES: Final = "CUDA_DEVICE_MAX_CONNECTIONS"
_LISTED: Final = Path("/proc/driver/nvidia/gpus")
"""One folder for each GPU of the host, with a file `information` of lines "name: value"."""


def see_only(device_id: str) -> str:
    """Hide all devices of the kind but one; to be called before the driver is loaded.

    Args:
        device_id: Such as "cuda:1", among the devices that this process sees so far.

    Returns:
        The device's id in this process: "cuda:0"; other kinds keep theirs.
    """
    kind, _, index = device_id.partition(":")
    if kind != "cuda":
        return device_id
    seen = [name.strip() for name in os.environ.get(_VARIABLE, "").split(",") if name.strip()]
    if not seen:
        os.environ[_VARIABLE] = index
    elif int(index) < len(seen):
        os.environ[_VARIABLE] = seen[int(index)]
    else:
        return device_id  # the driver says how many there are
    return "cuda:0"


def use_one_queue() -> None:
    """Open devices with one hardware queue; to be called before the driver is loaded.

    For processes with a single stream, which cannot use more. Opening and closing the driver's
    usual eight, one process at a time on the whole host, takes it more than twice as long.
    """
    os.environ.setdefault(_QUEUES, "1")


def node_of(uuid: str, listed: Path = _LISTED) -> str:
    """Return the device node of the GPU with that id, such as "/dev/nvidia3"; "" if unknown."""
    for information in listed.glob("*/information"):
        lines = (line.partition(":") for line in information.read_text().splitlines())
        facts = {name.strip(): value.strip() for name, _, value in lines}
        if uuid and facts.get("GPU UUID") == uuid and "Device Minor" in facts:
            return f"/dev/nvidia{facts['Device Minor']}"
    return ""


def open_only(node: str) -> bool:
    """Forbid this process the nodes of all other GPUs; to be called before the driver is loaded.

    A driver asks every GPU that it can open when it starts, those too that are not visible.

    Returns:
        Whether it is so: the device is then "cuda:0", and the only one.
    """
    others = [str(path) for path in Path("/dev").glob("nvidia[0-9]*") if str(path) != node]
    try:
        landlock.hide(others)
    except MechanismUnavailableError:
        return False
    os.environ.pop(_VARIABLE, None)
    return True

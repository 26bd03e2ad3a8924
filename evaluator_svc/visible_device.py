"""What of the CUDA devices a process gets: its own one, and of that a single queue.

A driver that is told of one device starts faster than one that finds eight, and what happens on the
others stays out. Knows nothing of what the process does.
"""

import os
from typing import Final

_VARIABLE: Final = "CUDA_VISIBLE_DEVICES"
_QUEUES: Final = "CUDA_DEVICE_MAX_CONNECTIONS"


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

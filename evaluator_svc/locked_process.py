"""The first steps of every builder and runner: connect, lock in, open the device, say so.

Runs in the child, before any candidate is near. Knows nothing of what the process does next.
"""

import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from evaluator_svc.channel import Channel, ChannelClosedError
from evaluator_svc.conversation import Conversation
from evaluator_svc.messages import Configure, Failed, Ready
from evaluator_svc.sandbox.confinement import confine, is_sufficient
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.language import Language
from kernel_foundry.errors import IsolationUnavailableError

_PREFERRED_SUB_GROUP: Final = 32
"""Widest size that GPUs and the CPU device have in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDevice:
    """A device that this process has opened."""

    module: ModuleType
    """`kernel_foundry_native`'s module for the device kind."""
    device: Any
    """The module's `Device`."""


def connect() -> Conversation:
    """Return the conversation with the supervisor; its descriptor is the only argument."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    return Conversation(Channel(connection, accepts_descriptors=True))


def serve(work: Callable[[Conversation, OpenDevice], None]) -> None:
    """Lock this process in, open the device, then do `work`; ends the process.

    Ends with `os._exit`: a device runtime's own clean-up at exit may abort a process.
    """
    conversation = connect()
    code = 0
    try:
        opened = _open(conversation)
        if opened is not None:
            work(conversation, opened)
            opened.device.release()
    except ChannelClosedError:
        pass  # The supervisor is gone, or has no use for this process.
    except BaseException:  # noqa: BLE001  the supervisor keeps stderr
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stderr.flush()
    os._exit(code)


def _open(conversation: Conversation) -> OpenDevice | None:
    configure: Configure = conversation.receive(Configure).message
    isolation = confine(configure.confinement, outer=configure.outer)
    if not is_sufficient(isolation) and not configure.unsandboxed:
        missing = "; ".join(isolation.missing)
        error = IsolationUnavailableError(
            f"nothing locks candidates in on this host ({missing}); allow running without a "
            "sandbox explicitly, or install bubblewrap",
            missing=missing,
        )
        conversation.send(Failed.of(error))
        return None
    # Only now, and only here: what it loads must already be locked in.
    import kernel_foundry_native as native

    process_id = os.getpid()
    try:
        module = native.device_kind(configure.kind)
        device = module.open_device(configure.index)
    except native.NativeError as error:
        ready = Ready(
            process_id=process_id, isolation=isolation, device=None, unavailable=str(error)
        )
        conversation.send(ready)
        return None
    spec = describe_device(device, configure.kind, configure.index)
    ready = Ready(
        process_id=process_id,
        isolation=isolation,
        device=spec,
        compiler_version=device.compiler_version,
    )
    conversation.send(ready)
    return OpenDevice(module=module, device=device)


def describe_device(device: Any, kind: str, index: int) -> DeviceSpec:
    """Return the facts of a native device, its peaks not yet measured."""
    sizes = list(device.sub_group_sizes)
    preferred = _PREFERRED_SUB_GROUP if _PREFERRED_SUB_GROUP in sizes else max(sizes, default=1)
    return DeviceSpec(
        id=f"{kind}:{index}",
        language=Language.SYCL,
        name=device.name,
        vendor=device.vendor,
        architecture=device.architecture,
        driver_version=device.driver_version,
        compute_units=device.compute_units,
        sub_group_size=preferred,
        max_block=device.max_block,
        shared_bytes=device.shared_bytes,
        memory_bytes=device.memory_bytes,
        cache_bytes=device.cache_bytes,
    )

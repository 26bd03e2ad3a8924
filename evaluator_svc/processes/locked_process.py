"""First steps of every builder, inspector and runner: connect, lock in, open what it needs.

Runs in the child, before any candidate is near. The supervisor's side is `locked_starter.py`.
"""

import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, Never, Protocol, TypeVar

from evaluator_svc.hardware.visible_device import node_of, open_only, see_only, use_one_queue
from evaluator_svc.languages import language_of_kind
from evaluator_svc.messages.locked import Configure, OwnFailure, Ready
from evaluator_svc.processes.channel import Channel, ChannelClosedError
from evaluator_svc.processes.conversation import Conversation
from evaluator_svc.sandbox.attempt import AttemptRequest
from evaluator_svc.sandbox.confinement import confine
from kernel_foundry.domain.device import DeviceSpec, IsolationReport, UnitLimits
from kernel_foundry.errors import BackendUnavailableError, IsolationUnavailableError

_PREFERRED_SUB_GROUP: Final = 32
"""Widest size that GPUs and the CPU device have in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDevice:
    """A device that this process has opened."""

    module: ModuleType
    """`kernel_foundry_native`'s module for the device kind."""
    device: Any
    """The module's `Device`."""
    index: int
    """Index of the device among those of its kind."""

    def release(self) -> None:
        """Give the device up."""
        self.device.release()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCompiler:
    """A compiler that this process has opened; no device is needed for some."""

    compiler: Any
    """A native `Compiler`."""

    def release(self) -> None:
        """A compiler holds nothing that has to be given up."""


class OpenNothing:
    """Stands for the opened device of a process that needs neither device nor compiler."""

    def release(self) -> None:
        """There is nothing to give up."""


class _Opened(Protocol):
    def release(self) -> None: ...


T = TypeVar("T", bound=_Opened)


def connect() -> Conversation:
    """Return the conversation with the supervisor; its descriptor is the only argument."""
    return converse(int(sys.argv[1]))


def converse(descriptor: int) -> Conversation:
    """Return the conversation over a connected socket, which it owns from now on."""
    connection = socket.socket(fileno=descriptor)
    return Conversation(Channel(connection, accepts_descriptors=True))


def serve_runner(
    work: Callable[[Conversation, OpenDevice], None], conversation: Conversation
) -> None:
    """Lock this process in with an open device, then do `work`; ends the process."""

    def begin() -> OpenDevice | None:
        configure: Configure = conversation.receive(Configure).message
        # The CUDA driver needs a socket to start; all that a candidate brings comes later.
        return _begin(
            conversation,
            configure,
            open_it=lambda: _attempt(lambda: _open_device(configure)),
            describe=lambda opened: {
                "device": describe_device(opened.device, configure.kind, configure.index),
                "device_count": opened.module.device_count(),
                "node": node_of(opened.device.uuid),
            },
            opens_first=configure.kind == "cuda",
        )

    _serve(work, begin, conversation)


def serve_builder(
    work: Callable[[Conversation, OpenCompiler], None], conversation: Conversation
) -> None:
    """Lock this process in with an open compiler, then do `work`; ends the process."""

    def begin() -> OpenCompiler | None:
        configure: Configure = conversation.receive(Configure).message
        return _begin(
            conversation,
            configure,
            open_it=lambda: _attempt(lambda: _open_compiler(configure)),
            describe=lambda opened: {"compiler_version": opened.compiler.compiler_version},
            # Without an architecture the driver is asked for it.
            opens_first=configure.kind == "cuda" and not configure.architecture,
        )

    _serve(work, begin, conversation)


def serve_inspector(work: Callable[[Conversation], None], conversation: Conversation) -> None:
    """Lock this process in, then do `work`; ends the process. It opens nothing."""

    def begin() -> OpenNothing | None:
        configure: Configure = conversation.receive(Configure).message
        return _begin(
            conversation,
            configure,
            open_it=OpenNothing,
            describe=lambda _: {},
            opens_first=False,
        )

    _serve(lambda conversation, _: work(conversation), begin, conversation)


def serve_foreign(
    work: Callable[[Conversation, T], None],
    open_memory: Callable[[str], T],
    conversation: Conversation,
) -> None:
    """Lock this process in with a device of torch, then do `work`; ends the process.

    `open_memory` opens the device of an id, such as "cuda:0".
    """

    def begin() -> T | None:
        configure: Configure = conversation.receive(Configure).message
        return _begin(
            conversation,
            configure,
            open_it=lambda: _opened_memory(open_memory, configure),
            describe=lambda _: {},
            opens_first=configure.kind == "cuda",
        )

    _serve(work, begin, conversation)


def _opened_memory(open_memory: Callable[[str], T], configure: Configure) -> T | str:
    try:
        return open_memory(f"{configure.kind}:{configure.index}")
    except BackendUnavailableError as error:
        return error.message


def _serve(
    work: Callable[[Conversation, T], None],
    begin: Callable[[], T | None],
    conversation: Conversation,
) -> None:
    """Ends with `os._exit`: a device runtime's own clean-up at exit may abort a process."""
    code = 0
    try:
        opened = begin()
        if opened is not None:
            work(conversation, opened)
            opened.release()
    except ChannelClosedError:
        pass  # The supervisor is gone, or has no use for this process.
    except BaseException:  # noqa: BLE001  the supervisor keeps stderr
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stderr.flush()
    os._exit(code)


def _begin(
    conversation: Conversation,
    configure: Configure,
    *,
    open_it: Callable[[], T | str],
    describe: Callable[[T], dict[str, Any]],
    opens_first: bool,
) -> T | None:
    """Lock in and open, in the order that the device kind wants; report to the supervisor.

    `open_it` returns what it opened, or why it could not.
    """
    opened: T | str = ""
    if opens_first:
        opened = open_it()
    isolation = confine(configure.confinement, outer=configure.outer)
    if not isolation.is_sufficient and not configure.unsafe_no_sandbox:
        conversation.send(OwnFailure.of(_not_locked(isolation)))
        return None
    if not opens_first:
        opened = open_it()
    facts: dict[str, Any] = {"device": None}
    if isinstance(opened, str):
        facts["unavailable"] = opened
    else:
        facts |= describe(opened)
    conversation.send(Ready(process_id=os.getpid(), isolation=isolation, **facts))
    return None if isinstance(opened, str) else opened


def _attempt(open_it: Callable[[], T]) -> T | str:
    """What was opened, or why it was not."""
    # Here and not at the top: what it loads must be locked in, where the driver allows it.
    import kernel_foundry_native as native

    try:
        return open_it()
    except native.NativeError as error:
        return str(error) or type(error).__name__


def _not_locked(isolation: IsolationReport) -> IsolationUnavailableError:
    missing = "; ".join(isolation.missing)
    return IsolationUnavailableError(
        f"nothing locks candidates in on this host ({missing}); it takes seccomp, and Landlock "
        "or bubblewrap; --unsafe-no-sandbox runs them all the same",
        missing=missing,
    )


def _open_device(configure: Configure) -> OpenDevice:
    import kernel_foundry_native as native

    name = f"{configure.kind}:{configure.index}"
    if configure.node and open_only(configure.node):
        name = f"{configure.kind}:0"
    elif not configure.counts_devices:
        name = see_only(name)
    use_one_queue()
    index = int(name.partition(":")[2])
    module = native.device_kind(configure.kind)
    return OpenDevice(module=module, device=module.open_device(index), index=index)


def _open_compiler(configure: Configure) -> OpenCompiler:
    import kernel_foundry_native as native

    module = native.device_kind(configure.kind)
    compiler = module.open_compiler(configure.index, configure.architecture)
    return OpenCompiler(compiler=compiler)


def answer_attempts(conversation: Conversation, request: AttemptRequest) -> Never:
    """Try what the lock should refuse, until the supervisor has seen enough.

    A process that does so never gets a candidate.
    """
    # Here and not at the top: a process that gets a candidate does not load it.
    from evaluator_svc.sandbox.attempts import attempt

    while True:
        conversation.send(attempt(request))
        request = conversation.receive(AttemptRequest).message


def describe_device(device: Any, kind: str, index: int) -> DeviceSpec:
    """Return the facts of a native device, its peaks not yet measured."""
    sizes = list(device.sub_group_sizes)
    preferred = _PREFERRED_SUB_GROUP if _PREFERRED_SUB_GROUP in sizes else max(sizes, default=1)
    return DeviceSpec(
        id=f"{kind}:{index}",
        language=language_of_kind(kind),
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
        unit_limits=_unit_limits(device),
    )


def _unit_limits(device: Any) -> UnitLimits | None:
    limits = device.unit_limits
    if limits is None:
        return None
    registers, shared_bytes, work_items, groups = limits
    return UnitLimits(
        registers=registers, shared_bytes=shared_bytes, work_items=work_items, groups=groups
    )

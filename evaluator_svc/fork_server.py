"""The fork server: all modules are imported and no device is open; a process is one fork away.

Builders, inspectors and runners come from it where bubblewrap is not in force: their imports take
longer than most candidates' work, a fork milliseconds. Another one, with torch, forks the runners
of plans with library calls, and the processes of foreign kernels. A third one forks judges alone,
which share no layout of memory with what runs candidates, and a fourth one the trials of exported
files. A fork survives neither an open device nor threads: there are none.
Meets no candidate and no task; what it forks does.
"""

import contextlib
import gc
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Never

from evaluator_svc.processes.channel import ChannelClosedError
from evaluator_svc.processes.conversation import Conversation
from evaluator_svc.processes.forking import (
    BUILDER,
    EXPORTED_FORM,
    FOREIGN,
    INSPECTOR,
    JUDGE,
    RUNNER,
    ForkReply,
    ForkRequest,
    ForkServerReady,
    ForkServerStart,
    PollReply,
    PollRequest,
)
from evaluator_svc.processes.locked_process import (
    connect,
    converse,
    serve_builder,
    serve_inspector,
    serve_runner,
)
from evaluator_svc.sandbox.limits import end_with_parent

_ENDED: Final = "ZX"
"""States of a process that has ended: zombie and dead."""
_END_SECONDS: Final = 0.001

_DEVICE_NODES: Final = ("/dev/nvidia", "/dev/dri", "/dev/kfd", "/dev/accel")

_Serve = Callable[[Conversation], None]
"""The function that a process runs after its fork, until its end."""


def _import_builder(_start: ForkServerStart) -> _Serve:
    from evaluator_svc.builder.work import build

    return partial(serve_builder, build)


def _import_inspector(_start: ForkServerStart) -> _Serve:
    from evaluator_svc.inspector.work import answer_requests

    return partial(serve_inspector, answer_requests)


def _import_runner(start: ForkServerStart) -> _Serve:
    from evaluator_svc.runner.work import answer_requests

    if start.with_library:
        import evaluator_svc.runner.library_calls  # noqa: F401
    return partial(serve_runner, answer_requests)


def _import_foreign(_start: ForkServerStart) -> _Serve:
    from evaluator_svc.foreign.work import serve

    return serve


def _import_judge(start: ForkServerStart) -> _Serve:
    from evaluator_svc.judge.work import serve_judge

    if start.with_compiler:
        from evaluator_svc.judge.imports import import_compiler

        import_compiler()
    return serve_judge


def _import_exported_form(_start: ForkServerStart) -> _Serve:
    from evaluator_svc.exported_form.process import serve

    return serve


_IMPORTS: Final[Mapping[str, Callable[[ForkServerStart], _Serve]]] = {
    BUILDER: _import_builder,
    INSPECTOR: _import_inspector,
    RUNNER: _import_runner,
    FOREIGN: _import_foreign,
    JUDGE: _import_judge,
    EXPORTED_FORM: _import_exported_form,
}

_WITH_PROGRAMS: Final = set[int]()
"""Ids of children that may start programs, which are to end with them."""


def main() -> None:
    """Import what forks need, then fork and watch them until the supervisor is gone."""
    conversation = connect()
    end_with_parent()
    start: ForkServerStart = conversation.receive(ForkServerStart).message
    gc.disable()  # modules stay: looking for garbage among them takes a tenth of the imports
    kinds = {module: _IMPORTS[module](start) for module in start.modules}
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page it touches
    gc.enable()
    torch = sys.modules.get("torch")
    ready = ForkServerReady(
        torch_version="" if torch is None else torch.__version__,
        thread_count=len(list(Path("/proc/self/task").iterdir())),
        open_devices=_open_devices(),
    )
    conversation.send(ready)
    with contextlib.suppress(ChannelClosedError):
        _serve(conversation, kinds)


def _open_devices() -> tuple[str, ...]:
    targets = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the listing itself is closed again
            targets.append(str(descriptor.readlink()))
    return tuple(sorted(target for target in targets if target.startswith(_DEVICE_NODES)))


def _serve(conversation: Conversation, kinds: Mapping[str, _Serve]) -> None:
    own_id = os.getpid()
    while True:
        received = conversation.receive(ForkRequest, PollRequest)
        if isinstance(received.message, PollRequest):
            conversation.send(_poll(received.message))
            continue
        process_id = os.fork()
        if process_id == 0:
            conversation.close()
            _become(kinds, received.message, own_id, *received.descriptors)
        for descriptor in received.descriptors:
            os.close(descriptor)
        if received.message.module == FOREIGN:
            _WITH_PROGRAMS.add(process_id)
        conversation.send(ForkReply(process_id=process_id))


def _become(
    kinds: Mapping[str, _Serve], request: ForkRequest, parent: int, channel: int, stderr: int
) -> Never:
    try:
        os.setsid()
        end_with_parent()
        if os.getppid() != parent:
            os._exit(1)  # it ended before it could take this process along
        for standard in (sys.stdout.fileno(), sys.stderr.fileno()):
            os.dup2(stderr, standard)
        os.close(stderr)
        os.environ.update(request.environment)
        tempfile.tempdir = None  # or it is still the server's
        kinds[request.module](converse(channel))
    finally:
        # Whatever happens, this is not the server: it must not go on as one.
        os._exit(1)


def _end_session(leader: int) -> None:
    """End what a process has started and left behind; none of it could leave its session."""
    while members := [process for process in _processes() if _session(process) == leader]:
        for process in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_END_SECONDS)


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _session(process: int) -> int:
    """The session of a process that has not ended; 0: it has."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    state, _parent, _group, session = stat.rpartition(")")[2].split()[:4]
    return 0 if state in _ENDED else int(session)


def _poll(request: PollRequest) -> PollReply:
    if request.kill:
        # Its group is its own as soon as it runs.
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError):
                kill(request.process_id, signal.SIGKILL)
    try:
        ended, status, usage = os.wait4(request.process_id, os.WNOHANG)
    except ChildProcessError:
        return PollReply(has_ended=True, wait_status=signal.SIGKILL)
    if ended == 0:
        return PollReply(has_ended=False)
    if request.process_id in _WITH_PROGRAMS:
        _WITH_PROGRAMS.remove(request.process_id)
        _end_session(request.process_id)
    return PollReply(has_ended=True, wait_status=status, peak_memory_bytes=usage.ru_maxrss * 1024)


if __name__ == "__main__":
    main()

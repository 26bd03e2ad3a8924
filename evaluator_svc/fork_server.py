"""The fork server: all modules are imported and no device is open; a process is one fork away.

Builders, inspectors and runners come from it where bubblewrap is not in force: their imports take
longer than most candidates' work, a fork milliseconds. Another one, with torch, forks the runners
of plans with library calls, and the processes of foreign kernels. A fork does not survive an open
device, nor threads: there is neither.
Meets no candidate; what it forks does.
"""

import contextlib
import gc
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, Never

from evaluator_svc.builder.work import build
from evaluator_svc.inspector.work import answer_requests as answer_inspections
from evaluator_svc.processes.channel import ChannelClosedError
from evaluator_svc.processes.conversation import Conversation
from evaluator_svc.processes.forking import (
    BUILDER,
    FOREIGN,
    INSPECTOR,
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
from evaluator_svc.runner.work import answer_requests
from evaluator_svc.sandbox.limits import end_with_parent

_ENDED: Final = "ZX"
"""States of a process that only waits to be forgotten."""
_END_SECONDS: Final = 0.001

_SERVE: Final[dict[str, Callable[[Conversation], None]]] = {
    BUILDER: partial(serve_builder, build),
    INSPECTOR: partial(serve_inspector, answer_inspections),
    RUNNER: partial(serve_runner, answer_requests),
}

_WITH_PROGRAMS: Final = set[int]()
"""Ids of children that may start programs, which are to end with them."""


def main() -> None:
    """Import what forks need, then fork and watch them until the supervisor is gone."""
    conversation = connect()
    end_with_parent()
    start: ForkServerStart = conversation.receive(ForkServerStart).message
    torch_version = _import_torch() if start.with_library else ""
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page it touches
    threads = len(list(Path("/proc/self/task").iterdir()))
    conversation.send(ForkServerReady(torch_version=torch_version, thread_count=threads))
    with contextlib.suppress(ChannelClosedError):
        _serve(conversation)


def _import_torch() -> str:
    import torch

    import evaluator_svc.foreign.work
    import evaluator_svc.runner.library_calls

    _SERVE[FOREIGN] = evaluator_svc.foreign.work.serve
    return torch.__version__


def _serve(conversation: Conversation) -> None:
    while True:
        received = conversation.receive(ForkRequest, PollRequest)
        if isinstance(received.message, PollRequest):
            conversation.send(_poll(received.message))
            continue
        process_id = os.fork()
        if process_id == 0:
            conversation.close()
            _become(received.message, *received.descriptors)
        for descriptor in received.descriptors:
            os.close(descriptor)
        if received.message.module == FOREIGN:
            _WITH_PROGRAMS.add(process_id)
        conversation.send(ForkReply(process_id=process_id))


def _become(request: ForkRequest, channel: int, stderr: int) -> Never:
    try:
        os.setsid()
        end_with_parent()
        for standard in (sys.stdout.fileno(), sys.stderr.fileno()):
            os.dup2(stderr, standard)
        os.close(stderr)
        os.environ.update(request.environment)
        _SERVE[request.module](converse(channel))
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

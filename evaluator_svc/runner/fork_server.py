"""The fork server: torch is imported and no device is open; a runner is one fork away.

Started once for each evaluator, for candidates whose plans make library calls: importing torch
takes seconds, a fork of a process that has it milliseconds. A fork does not survive an open
device, nor threads, so that there is neither. Meets no candidate; what it forks does.
"""

import contextlib
import gc
import os
import signal
import sys
from pathlib import Path
from typing import Never

from evaluator_svc.processes.channel import ChannelClosedError
from evaluator_svc.processes.conversation import Conversation
from evaluator_svc.processes.forking import (
    ForkReply,
    ForkRequest,
    ForkServerReady,
    PollReply,
    PollRequest,
)
from evaluator_svc.processes.locked_process import connect, converse, serve_runner
from evaluator_svc.runner.answers import answer_requests
from evaluator_svc.sandbox.limits import end_with_parent


def main() -> None:
    """Import torch, then fork and watch runners until the supervisor is gone."""
    conversation = connect()
    end_with_parent()
    import torch

    import evaluator_svc.runner.library_calls  # noqa: F401  every fork has it then

    gc.collect()
    gc.freeze()  # a collection in a child would copy every page it touches
    threads = len(list(Path("/proc/self/task").iterdir()))
    conversation.send(ForkServerReady(torch_version=torch.__version__, thread_count=threads))
    with contextlib.suppress(ChannelClosedError):
        _serve(conversation)


def _serve(conversation: Conversation) -> None:
    while True:
        received = conversation.receive(ForkRequest, PollRequest)
        if isinstance(received.message, PollRequest):
            conversation.send(_poll(received.message))
            continue
        process_id = os.fork()
        if process_id == 0:
            conversation.close()
            _become_runner(received.message, *received.descriptors)
        for descriptor in received.descriptors:
            os.close(descriptor)
        conversation.send(ForkReply(process_id=process_id))


def _become_runner(request: ForkRequest, channel: int, stderr: int) -> Never:
    try:
        os.setsid()
        end_with_parent()
        for standard in (sys.stdout.fileno(), sys.stderr.fileno()):
            os.dup2(stderr, standard)
        os.close(stderr)
        os.environ.update(request.environment)
        serve_runner(answer_requests, converse(channel))
    finally:
        # Whatever happens, this is not the server: it must not go on as one.
        os._exit(1)


def _poll(request: PollRequest) -> PollReply:
    if request.kill:
        with contextlib.suppress(ProcessLookupError):
            os.kill(request.process_id, signal.SIGKILL)
    try:
        ended, status, usage = os.wait4(request.process_id, os.WNOHANG)
    except ChildProcessError:
        return PollReply(has_ended=True, wait_status=signal.SIGKILL)
    if ended == 0:
        return PollReply(has_ended=False)
    return PollReply(has_ended=True, wait_status=status, peak_memory_bytes=usage.ru_maxrss * 1024)


if __name__ == "__main__":
    main()

"""Forked processes: how each end is seen, and what ends with what."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from evaluator_svc.messages.runner import RunReply, RunRequest
from evaluator_svc.processes.channel import ChannelClosedError
from evaluator_svc.processes.fork_client import ForkClient
from evaluator_svc.processes.forking import BUILDER, INSPECTOR, RUNNER, ForkServerStart
from evaluator_svc.processes.locked_starter import LockedStarter
from evaluator_svc.processes.process import ProcessCommand, ProcessLauncher
from evaluator_svc.sandbox.host_paths import package_root
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.errors import ProcessLostError
from tests.runner.conftest import draw_inputs

_CRASHING = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void relu(const float* __restrict__ y, float* __restrict__ out, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  out[(long)i * 1000000000L + 1000000000000L] = y[0];
}
```
```python
def launch(x, weight, out):
    y = ops.linear(x, weight)
    relu[1, 64](y, out, 1)
```
"""

_SUPERVISOR = """
import time
from evaluator_svc.processes.forking import BUILDER, INSPECTOR, RUNNER
from evaluator_svc.processes.locked_starter import LockedStarter
from evaluator_svc.processes.process import ProcessLauncher
from evaluator_svc.settings import EvaluatorSettings

starter = LockedStarter(EvaluatorSettings(), ProcessLauncher())
process, ready = starter.start(RUNNER, kind="null", index=0, with_library=True)
print(process.process_id, flush=True)
time.sleep(60)
"""


@pytest.fixture
def unwrapped() -> Iterator[LockedStarter]:
    launcher = ProcessLauncher()
    starter = LockedStarter(EvaluatorSettings(use_bubblewrap=False), launcher)
    yield starter
    starter.close()
    launcher.close()


def test_library_runners_are_forked_from_one_server_with_one_thread(starter):
    """Its threads would not survive a fork, and the import is paid once."""
    assert starter._library_forks.warm_up().thread_count == 1
    parents = []
    for _ in range(2):
        process, ready = starter.start(RUNNER, kind="null", index=0, with_library=True)
        parents.append(_parent_of(process.process_id))
        process.kill()
        assert ready.device.id == "null:0"
    assert parents == [starter._library_forks._process.process_id] * 2


def test_without_bubblewrap_all_are_forked_from_a_server_without_torch(unwrapped):
    """Each is what it was asked to be, in a session of its own."""
    ready = unwrapped._forks.warm_up()
    assert (ready.thread_count, ready.torch_version) == (1, "")
    for module in (BUILDER, INSPECTOR, RUNNER):
        process, ready = unwrapped.start(module, kind="null", index=0, architecture="null")
        assert _parent_of(process.process_id) == unwrapped._forks._process.process_id
        assert os.getsid(process.process_id) == process.process_id
        assert ready.isolation.process == f"null {module.rpartition('.')[2]}"
        assert (ready.device is not None) == (module == RUNNER)
        process.kill()


def test_a_forked_runner_that_is_killed_says_so(starter):
    """The end has the signal and the peak of memory, and no id is left to be killed again."""
    process, _ = starter.start(RUNNER, kind="null", index=0, with_library=True)
    assert process.is_running
    end = process.kill()
    assert end.signal == signal.SIGKILL
    assert end.peak_memory_bytes > 1 << 20
    assert not process.is_running
    assert not Path(f"/proc/{process.process_id}").exists()


def test_a_forked_runner_ends_when_nobody_talks_to_it(starter):
    """The channel's end is its own; the exit code is 0."""
    process, _ = starter.start(RUNNER, kind="null", index=0, with_library=True)
    process.conversation.close()
    assert process.wait(60.0).exit_code == 0
    process.kill()


@pytest.mark.sycl
def test_a_candidate_that_crashes_ends_its_fork_alone(sycl):
    """The signal is seen; the next candidate comes from the same server."""
    shapes = {"x": (2, 4), "weight": (3, 4), "out": (2, 3)}
    sycl.starter.warm_up_library()
    server = sycl.starter._library_forks._process
    candidate = sycl.load(_CRASHING, draw_inputs(**shapes), library_ops=("linear",))
    with pytest.raises(ChannelClosedError):
        candidate.process.ask(
            RunRequest(draw=candidate.inputs.draw),
            RunReply,
            timeout_seconds=60.0,
            descriptors=candidate.inputs.descriptors(),
        )
    assert candidate.process.wait(60.0).signal == signal.SIGSEGV
    right = _CRASHING.replace("out[(long)i * 1000000000L + 1000000000000L]", "out[0]")
    candidate = sycl.load(right, draw_inputs(**shapes), library_ops=("linear",))
    candidate.run()
    assert np.isfinite(candidate.inputs.array(0, "out")[0, 0])
    assert sycl.starter._library_forks._process is server


def test_a_lost_server_takes_its_runners_along_and_is_replaced():
    """The loss is an end like any other; the next runner has a new server."""
    launcher = ProcessLauncher()
    starter = LockedStarter(EvaluatorSettings(), launcher)
    process, _ = starter.start(RUNNER, kind="null", index=0, with_library=True)
    os.kill(starter._library_forks._process.process_id, signal.SIGKILL)
    assert process.wait(60.0).signal == signal.SIGKILL
    deadline = time.monotonic() + 60.0
    while _is_alive(process.process_id) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _is_alive(process.process_id)
    process.kill()
    again, ready = starter.start(RUNNER, kind="null", index=0, with_library=True)
    assert ready.device is not None
    again.kill()
    starter.close()
    launcher.close()


def test_a_server_that_does_not_start_says_why():
    """Without torch, say; the message has the interpreter's last words."""
    launcher = ProcessLauncher()
    command = ProcessCommand(
        module="evaluator_svc.no_such_module",
        environment=(("PYTHONPATH", package_root()),),
        wrapping=None,
        accepts_descriptors=False,
    )
    with pytest.raises(ProcessLostError, match="no_such_module"):
        ForkClient(lambda: launcher.start(command), ForkServerStart(modules=())).warm_up()
    launcher.close()


def test_server_and_runners_end_with_their_supervisor():
    """A killed supervisor leaves nothing behind."""
    with subprocess.Popen(
        [sys.executable, "-c", _SUPERVISOR],
        env={**os.environ, "PYTHONPATH": package_root()},
        stdout=subprocess.PIPE,
    ) as supervisor:
        runner = int(supervisor.stdout.readline())
        server = _parent_of(runner)
        supervisor.kill()
    assert server != supervisor.pid
    deadline = time.monotonic() + 60.0
    while any(map(_is_alive, (runner, server))) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(_is_alive, (runner, server)))


def _parent_of(process_id: int) -> int:
    return int(Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[1])


def _is_alive(process_id: int) -> bool:
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text()
    except FileNotFoundError:
        return False
    return " Z" not in stat.rpartition(")")[2][:3]

"""CUDA runners with a driver that needs no GPU: lock, faults, clocks; NVRTC builds for real.

Memory is the runner's own here, for another process's is out of reach of this driver once the
runner is locked in; results are looked at on real GPUs.
"""

import dataclasses
import os
import signal

import pytest

from evaluator_svc.messages.runner import LoadReply, RunReply, RunRequest
from evaluator_svc.processes.channel import ChannelTimeoutError
from evaluator_svc.processes.forking import BUILDER
from evaluator_svc.processes.locked_starter import LockedStarter
from evaluator_svc.processes.process import ProcessLauncher
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from tests.native.fake_cuda_build import fake_driver_environment
from tests.runner.conftest import SEEDS, Bench, HostDraw, draw_inputs

KERNELS = """```cuda
extern "C" __global__ void scale(const float* in, float* out, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i] * factor;
}
extern "C" __global__ void illegal(const float* in, float* out) { out[1LL << 40] = in[0]; }
extern "C" __global__ void endless(const float* in, float* out) {
  volatile int go = 1;
  while (go) {}
  out[0] = in[0];
}
```
"""


class ZeroDraw(HostDraw):
    """A draw that is memory of the runner's own."""

    def descriptors(self) -> tuple[int, ...]:
        return ()


@pytest.fixture(scope="module")
def environment(fake_driver):
    """Variables that put the driver in place."""
    whole = fake_driver_environment(fake_driver)
    return {name: value for name, value in whole.items() if os.environ.get(name) != value}


@pytest.fixture
def cuda(environment, monkeypatch):
    """Candidates on the imaginary GPU."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    launcher = ProcessLauncher()
    bench = Bench(kind="cuda", starter=LockedStarter(EvaluatorSettings(), launcher), draw=ZeroDraw)
    _, ready = bench.start(BUILDER, architecture="sm_90")
    if ready.unavailable:
        pytest.skip(f"NVRTC: {ready.unavailable}")
    yield bench
    for process in bench.running:
        process.kill()
    launcher.close()


def _load(cuda: Bench, body: str):
    text = f"{KERNELS}\n```python\ndef launch(x, out):\n    {body}\n```\n"
    return cuda.load(text, draw_inputs(x=(1000,), out=(1000,)))


SCALE = "scale[8, 128](x, out, 2.0, 1000)"


def test_the_device_is_opened_and_the_runner_locked_in(cuda):
    """Facts of the GPU, and every lock but bubblewrap, with the reason."""
    candidate = _load(cuda, SCALE)
    device = candidate.ready.device
    assert (device.id, device.language, device.sub_group_size) == ("cuda:0", Language.CUDA, 32)
    assert dataclasses.astuple(device.unit_limits) == (65536, 233472, 2048, 32)
    isolation = candidate.ready.isolation
    assert {"landlock", "seccomp", "rlimits", "capabilities"} == set(isolation.mechanisms)
    assert any("CUDA runner" in reason for reason in isolation.missing)


def test_times_are_events_with_the_host_clock_and_clocks_beside_them(cuda):
    """Sets of device memory beyond the caches are timed where they lie."""
    candidate = _load(cuda, SCALE)
    assert isinstance(candidate.run(), RunReply)
    assert candidate.fill_pool(wanted_bytes=0).set_count == SEEDS
    timed = candidate.time()
    assert len(timed.host_ns) == len(timed.samples_ns) >= 1
    assert sum(block.sample_count for block in timed.clocks) >= len(timed.samples_ns)
    assert len(timed.kept) == min(2, len(timed.samples_ns))  # of a busy moment one
    assert candidate.fill_pool(wanted_bytes=1 << 20).set_count > SEEDS
    assert candidate.time().samples_ns
    times = candidate.step_times()
    assert times.own_ns > 0
    assert times.library_ns == 0
    assert timed.prepare_ns == ()


@pytest.mark.parametrize("wanted_bytes", [0, 1 << 20], ids=["in place", "copies"])
def test_several_configurations_are_timed_on_the_same_sets(cuda, wanted_bytes):
    """One after the other in one runner; all are there until they are forgotten."""
    candidate = _load(cuda, SCALE)
    sets = []
    for number in (1, 2):
        assert isinstance(candidate.load(number=number), LoadReply)
        assert isinstance(candidate.run(number=number, into_last=True), RunReply)
        sets.append(candidate.fill_pool(wanted_bytes, number=number))
        assert candidate.time(number=number).kept
    assert sets[0] == sets[1]


def test_an_illegal_access_is_a_crash_and_ends_its_runner(cuda):
    """Nothing else can run in that process; the next one is none the worse."""
    candidate = _load(cuda, "illegal[1, 32](x, out)")
    failed = candidate.run()
    assert failed.outcome is EvaluationOutcome.CRASHED
    assert not failed.is_runner_usable
    assert failed.findings[0].kind is FindingKind.ILLEGAL_ACCESS
    assert candidate.process.wait(60.0) is not None
    assert isinstance(_load(cuda, SCALE).run(), RunReply)


def test_a_kernel_that_never_ends_is_killed(cuda):
    """The deadline is the caller's; the process ends by the signal, not by itself."""
    candidate = _load(cuda, "endless[1, 32](x, out)")
    with pytest.raises(ChannelTimeoutError):
        candidate.process.ask(RunRequest(draw=candidate.inputs.draw), RunReply, timeout_seconds=0.5)
    assert candidate.process.kill().signal == signal.SIGKILL


@pytest.mark.parametrize(
    "body",
    [
        "scale[0, 128](x, out, 2.0, 1000)",
        "scale[8, 2048](x, out, 2.0, 1000)",
        "scale[8, 128, 1000000](x, out, 2.0, 1000)",
        "y = empty((50 * 10**9,), float32)\n    scale[8, 128](x, y, 2.0, 1000)\n    " + SCALE,
        "scale[8, 128](x, 7, 2.0, 1000)",
    ],
    ids=["grid of zero", "block too large", "too much shared memory", "200 GB", "no pointer"],
)
def test_what_cannot_be_launched_is_refused_before(cuda, body):
    """A plan error, and nothing has run."""
    assert _load(cuda, body).loaded.outcome is EvaluationOutcome.PLAN_ERROR

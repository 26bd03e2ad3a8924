"""Runners on a real GPU: memory shared by IPC, launches that fail, library calls, graphs.

Every test leaves the device as good as before: what fails does so in its own process.
"""

import signal

import numpy as np
import pytest

import kernel_foundry_native as native
from evaluator_svc.messages.draw import OUTPUT_SLOTS, Draw
from evaluator_svc.messages.runner import RunReply, RunRequest
from evaluator_svc.processes.channel import ChannelTimeoutError
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from tests.runner.conftest import SEEDS, Bench, HostDraw, draw_inputs

pytestmark = pytest.mark.gpu

KERNELS = """```cuda
extern "C" __global__ void relu(const float* __restrict__ x, float* __restrict__ out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = fmaxf(x[i], 0.0f);
}
extern "C" __global__ void beyond(const float* x, float* out, int count) {
  out[(1LL << 40) + threadIdx.x] = x[0];
}
extern "C" __global__ void __launch_bounds__(64) narrow(const float* x, float* out, int count) {
  if (threadIdx.x < count) out[threadIdx.x] = x[threadIdx.x];
}
extern "C" __global__ void relu_and_mark(const float* y, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = fmaxf(y[i], 0.0f);
  if (i != 0) return;
  // The allocator takes 2 MiB for a small result: this is what no other has of them.
  const size_t at = (size_t)y, unit = (size_t)2 << 20;
  unsigned* behind = (unsigned*)(at + (unit - at % unit) - ((size_t)64 << 10));
  if (*behind == 0xC0FFEE11u) out[0] = __int_as_float(0x7fc00000);
  *behind = 0xC0FFEE11u;
}
extern "C" __global__ void endless(const float* x, float* out, int count) {
  while (*(const volatile float*)x < 1e30f) {}
  out[0] = x[0];
}
```
"""
RIGHT = "    relu[cdiv(x.numel(), 256), 256](x, out, x.numel())\n"


class DeviceDraw(HostDraw):
    """Inputs in device memory shared by handles; `array` copies an output to the host.

    Args:
        tensors: As for `HostDraw`.
        device: Native device of this process.
    """

    def __init__(self, tensors, device) -> None:
        super().__init__(tensors)
        self._device = device
        self._memory = [device.create_shared(self.draw.size_bytes) for _ in range(SEEDS)]
        for host, shared in zip(self.buffers, self._memory, strict=True):
            device.copy(to=shared.address, from_=host.address, size_bytes=self.draw.size_bytes)
        device.synchronize()
        handles = tuple(shared.handle.hex() for shared in self._memory)
        fields = {name: getattr(self.draw, name) for name in Draw.__dataclass_fields__}
        self.draw = Draw(**{**fields, "handles": handles})

    def descriptors(self) -> tuple[int, ...]:
        """Return none: the handles are in the draw."""
        return ()

    def array(self, seed: int, name: str, slot: int = 0) -> np.ndarray:
        """Return a copy of a tensor, as it is on the device now."""
        if hasattr(self, "_memory"):
            host, shared = self.buffers[seed], self._memory[seed]
            self._device.copy(
                to=host.address, from_=shared.address, size_bytes=self.draw.size_bytes
            )
            self._device.synchronize()
        return super().array(seed, name, slot)


@pytest.fixture
def device():
    """This process's own device, as a judge has one."""
    opened = native.device_kind("cuda").open_device(0)
    yield opened
    opened.release()


@pytest.fixture
def cuda(starter, device):
    """Candidates on the GPU; `load(text, tensors)` as the CPU device's."""
    bench = Bench(kind="cuda", starter=starter, draw=lambda tensors: DeviceDraw(tensors, device))
    yield bench
    for process in bench.running:
        process.kill()


def _text(body: str, signature: str = "x, out") -> str:
    return f"{KERNELS}\n```python\ndef launch({signature}):\n{body}```\n"


def _passes(cuda: Bench) -> None:
    candidate = cuda.load(_text(RIGHT), draw_inputs(x=(1000,), out=(1000,)))
    assert isinstance(candidate.run(), RunReply)
    for seed in range(SEEDS):
        wanted = np.maximum(candidate.inputs.array(seed, "x"), 0)
        for slot in range(OUTPUT_SLOTS):
            assert (candidate.inputs.array(seed, "out", slot) == wanted).all()


def test_results_arrive_through_shared_device_memory(cuda):
    """Every slot of every seed, from a runner that is locked in."""
    _passes(cuda)
    candidate = cuda.load(_text(RIGHT), draw_inputs(x=(1000,), out=(1000,)))
    assert {"landlock", "seccomp"} & set(candidate.ready.isolation.mechanisms)
    assert any("CUDA runner" in reason for reason in candidate.ready.isolation.missing)
    assert candidate.ready.device.unit_limits is not None
    assert candidate.ready.device.sub_group_size == 32


@pytest.mark.parametrize("wanted_bytes", [0, 1 << 24], ids=["in place", "copies"])
def test_timed_calls_are_kept_and_their_clocks_told(cuda, wanted_bytes):
    """On the shared buffers themselves as on copies; inputs are unchanged."""
    candidate = cuda.load(_text(RIGHT), draw_inputs(x=(100_000,), out=(100_000,)))
    before = candidate.inputs.array(0, "x").copy()
    candidate.run()
    pool = candidate.fill_pool(wanted_bytes=wanted_bytes)
    assert pool.set_count == SEEDS if not wanted_bytes else pool.set_count > SEEDS
    for _ in range(2):
        timed = candidate.time()
        assert len(timed.host_ns) == len(timed.samples_ns)
        assert len(timed.kept) == 2
        for kept in timed.kept:
            wanted = np.maximum(candidate.inputs.array(kept.seed, "x"), 0)
            assert (candidate.kept(kept) == wanted).all()
    assert (candidate.inputs.array(0, "x") == before).all()


def test_a_run_into_the_last_slots_outlives_timed_calls(cuda):
    """The judge sees it together with the calls that were kept."""
    candidate = cuda.load(_text(RIGHT), draw_inputs(x=(100_000,), out=(100_000,)))
    candidate.run(into_last=True)
    candidate.fill_pool(wanted_bytes=1 << 24)
    assert len(candidate.time().kept) == 2
    for seed in range(SEEDS):
        wanted = np.maximum(candidate.inputs.array(seed, "x"), 0)
        assert (candidate.inputs.array(seed, "out", OUTPUT_SLOTS - 1) == wanted).all()


FAULTS = {
    "illegal address": (
        "    beyond[1, 32](x, out, 1)\n",
        EvaluationOutcome.CRASHED,
        FindingKind.ILLEGAL_ACCESS,
    ),
    "too much shared memory": (
        "    relu[1, 32, 1048576](x, out, 1)\n",
        EvaluationOutcome.PLAN_ERROR,
        FindingKind.PLAN,
    ),
    "a block beyond the kernel's bounds": (
        "    narrow[1, 128](x, out, 1)\n",
        EvaluationOutcome.PLAN_ERROR,
        FindingKind.PLAN,
    ),
    "grid of zero": (
        "    relu[0, 32](x, out, 1)\n",
        EvaluationOutcome.PLAN_ERROR,
        FindingKind.PLAN,
    ),
    "200 GB": (
        "    y = empty((50 * 10**9,), float32)\n    relu[1, 32](x, y, 1)\n" + RIGHT,
        EvaluationOutcome.PLAN_ERROR,
        FindingKind.PLAN,
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_each_fault_has_its_outcome_and_the_next_candidate_runs(cuda, case):
    """The device is none the worse for it."""
    body, outcome, kind = FAULTS[case]
    candidate = cuda.load(_text(body), draw_inputs(x=(1000,), out=(1000,)))
    failed = candidate.loaded if hasattr(candidate.loaded, "outcome") else candidate.run()
    assert failed.outcome is outcome, failed
    assert failed.findings[0].kind is kind
    _passes(cuda)


def test_a_kernel_that_never_ends_is_killed(cuda):
    """The next candidate has its result."""
    candidate = cuda.load(
        _text("    endless[1, 32](x, out, 1)\n"), draw_inputs(x=(1000,), out=(1000,))
    )
    request = RunRequest(draw=candidate.inputs.draw)
    with pytest.raises(ChannelTimeoutError):
        candidate.process.ask(request, RunReply, timeout_seconds=1.0)
    assert candidate.process.kill().signal == signal.SIGKILL
    _passes(cuda)


@pytest.mark.parametrize("tf32", [False, True])
def test_library_calls_use_tf32_where_the_task_allows_it(cuda, tf32):
    """What 10 bits of mantissa cost shows in a long product, and only then."""
    plan = "    y = ops.linear(x, weight)\n    relu[cdiv(y.numel(), 256), 256](y, out, y.numel())\n"
    shapes = {"x": (256, 2048), "weight": (256, 2048), "out": (256, 256)}
    candidate = cuda.load(
        _text(plan, "x, weight, out"), draw_inputs(**shapes), library_ops=("linear",), tf32=tf32
    )
    assert isinstance(candidate.run(), RunReply)
    x, weight = (candidate.inputs.array(0, name).astype(np.float64) for name in ("x", "weight"))
    exact = np.maximum(x @ weight.T, 0)
    error = np.abs(candidate.inputs.array(0, "out", 0) - exact).max() / np.sqrt((exact**2).mean())
    assert (error > 1e-4) == tf32
    assert error < 1e-2


@pytest.mark.parametrize("kernel", ["relu", "relu_and_mark"])
@pytest.mark.parametrize(("rows", "inner", "cols"), [(64, 128, 96), (16, 1 << 16, 24)])
def test_library_calls_share_the_stream_and_are_captured(cuda, kernel, rows, inner, cols):
    """Results are right in runs and in timed calls, eager and as graphs.

    So they are where a library splits a long sum among groups, which meet in its workspace; and no
    call finds what another one left behind a result.
    """
    launch = f"    {kernel}[cdiv(y.numel(), 256), 256](y, out, y.numel())\n"
    plan = "    y = ops.linear(x, weight)\n" + launch
    shapes = {"x": (rows, inner), "weight": (cols, inner), "out": (rows, cols)}
    candidate = cuda.load(
        _text(plan, "x, weight, out"), draw_inputs(**shapes), library_ops=("linear",)
    )
    assert isinstance(candidate.run(), RunReply)
    assert np.isfinite(candidate.inputs.array(1, "out", 1)).all()  # of a run before the last
    last = candidate.inputs.array(0, "out", 2).copy()  # where a timed call writes there is no more
    candidate.fill_pool()
    timed = candidate.time()
    for seed, found in [
        (0, last),
        *((kept.seed, candidate.kept(kept)) for kept in timed.kept),
    ]:
        x, weight = (candidate.inputs.array(seed, name) for name in ("x", "weight"))
        wanted = np.maximum(x @ weight.T, 0)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * np.sqrt(inner / 128))
    times = candidate.step_times()
    assert times.own_ns > 0
    assert times.library_ns > 0

"""The judge out of memory at every allocation in turn: survived, or a typed error, never a bug.

Allocations are torch's operators, each of which may need memory, and shared buffers.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from evaluator_svc.judge import Judge
from evaluator_svc.judge.admission import admit
from evaluator_svc.judge.baselines import BaselineFailedError
from evaluator_svc.messages.comparison import RunComparison
from evaluator_svc.messages.draw import RUN_COUNT
from evaluator_svc.messages.measurement import KeptOutput, MeasurementSettings
from evaluator_svc.sizes.memory_needs import USABLE_SHARE
from kernel_foundry.domain.admission import Distribution, ValueRange
from kernel_foundry.errors import DeviceMemoryError
from kernel_foundry_native import OutOfMemoryError
from tests.judge.judge_tasks import DEVICE, PEAKS, TOLERANCE, RunnerSide, make_task

SEEDS = (31, 32, 33)
BODY = """
def __init__(self):
    super().__init__()
    self.weight = nn.Parameter(torch.ones(cols))

def forward(self, x):
    return torch.tanh(x) * self.weight
"""
TASK = make_task(BODY, rows=8, cols=20)
ALWAYS = 1 << 30
STRIDE = 10
"""Every so many allocations of a question one fails in the same session."""


class Allocator(TorchDispatchMode):
    def __init__(self, judge: Judge, first: int = ALWAYS, count: int = 1) -> None:
        super().__init__()
        self.seen = 0
        self._failing = range(first, first + count)
        self._memory = judge._memory

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here, and keeping the compiler out takes longer than an operator."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Fail, or call the operator."""
        if self._fails():
            raise torch.OutOfMemoryError("injected")
        return func(*args, **(kwargs or {}))

    def share(self, size_bytes: int) -> Any:
        if self._fails():
            raise OutOfMemoryError("injected")
        return type(self._memory).share(self._memory, size_bytes)  # type: ignore[arg-type]

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Make all allocations of the body."""
        self._memory.share = self.share  # type: ignore[method-assign]
        try:
            with self:
                yield
        finally:
            del self._memory.share

    def _fails(self) -> bool:
        self.seen += 1
        return self.seen - 1 in self._failing


def kernel(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * weight


class Session:
    """All that an evaluation asks of a judge; the runner's part has memory of its own.

    Each question is asked with memory that stays short from allocation `first` on, from
    `first + STRIDE` on and so forth; at last, if any of those was an error, with one failed
    allocation, which the judge survives.

    Args:
        judge: Is asked.
        needs: Allocations of each question, in order; without them nothing fails.
        first: Allocation of each question that fails first.
    """

    def __init__(self, judge: Judge, needs: Sequence[int] = (), first: int = 0) -> None:
        self.judge = judge
        self.handles: list[int] = []
        self.failed: set[int] = set()
        """Allocations whose lack was an error of some question."""
        self.needs: list[int] = []
        """Allocations of each question, as `needs`; 0 where their lack is no error."""
        self._known_needs = iter(needs)
        self._first = first

    def asked(self, question: Callable[[], Any], *, counts: bool = True) -> Any:
        failed: list[int] = []
        for at in range(self._first, next(self._known_needs, 0), STRIDE):
            with Allocator(self.judge, at, ALWAYS).in_force():
                try:
                    answer = question()
                except DeviceMemoryError:
                    failed.append(at)
                else:  # it found in memory what it would have made
                    break
        else:
            once = failed[self._first % len(failed)] if failed else ALWAYS
            allocator = Allocator(self.judge, once)
            with allocator.in_force():
                answer = question()
            self.needs.append(allocator.seen if counts else 0)
        self.failed.update(failed)
        return answer

    def draw(self, **others: Any) -> tuple[int, RunnerSide]:
        message, descriptors = self.asked(
            lambda: self.judge.draw(TASK, TASK.workloads[0].name, TOLERANCE, SEEDS, **others)
        )
        self.handles.append(message.draw)
        return message.draw, RunnerSide(self.judge, message, descriptors)

    def evaluate(self, *, is_lean: bool) -> None:
        """Go through the stages; all verdicts have to be right."""
        judge = self.judge
        handle, side = self.draw(is_lean=is_lean)
        for verdict in self._verdicts(handle, side, is_lean=is_lean):
            assert not verdict.is_wrong
            assert not verdict.is_nondeterministic
        # Says in a note that there is no memory, in place of an error.
        self.asked(lambda: judge.audit_precision(handle), counts=False)
        self.asked(lambda: judge.poison(handle))
        side.run(kernel, "x", "weight")
        kept = (KeptOutput(seed=0, slot=0),)
        assert not self.asked(lambda: judge.verify_kept(handle, kept)).verdict.is_wrong
        settings = MeasurementSettings(seconds=0.01, min_samples=1, max_samples=1, warmup_calls=0)
        assert self.asked(lambda: judge.time_baselines(handle, settings, ("eager",)))
        seeds = self.asked(lambda: judge.change_inputs(handle, with_parameters=True)).seeds
        side.run(kernel, "x", "weight")
        assert not self.asked(lambda: judge.verify_changed(handle, seeds)).is_wrong
        self._try_ranges()

    def close(self) -> None:
        for handle in self.handles:
            self.judge.release(handle)

    def _verdicts(self, handle: int, side: RunnerSide, *, is_lean: bool) -> Iterator[RunComparison]:
        judge = self.judge
        if not is_lean:
            side.run(kernel, "x", "weight")
            yield self.asked(lambda: judge.verify(handle))
            return
        for seed in reversed(range(len(SEEDS))):
            self.asked(lambda seed=seed: judge.load_seed(handle, seed))
            for _ in range(RUN_COUNT):
                side.run(kernel, "x", "weight")
                yield self.asked(lambda: judge.verify(handle))

    def _try_ranges(self) -> None:
        chosen = (Distribution.ZEROS, Distribution.OFFSET, Distribution.NON_FINITE)
        ranges = tuple(ValueRange(distribution=d, factor=4.0, is_binding=True) for d in chosen)
        handle, side = self.draw(distributions=chosen)
        side.run(kernel, "x", "weight")
        verified = self.asked(lambda: self.judge.verify_ranges(handle, ranges))
        assert not any(verdict.is_wrong for verdict in verified.verdicts)


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    monkeypatch.setattr(gc, "collect", lambda: 0)  # half a second each time
    return Judge(DEVICE, threads=1, baseline_seconds=0.02)


def finish(judge: Judge, work: Callable[[Session], None], *args: Any) -> Session:
    """Do `work` to its end in `Session(judge, *args)`; see that nothing is left of it."""
    session = Session(judge, *args)
    try:
        work(session)
    finally:
        session.close()
    assert not judge._draws
    assert not judge._lean_runs
    assert judge._pool._used_bytes == 0
    return session


def test_a_baseline_is_left_out_only_where_nobody_else_has_the_memory(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(*_: Any, **__: Any) -> float:
        raise BaselineFailedError("torch.compile: no memory") from torch.OutOfMemoryError(
            "injected"
        )

    monkeypatch.setattr(admit, "compile_seconds", too_large)
    whole = int(USABLE_SHARE * judge._memory_bytes)

    with pytest.raises(DeviceMemoryError, match="injected"):
        judge.admit(TASK, PEAKS, whole - 1)

    admission = judge.admit(TASK, PEAKS, whole)
    assert admission.admitted
    assert "torch.compile: no memory" in admission.warnings


@pytest.mark.parametrize(("is_lean", "on_buffer"), [(False, False), (True, False), (True, True)])
def test_every_allocation_of_an_evaluation_may_fail(
    judge: Judge, is_lean: bool, on_buffer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On copies of the inputs as on a CPU, on the buffer as on a GPU."""
    monkeypatch.setattr(type(judge._memory), "rests_between_runs", on_buffer)

    def work(session: Session) -> None:
        session.evaluate(is_lean=is_lean)

    judge._give_back()
    needs = finish(judge, work).needs
    assert max(needs) > 20
    failed = set()
    for first in range(STRIDE):
        judge._give_back()  # the task is loaded again
        failed |= finish(judge, work, needs, first).failed
    assert failed == set(range(max(needs)))
    assert finish(judge, work).needs  # all is well again


def test_an_admission_out_of_memory_is_a_typed_error(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At allocations spread over all of it: there are thousands."""

    def work(session: Session) -> None:
        session.asked(lambda: session.judge.admit(TASK, PEAKS))

    def no_compiler(*_: object, **__: object) -> float:
        raise BaselineFailedError("left out: compiled code allocates nothing here")

    monkeypatch.setattr(admit, "compile_seconds", no_compiler)
    (need,) = finish(judge, work).needs
    assert need > 100
    for at in range(0, need, need // 8):
        finish(judge, work, (at + 1,), at)

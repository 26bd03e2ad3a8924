"""The judge of one device: all of its state, and one method for each thing it is asked.

Lives in a process of its own with torch, and never runs a candidate. Expected values are computed
only when a verdict is asked for, which is after the candidate ran.
"""

import gc
import itertools
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Final, TypeVar

import torch

from evaluator_svc.baseline_names import UNLESS_TOLD
from evaluator_svc.hardware.openmp import set_threads
from evaluator_svc.judge.admission.admit import admission_sets, admit_task
from evaluator_svc.judge.baselines import BaselineFailedError, time_baseline
from evaluator_svc.judge.call_form import call_form
from evaluator_svc.judge.comparison import data_flow
from evaluator_svc.judge.comparison import verify as verification
from evaluator_svc.judge.comparison.comparison_probe import probe_comparison
from evaluator_svc.judge.comparison.kept_calls import audit_kept, compare_kept
from evaluator_svc.judge.comparison.lean_runs import LeanRuns
from evaluator_svc.judge.comparison.precision import audit_precision
from evaluator_svc.judge.comparison.ranges import verify_guests, verify_ranges
from evaluator_svc.judge.comparison.task_check import with_task_check
from evaluator_svc.judge.describe import describe_task
from evaluator_svc.judge.draws.buffer_pool import BufferPool
from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.memory.judge_memory import JudgeMemory, open_memory
from evaluator_svc.judge.threads import threads_for
from evaluator_svc.judge.timed_calls.call_inputs import redrawn_tensors
from evaluator_svc.messages.comparison import RunComparison
from evaluator_svc.messages.draw import OUTPUT_SLOTS, Draw
from evaluator_svc.messages.foreign import CallForm
from evaluator_svc.messages.judge import (
    ChangeReply,
    ComparisonProbeReply,
    DescribeReply,
    JudgeFacts,
    KeptClaim,
    KeptVerdict,
    MemoryHeld,
    PrecisionReply,
    RangesReply,
)
from evaluator_svc.messages.measurement import KeptOutput, MeasurementSettings
from evaluator_svc.sizes.generated_workloads import generated_workload
from evaluator_svc.sizes.memory_needs import USABLE_SHARE
from kernel_foundry.domain.admission import Admission, Distribution, ValueRange
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.evaluation import Baseline, Fact
from kernel_foundry.domain.task import Task, Tolerance, Workload
from kernel_foundry.errors import (
    BackendUnavailableError,
    DeviceMemoryError,
    InvalidArgumentError,
)
from kernel_foundry_native import OutOfMemoryError

T = TypeVar("T")

_PREPARED_LIMIT: Final = 16
"""Workloads kept loaded."""

_MAX_FACTS: Final = 64

_OUT_OF_MEMORY: Final = (torch.OutOfMemoryError, MemoryError, OutOfMemoryError, DeviceMemoryError)
"""What an allocation raises, of torch or of the native module."""


class Judge:
    """Admits tasks and judges outputs for one device, which is opened when first needed.

    Args:
        device: Where candidates run.
        threads: Of torch; as many as the CPU device has.
        local_id: The device's id in this process, which may see no other; "" is its own.
        baselines: What an admission times beside eager, where the device has it.
        baseline_seconds: Longest measurement of one baseline.
    """

    def __init__(
        self,
        device: DeviceSpec,
        threads: int,
        *,
        local_id: str = "",
        baselines: tuple[str, ...] = UNLESS_TOLD,
        baseline_seconds: float = 1.0,
    ) -> None:
        set_threads(threads)
        torch.set_float32_matmul_precision("highest")
        self._device = device
        self._local_id = local_id or device.id
        self._threads = threads
        self._baselines = baselines
        self._baseline_seconds = baseline_seconds
        self._prepared: OrderedDict[tuple[str, str], PreparedWorkload] = OrderedDict()
        self._draws: dict[int, SharedDraw] = {}
        self._lean_runs: dict[int, LeanRuns] = {}
        self._peaks: dict[int, int] = {}
        self._handles = itertools.count(1)
        self._noted: list[Fact] = []

    @cached_property
    def _memory(self) -> JudgeMemory:
        return open_memory(self._local_id)

    @cached_property
    def _pool(self) -> BufferPool:
        return BufferPool(self._memory, int(self._memory.idle_share * self._memory.total_bytes))

    @property
    def _memory_bytes(self) -> int:
        """Memory for an evaluation; a device that does not tell (0 bytes) has the machine's."""
        total_bytes = self._memory.total_bytes
        return min(total_bytes, self._device.memory_bytes or total_bytes)

    def facts(self) -> JudgeFacts:
        """Return what the judge's process is, for evidence."""
        fixed = {
            "torch": torch.__version__,
            "threads of torch": str(self._threads),
            "float32 matmul precision": torch.get_float32_matmul_precision(),
        }
        facts = [Fact(name=name, value=value) for name, value in fixed.items()]
        try:
            facts += self._memory.facts()
        except BackendUnavailableError as error:
            facts.append(Fact(name="device of the judge", value=error.message))
        return JudgeFacts(process_id=os.getpid(), facts=(*facts, *self._noted))

    def task_of(self, draw: int) -> Task | None:
        """Return whose inputs a draw holds; None: there is no such draw."""
        known = self._draws.get(draw)
        return None if known is None else known.prepared.module.task

    def describe(self, task: Task, *, shapes_alone: bool = False) -> DescribeReply:
        """Return what plans may name in `task`; needs no device. See `describe_task`."""
        return describe_task(task, shapes_alone=shapes_alone)

    def admit(self, task: Task, peaks: Peaks, memory_bytes: int = 0) -> Admission:
        """Return what is to be known of `task` before any candidate is made.

        Args:
            task: The task.
            peaks: The device's measured limits.
            memory_bytes: What it may use; 0: all there is.

        Raises:
            TaskInvalidError: the reference cannot be loaded or run.
            DeviceMemoryError: it takes more memory than it may use.
        """
        start = time.monotonic()
        self._pool.clear()  # an admission has more use for the memory
        self._memory.limit(memory_bytes or self._memory.total_bytes)
        try:
            admission = self._within_memory(
                f"admitting {task.name}",
                lambda: admit_task(
                    task,
                    device=self._device,
                    peaks=peaks,
                    memory=self._memory,
                    memory_bytes=self._memory_bytes,
                    baselines=self._baselines,
                    baseline_seconds=self._baseline_seconds,
                    is_alone=not 0 < memory_bytes < int(USABLE_SHARE * self._memory_bytes),
                    prepare=lambda workload: self._prepare(task, workload),
                    note=self._note,
                ),
            )
        finally:
            self._memory.limit(self._memory.total_bytes)
            self._memory.trim()
        self._note(
            Fact(name=f"admission of {task.name}", value=f"{time.monotonic() - start:.1f} s")
        )
        return admission

    def draw(
        self,
        task: Task,
        workload: str,
        tolerance: Tolerance,
        seeds: tuple[int, ...],
        distributions: tuple[Distribution, ...] = (),
        *,
        mixed: tuple[Distribution, ...] = (),
        is_lean: bool = False,
    ) -> tuple[Draw, tuple[int, ...]]:
        """Draw inputs and parameters into shared buffers; outputs are poisoned.

        All of it is in place on return. `distributions` change each seed's inputs, `mixed` those
        of the last one by blocks of rows. A lean draw has one buffer for all seeds, and holds the
        last one's inputs at first.

        Returns:
            The draw and, for host memory, the buffers' file descriptors in order of the seeds.
            They stay the judge's own, until `release`.

        Raises:
            InvalidArgumentError: no such workload, or no seeds.
            TaskInvalidError: the reference cannot be loaded or its inputs not be made.
            DeviceMemoryError: there is too little memory.
        """
        if not seeds:
            raise InvalidArgumentError("a draw needs a seed", field="seeds")
        chosen = _workload(task, workload)

        def drawn() -> SharedDraw:
            prepared = self._prepare(task, chosen)
            lean = is_lean and prepared.is_repeatable
            size = prepared.lean_size_bytes if lean else prepared.size_bytes
            buffers = self._pool.take(size, count=1 if lean else len(seeds))
            try:
                with threads_for([prepared]):
                    return SharedDraw(
                        handle=next(self._handles),
                        prepared=prepared,
                        seeds=seeds,
                        memory=self._memory,
                        buffers=buffers,
                        tolerance=tolerance,
                        distributions=distributions,
                        mixed=mixed,
                        is_lean=lean,
                    )
            except BaseException:
                self._pool.give(buffers)
                raise

        draw = self._within_memory(f"drawing inputs of {workload}", drawn)
        self._draws[draw.handle] = draw
        if draw.is_lean:
            self._lean_runs[draw.handle] = LeanRuns(draw)
        self._note_peak(draw.handle)
        return draw.message()

    def call_form(self, draw: int) -> CallForm:
        """Return how the reference of a draw's workload is constructed and called.

        Raises:
            InvalidArgumentError: no such draw.
            TaskInvalidError: its arguments cannot be told.
        """
        return call_form(self._draw(draw).prepared)

    def load_seed(self, draw: int, seed: int) -> None:
        """Put another seed's inputs into the buffer of a lean draw.

        Raises:
            InvalidArgumentError: no such draw or seed, or the draw is not lean.
            TaskInvalidError, DeviceMemoryError: as `draw`.
        """

        def load(shared: SharedDraw) -> None:
            shared.load(seed)
            self._lean_runs[draw].begin(seed)

        self._work_on(draw, "drawing inputs", load)

    def verify(self, draw: int, slots: tuple[int, ...] = ()) -> RunComparison:
        """Compare output slots with the reference, which runs now; all of them without `slots`.

        Of a lean draw: what the last run wrote; the verdict is on all runs so far.

        Raises:
            InvalidArgumentError: no such draw.
            TaskInvalidError: the reference raises.
            DeviceMemoryError: there is too little memory.
        """
        runs = self._lean_runs.get(draw)

        if runs is not None:
            # Two steps: with no memory for the second one, the first is not done again, or the run
            # would count twice.
            verdict = self._work_on(draw, "comparing", lambda _: runs.verify())
            return self._work_on(
                draw, "checking", lambda shared: with_task_check(shared, (0,), verdict)
            )

        def compared(shared: SharedDraw) -> RunComparison:
            written = tuple(slots) or tuple(range(OUTPUT_SLOTS))
            return with_task_check(shared, written, verification.verify(shared, slots))

        return self._work_on(draw, "comparing", compared)

    def verify_decoy(self, draw: int) -> tuple[str, ...]:
        """Return the outputs whose first slots are right though no kernel was launched.

        Raises:
            InvalidArgumentError, TaskInvalidError, DeviceMemoryError: as `verify`.
        """
        return self._work_on(draw, "comparing", verification.right_already)

    def audit_precision(self, draw: int) -> PrecisionReply:
        """Hold the outputs of the first seed against the reference in float64.

        Without figures where outputs are not compared.

        Raises:
            InvalidArgumentError, TaskInvalidError: as `verify`.
        """
        task = self._draw(draw).prepared.task
        if not task.compare:
            return PrecisionReply(note=f"{task.check}() of the task alone tells what is right")
        return self._audited(draw, audit_precision)

    def poison(self, draw: int) -> None:
        """Poison every output slot again."""
        self._draw(draw).poison()

    def verify_kept(
        self,
        draw: int,
        kept: tuple[KeptOutput, ...],
        claimed: KeptClaim | None = None,
        orders: tuple[tuple[int, ...], ...] = (),
    ) -> KeptVerdict:
        """Compare outputs of calls that were kept, and audit those of timed calls.

        `orders`: as `VerifyKeptRequest`.

        Expected values of runs are kept, so this is cheap.

        Raises:
            InvalidArgumentError, TaskInvalidError, DeviceMemoryError: as `verify`.
        """
        found = self._work_on(
            draw, "comparing", lambda shared: compare_kept(shared, kept, claimed, orders)
        )
        audited = None
        if found.agreements and not found.verdict.is_wrong:
            audited = self._audited(draw, lambda shared: audit_kept(shared, found))
        return KeptVerdict(verdict=found.verdict, audited=audited)

    def change_inputs(
        self, draw: int, *, with_parameters: bool, is_second: bool = False
    ) -> ChangeReply:
        """Change a few elements of the inputs in place, after the timed calls.

        `is_second`: as `ChangeRequest`.
        """
        seeds = self._work_on(
            draw,
            "changing inputs",
            lambda shared: data_flow.change_inputs(
                shared, with_parameters=with_parameters, is_second=is_second
            ),
        )
        return ChangeReply(seeds=seeds)

    def verify_changed(self, draw: int, seeds: tuple[int, ...]) -> RunComparison:
        """Tell whether outputs followed the inputs that were changed."""
        return self._work_on(
            draw, "comparing", lambda shared: data_flow.verify_changed(shared, seeds)
        )

    def verify_ranges(
        self, draw: int, ranges: tuple[ValueRange, ...], guests: tuple[int, ...] = ()
    ) -> RangesReply:
        """Compare the first slots of a draw of unusual values, one of `ranges` for each seed.

        `guests`: compare what calls among the timed ones wrote on inputs of these seeds.
        """
        verdicts = self._work_on(
            draw,
            "comparing",
            lambda shared: (
                verify_guests(shared, ranges, guests) if guests else verify_ranges(shared, ranges)
            ),
        )
        return RangesReply(verdicts=verdicts)

    def time_baselines(
        self, draw: int, settings: MeasurementSettings, names: tuple[str, ...]
    ) -> tuple[Baseline, ...]:
        """Time PyTorch on the draw's inputs; a baseline that does not work is left out.

        Raises:
            InvalidArgumentError: no such draw or baseline.
            DeviceMemoryError: there is too little memory.
        """
        return self._work_on(
            draw,
            "timing",
            lambda shared: self._timed(
                shared.timed_sets(), settings, names, shared.redrawn, is_lean=shared.is_lean
            ),
            is_timed=True,
        )

    def time_baselines_of(
        self, task: Task, workload: str, settings: MeasurementSettings, names: tuple[str, ...]
    ) -> tuple[Baseline, ...]:
        """Time PyTorch on the inputs that an admission draws; else as `time_baselines`.

        Raises:
            InvalidArgumentError: no such workload or baseline.
            TaskInvalidError: the reference cannot be loaded or its inputs not be made.
            DeviceMemoryError: there is too little memory.
        """
        chosen = _workload(task, workload)
        try:
            return self._within_memory(
                f"timing of {workload}",
                lambda: self._timed_of(self._prepare(task, chosen), settings, names),
            )
        finally:
            self._memory.trim()

    def memory_held(self, draw: int) -> MemoryHeld:
        """Return what a draw takes of the device's memory.

        Raises:
            InvalidArgumentError: no such draw.
        """
        shared_bytes = sum(buffer.size_bytes for buffer in self._draw(draw).buffers)
        return MemoryHeld(shared_bytes=shared_bytes, peak_bytes=self._peaks.get(draw, 0))

    def release(self, draw: int) -> None:
        """Forget a draw, once the runner that worked on it is dead. Unknown ones are ignored."""
        released = self._draws.pop(draw, None)
        self._lean_runs.pop(draw, None)
        self._peaks.pop(draw, None)
        if released is not None:
            self._pool.give(released.buffers)
            del released
            self._memory.trim()

    def probe_comparison(self) -> ComparisonProbeReply:
        """Plant differences and count them."""
        return probe_comparison(self._memory)

    def is_sound(self) -> bool:
        """Return False when the device's context is lost, as after a fault of the reference."""
        if "_memory" in vars(self):
            try:
                self._memory.synchronize()
            except RuntimeError:
                return False
        return True

    def _audited(self, draw: int, audit: Callable[[SharedDraw], PrecisionReply]) -> PrecisionReply:
        try:
            return self._work_on(draw, "auditing", audit)
        except DeviceMemoryError:
            return PrecisionReply(note="there is no memory for the reference in float64")

    def _draw(self, handle: int) -> SharedDraw:
        draw = self._draws.get(handle)
        if draw is None:
            raise InvalidArgumentError(f"no draw {handle}", field="draw")
        return draw

    def _timed_of(
        self, prepared: PreparedWorkload, settings: MeasurementSettings, names: tuple[str, ...]
    ) -> tuple[Baseline, ...]:
        redrawn = redrawn_tensors(prepared, self._memory)
        return self._timed(admission_sets(prepared), settings, names, redrawn)

    def _timed(
        self,
        sets: Sequence[InputSet],
        settings: MeasurementSettings,
        names: tuple[str, ...],
        redrawn: tuple[str, ...],
        *,
        is_lean: bool = False,
    ) -> tuple[Baseline, ...]:
        timed = []
        for name in names:
            if is_lean:
                self._memory.give_back()  # graphs do not use what is kept for others
            try:
                timed.append(time_baseline(name, sets, settings, self._memory, redrawn))
            except BaselineFailedError as error:
                if isinstance(error.__cause__, _OUT_OF_MEMORY):
                    raise error.__cause__ from None  # there may be memory for it next time
                self._note(Fact(name=name, value=str(error)))
        return tuple(timed)

    def _work_on(
        self,
        handle: int,
        doing: str,
        work: Callable[[SharedDraw], T],
        *,
        is_timed: bool = False,
    ) -> T:
        draw = self._draw(handle)
        threads = nullcontext() if is_timed else threads_for([draw.prepared])
        try:
            with threads:
                return self._within_memory(f"{doing} of {draw.workload}", lambda: work(draw))
        finally:
            self._note_peak(handle)

    def _note_peak(self, handle: int) -> None:
        """Keep the most that torch has held, and give back what it holds without use."""
        self._peaks[handle] = max(self._peaks.get(handle, 0), self._memory.take_peak())
        self._memory.trim()

    def _within_memory(self, doing: str, work: Callable[[], T]) -> T:
        """Return what `work` gives; where memory is short, once more with all idle given back.

        Raises:
            DeviceMemoryError: it is short all the same.
        """
        for is_last in (False, True):
            try:
                return work()
            except _OUT_OF_MEMORY as error:
                why = str(error)
            # Only here: the error holds the frames, and these the tensors.
            self._give_back()
            if is_last:
                break
        raise DeviceMemoryError(f"{doing} takes more memory than there is: {why}", doing=doing)

    def _give_back(self) -> None:
        """Give back whatever can be made again, and all that is idle."""
        for draw in self._draws.values():
            if draw.is_lean:
                draw.drop_copies()
        used = {id(draw.prepared) for draw in self._draws.values()}
        for key in [k for k, prepared in self._prepared.items() if id(prepared) not in used]:
            self._prepared.pop(key).close()
        self._pool.clear()
        gc.collect()
        self._memory.give_back()

    def _prepare(self, task: Task, workload: Workload) -> PreparedWorkload:
        key = (task.digest, workload.name)
        if key not in self._prepared:
            self._prepared[key] = PreparedWorkload(
                task,
                workload,
                device=self._memory.torch_device,
                memory_bytes=self._memory_bytes,
            )
        self._prepared.move_to_end(key)
        while len(self._prepared) > _PREPARED_LIMIT:
            _, oldest = self._prepared.popitem(last=False)
            oldest.close()
        return self._prepared[key]

    def _note(self, fact: Fact) -> None:
        self._noted = [f for f in self._noted if f.name != fact.name][-_MAX_FACTS:]
        self._noted.append(fact)


def _workload(task: Task, name: str) -> Workload:
    chosen = next((w for w in task.workloads if w.name == name), None)
    chosen = chosen or generated_workload(task, name)
    if chosen is None:
        raise InvalidArgumentError(f"{task.name}: no workload {name!r}", field="workload")
    return chosen

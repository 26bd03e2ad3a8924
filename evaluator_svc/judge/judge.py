"""The judge of one device: all of its state, and one method for each thing it is asked.

Lives in a process of its own with torch, and never runs a candidate. Expected values are computed
only when a verdict is asked for, which is after the candidate ran. Knows nothing of processes.
"""

import itertools
import os
import time
from collections import OrderedDict
from functools import cached_property
from typing import Final

import torch

from evaluator_svc.judge.admission.admit import admit_task
from evaluator_svc.judge.baselines import BaselineFailedError, time_baseline
from evaluator_svc.judge.draws.buffer_pool import BufferPool
from evaluator_svc.judge.draws.prepared import PreparedWorkload
from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.judge.memory.judge_memory import JudgeMemory, open_memory
from evaluator_svc.judge.reference.describe import describe_task
from evaluator_svc.judge.verdict import data_flow
from evaluator_svc.judge.verdict import verify as verification
from evaluator_svc.judge.verdict.comparison_probe import probe_comparison
from evaluator_svc.judge.verdict.precision import audit_precision
from evaluator_svc.judge.verdict.range_verdict import verify_ranges
from evaluator_svc.messages.exchange import Draw, JudgeFacts, KeptOutput, MeasurePlan, Verdict
from evaluator_svc.messages.judge import (
    Changed,
    ComparisonProbed,
    Described,
    KeptClaim,
    PrecisionAudited,
    RangesVerified,
)
from kernel_foundry.domain.admission import Admission, Distribution, ValueRange
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.evaluation import Baseline, Fact
from kernel_foundry.domain.task import Task, Tolerance, Workload
from kernel_foundry.errors import BackendUnavailableError, InvalidArgumentError, TaskInvalidError

_PREPARED_LIMIT: Final = 16
"""Workloads kept loaded."""

_MAX_FACTS: Final = 64


class Judge:
    """Admits tasks and judges outputs for one device, which is opened when first needed.

    Args:
        device: Where candidates run.
        threads: Of torch; as many as the CPU device has.
        local_id: The device's id in this process, which may see no other; "" is its own.
    """

    def __init__(self, device: DeviceSpec, threads: int, *, local_id: str = "") -> None:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision("highest")
        self._device = device
        self._local_id = local_id or device.id
        self._threads = threads
        self._prepared: OrderedDict[tuple[str, str], PreparedWorkload] = OrderedDict()
        self._draws: dict[int, SharedDraw] = {}
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

    def describe(self, task: Task) -> Described:
        """Return what plans may name in `task`, from shapes alone; needs no device.

        Raises:
            TaskInvalidError: the reference cannot be loaded or run.
        """
        return describe_task(task)

    def admit(self, task: Task, peaks: Peaks) -> Admission:
        """Return what is to be known of `task` before any candidate is made.

        Raises:
            TaskInvalidError: the reference cannot be loaded or run.
        """
        start = time.monotonic()
        self._pool.clear()  # an admission has more use for the memory
        try:
            admission = admit_task(
                task,
                device=self._device,
                peaks=peaks,
                memory=self._memory,
                memory_bytes=self._memory_bytes,
                prepare=lambda workload: self._prepare(task, workload),
                note=self._note,
            )
        except torch.OutOfMemoryError as error:
            raise TaskInvalidError(
                f"{task.name}: judging the reference takes more memory than there is; choose"
                " smaller sizes in the sidecar",
                task=task.name,
            ) from error
        finally:
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
    ) -> tuple[Draw, tuple[int, ...]]:
        """Draw inputs and parameters, one shared region for each seed; outputs are poisoned.

        All of it is in place on return. `distributions` change each seed's inputs.

        Returns:
            The draw and, for host memory, the regions' file descriptors in order of the seeds.
            They stay the judge's own, until `release`.

        Raises:
            InvalidArgumentError: no such workload, or no seeds.
            TaskInvalidError: the reference cannot be loaded or its inputs not be made.
        """
        if not seeds:
            raise InvalidArgumentError("a draw needs a seed", field="seeds")
        chosen = next((w for w in task.workloads if w.name == workload), None)
        if chosen is None:
            raise InvalidArgumentError(f"{task.name}: no workload {workload!r}", field="workload")
        prepared = self._prepare(task, chosen)
        regions = self._pool.take(prepared.size_bytes, count=len(seeds))
        try:
            draw = SharedDraw(
                handle=next(self._handles),
                prepared=prepared,
                seeds=seeds,
                memory=self._memory,
                regions=regions,
                tolerance=tolerance,
                distributions=distributions,
            )
        except BaseException:
            self._pool.give(regions)
            raise
        self._draws[draw.handle] = draw
        self._memory.trim()
        return draw.message()

    def verify(self, draw: int) -> Verdict:
        """Compare every output slot with the reference, which runs now.

        Raises:
            InvalidArgumentError: no such draw.
            TaskInvalidError: the reference raises.
        """
        verdict = verification.verify(self._draw(draw))
        self._memory.trim()
        return verdict

    def verify_decoy(self, draw: int) -> bool:
        """Return whether the first slot of every seed is right though no kernel was launched.

        Raises:
            InvalidArgumentError, TaskInvalidError: as `verify`.
        """
        return verification.is_right_already(self._draw(draw))

    def audit_precision(self, draw: int) -> PrecisionAudited:
        """Hold the outputs of the first seed against the reference in float64.

        Raises:
            InvalidArgumentError, TaskInvalidError: as `verify`.
        """
        try:
            return audit_precision(self._draw(draw))
        except torch.OutOfMemoryError:
            return PrecisionAudited(note="there is no memory for the reference in float64")
        finally:
            self._memory.trim()

    def poison(self, draw: int) -> None:
        """Poison every output slot again."""
        self._draw(draw).poison()

    def verify_kept(
        self, draw: int, kept: tuple[KeptOutput, ...], claimed: KeptClaim | None = None
    ) -> Verdict:
        """Compare outputs of timed calls; expected values are kept, so this is cheap."""
        return verification.verify_kept(self._draw(draw), kept, claimed)

    def change_inputs(self, draw: int, *, with_parameters: bool) -> Changed:
        """Change a few elements of the inputs in place, after the timed calls."""
        seeds = data_flow.change_inputs(self._draw(draw), with_parameters=with_parameters)
        return Changed(seeds=seeds)

    def verify_changed(self, draw: int, seeds: tuple[int, ...]) -> Verdict:
        """Tell whether outputs followed the inputs that were changed."""
        verdict = data_flow.verify_changed(self._draw(draw), seeds)
        self._memory.trim()
        return verdict

    def verify_ranges(self, draw: int, ranges: tuple[ValueRange, ...]) -> RangesVerified:
        """Compare the first slots of a draw of unusual values, one of `ranges` for each seed."""
        verdicts = verify_ranges(self._draw(draw), ranges)
        self._memory.trim()
        return RangesVerified(verdicts=verdicts)

    def time_baselines(
        self, draw: int, plan: MeasurePlan, names: tuple[str, ...]
    ) -> tuple[Baseline, ...]:
        """Time PyTorch on the draw's inputs; a baseline that does not work is left out.

        Raises:
            InvalidArgumentError: no such draw or baseline.
        """
        sets = self._draw(draw).timed_sets()
        timed = []
        for name in names:
            try:
                timed.append(time_baseline(name, sets, plan, self._memory))
            except BaselineFailedError as error:
                self._note(Fact(name=name, value=str(error)))
        self._memory.trim()
        return tuple(timed)

    def release(self, draw: int) -> None:
        """Forget a draw, once the runner that worked on it is dead. Unknown ones are ignored."""
        released = self._draws.pop(draw, None)
        if released is not None:
            self._pool.give(released.regions)
            del released
            self._memory.trim()

    def probe_comparison(self) -> ComparisonProbed:
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

    def _draw(self, handle: int) -> SharedDraw:
        draw = self._draws.get(handle)
        if draw is None:
            raise InvalidArgumentError(f"no draw {handle}", field="draw")
        return draw

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

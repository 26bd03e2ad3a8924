"""The judge of one device: all of its state, and one method for each thing it is asked.

Lives in a process of its own with torch, and never runs a candidate. Expected values are computed
only when a verdict is asked for, which is after the candidate ran. Knows nothing of processes.
"""

import itertools
import os
import time
from collections import OrderedDict
from typing import Final

import torch

from evaluator_svc.exchange import Draw, JudgeFacts, KeptOutput, MeasurePlan, Verdict
from evaluator_svc.judge import verify as verification
from evaluator_svc.judge.admit import admit_task
from evaluator_svc.judge.baselines import CompileFailedError, time_baseline
from evaluator_svc.judge.prepared import PreparedWorkload
from evaluator_svc.judge.shared_draw import BufferPool, SharedDraw
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.evaluation import Baseline, Fact
from kernel_foundry.domain.task import Task, Tolerance, Workload
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry_native import _core as native

_PREPARED_LIMIT: Final = 16
"""Workloads kept loaded."""

_POOL_SHARE: Final = 0.15
"""Share of the machine's memory that idle shared buffers may hold."""

_MAX_FACTS: Final = 64


class Judge:
    """Admits tasks and judges outputs for one device.

    Args:
        device: Where candidates run.
        threads: Of torch; as many as the CPU device has.
    """

    def __init__(self, device: DeviceSpec, threads: int) -> None:
        # Before torch allocates anything large: see the native function's own reason.
        native.keep_memory()
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision("highest")
        self._device = device
        self._threads = threads
        self._prepared: OrderedDict[tuple[str, str], PreparedWorkload] = OrderedDict()
        self._draws: dict[int, SharedDraw] = {}
        self._handles = itertools.count(1)
        memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self._pool = BufferPool(int(_POOL_SHARE * memory_bytes))
        self._noted: list[Fact] = []

    def facts(self) -> JudgeFacts:
        """Return what the judge's process is, for evidence."""
        fixed = {
            "torch": torch.__version__,
            "threads of torch": str(self._threads),
            "float32 matmul precision": torch.get_float32_matmul_precision(),
            "allocator": "malloc keeps freed memory (no fresh pages for each result)",
        }
        facts = tuple(Fact(name=name, value=value) for name, value in fixed.items())
        return JudgeFacts(process_id=os.getpid(), facts=(*facts, *self._noted))

    def admit(self, task: Task, peaks: Peaks) -> Admission:
        """Return what is to be known of `task` before any candidate is made.

        Raises:
            TaskInvalidError: the reference cannot be loaded or run.
        """
        start = time.monotonic()
        admission = admit_task(
            task,
            device=self._device,
            peaks=peaks,
            prepare=lambda workload: self._prepare(task, workload),
            note=self._note,
        )
        self._note(
            Fact(name=f"admission of {task.name}", value=f"{time.monotonic() - start:.1f} s")
        )
        return admission

    def draw(
        self, task: Task, workload: str, tolerance: Tolerance, seeds: tuple[int, ...]
    ) -> tuple[Draw, list[int]]:
        """Draw inputs and parameters, one shared buffer for each seed; outputs are poisoned.

        Returns:
            The draw and the buffers' file descriptors in order of the seeds. They stay the
            judge's own, until `release`.

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
        sets = [prepared.input_set(seed) for seed in seeds]
        draw = SharedDraw(
            handle=next(self._handles),
            sets=sets,
            slots=prepared.slots,
            buffers=[self._pool.take(prepared.size_bytes) for _ in seeds],
            tolerance=tolerance,
            is_scaled=task.tolerance is None,
        )
        self._draws[draw.handle] = draw
        return draw.message(workload), [buffer.fd for buffer in draw.buffers]

    def verify(self, draw: int) -> Verdict:
        """Compare every output slot with the reference, which runs now.

        Raises:
            InvalidArgumentError: no such draw.
            TaskInvalidError: the reference raises.
        """
        return verification.verify(self._draw(draw))

    def poison(self, draw: int) -> None:
        """Poison every output slot again."""
        self._draw(draw).poison()

    def verify_kept(self, draw: int, kept: tuple[KeptOutput, ...]) -> Verdict:
        """Compare outputs of timed calls; expected values are kept, so this is cheap."""
        return verification.verify_kept(self._draw(draw), kept)

    def time_baselines(
        self, draw: int, plan: MeasurePlan, names: tuple[str, ...]
    ) -> tuple[Baseline, ...]:
        """Time PyTorch on the draw's inputs; a baseline that does not work is left out.

        Raises:
            InvalidArgumentError: no such draw or baseline.
        """
        sets = self._draw(draw).sets
        timed = []
        for name in names:
            try:
                timed.append(time_baseline(name, sets, plan))
            except CompileFailedError as error:
                self._note(Fact(name=name, value=str(error)))
        return tuple(timed)

    def release(self, draw: int) -> None:
        """Forget a draw, once the runner that worked on it is dead. Unknown ones are ignored."""
        released = self._draws.pop(draw, None)
        if released is not None:
            self._pool.give(released.buffers)

    def _draw(self, handle: int) -> SharedDraw:
        draw = self._draws.get(handle)
        if draw is None:
            raise InvalidArgumentError(f"no draw {handle}", field="draw")
        return draw

    def _prepare(self, task: Task, workload: Workload) -> PreparedWorkload:
        key = (task.digest, workload.name)
        if key not in self._prepared:
            self._prepared[key] = PreparedWorkload(task, workload)
        self._prepared.move_to_end(key)
        while len(self._prepared) > _PREPARED_LIMIT:
            _, oldest = self._prepared.popitem(last=False)
            oldest.close()
        return self._prepared[key]

    def _note(self, fact: Fact) -> None:
        self._noted = [f for f in self._noted if f.name != fact.name][-_MAX_FACTS:]
        self._noted.append(fact)

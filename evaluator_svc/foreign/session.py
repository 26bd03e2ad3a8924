"""One foreign kernel from its import to its last timed call.

Every call has its inputs copied in anew, at addresses that stay for a seed: who remembers an
answer by address, shape or object gives a wrong one as soon as the values differ. What a call
returned is overwritten before the next one.
"""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from evaluator_svc.foreign.candidate import ForeignCandidate
from evaluator_svc.foreign.device import ForeignDevice
from evaluator_svc.foreign.outputs import (
    Region,
    contiguous,
    dense,
    memory_of,
    plain_outputs,
    require_own_memory,
    storages,
)
from evaluator_svc.foreign.sources import entry_of, write_sources
from evaluator_svc.foreign.watched_names import WatchedNames
from evaluator_svc.hardware.openmp import set_threads
from evaluator_svc.judge.memory.judge_memory import SharedBuffer
from evaluator_svc.messages.draw import POISON_BYTE, Draw, TensorSlot
from evaluator_svc.messages.foreign import (
    ForeignBindRequest,
    ForeignChanges,
    ForeignKept,
    ForeignLoaded,
    ForeignLoadRequest,
    ForeignOpenRequest,
    ForeignTimeRequest,
    ForeignTimes,
    ForeignWorkload,
    KeepRequest,
)
from evaluator_svc.messages.locked import DoneReply
from evaluator_svc.messages.runner import RunAgainRequest, RunReply, RunRequest
from evaluator_svc.processes.channel import close_descriptors
from evaluator_svc.runner.faults import CandidateFaultError, fault
from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind

_LATE_SECONDS: Final = 0.005
"""After a call, before its outputs are looked at again."""
_SOURCES: Final = "sources"
_now_ns, _sleep = time.perf_counter_ns, time.sleep
"""As they were before any candidate."""


@dataclass(slots=True, kw_only=True)
class _SeedSet:
    """One seed's inputs at addresses of this process, and a call on them."""

    buffer: SharedBuffer
    inputs: list[torch.Tensor]
    outputs: list[torch.Tensor]
    """Where the candidate writes, if it is given them."""
    call: Callable[[], Any]
    taken: list[Region]
    """Memory in which no output may lie."""
    last: Any = None
    """What the last call returned."""


class _OpenDraw:
    """A draw's buffers with the sets that were made of them."""

    def __init__(self, draw: Draw, buffers: list[SharedBuffer]) -> None:
        self.draw = draw
        self.buffers = buffers
        self.sets: list[_SeedSet] = []

    def slots(self, *roles: TensorRole) -> list[TensorSlot]:
        return [slot for slot in self.draw.slots if slot.role in {role.value for role in roles}]

    def close(self) -> None:
        self.sets.clear()
        for buffer in self.buffers:
            buffer.close()


class ForeignSession:
    """A candidate, its workloads and their inputs.

    Every method raises `CandidateFaultError` for what the candidate is at fault for.
    """

    def __init__(self, device: ForeignDevice) -> None:
        self._device = device
        self._memory = device.memory
        self._watched = WatchedNames()
        self._candidate: ForeignCandidate | None = None
        self._workloads: dict[str, ForeignWorkload] = {}
        self._opened: dict[str, _OpenDraw] = {}

    def load(self, request: ForeignLoadRequest) -> ForeignLoaded:
        """Write the sources and import or build the entry."""
        started = _now_ns()
        folder = Path(os.environ["TMPDIR"]) / _SOURCES
        folder.mkdir()
        write_sources(request.source, folder)
        entry = entry_of(request.source, folder)
        torch_device = self._memory.torch_device
        self._candidate = ForeignCandidate(request.source.form, entry, folder, torch_device)
        return ForeignLoaded(load_ms=1e-6 * (_now_ns() - started))

    def bind(self, request: ForeignBindRequest) -> DoneReply:
        """Note how a workload is called."""
        self._workloads[request.workload.workload] = request.workload
        return DoneReply()

    def open(self, request: ForeignOpenRequest, descriptors: tuple[int, ...]) -> DoneReply:
        """Make the first seed of a draw ready to be timed, and let the others go."""
        for other in self._opened.values():
            other.close()
        self._opened.clear()
        buffers = self._device.open_buffers(request.draw, descriptors)
        opened = self._opened[request.draw.workload] = _OpenDraw(request.draw, buffers)
        opened.sets = [self._set_of(opened, buffers[0])]
        return DoneReply()

    def run(self, request: RunRequest, descriptors: tuple[int, ...]) -> RunReply | DoneReply:
        """Run every loaded seed, once for each output slot; `once`: into the first slots alone."""
        name = request.draw.workload
        if request.once:
            opened = _OpenDraw(request.draw, self._device.open_buffers(request.draw, descriptors))
            try:
                self._run_all(opened, slots=1)
            finally:
                opened.close()
            return DoneReply()
        known = self._opened.get(name)
        if known is None or known.draw != request.draw:
            if known is not None:
                known.close()
            buffers = self._device.open_buffers(request.draw, descriptors)
            known = self._opened[name] = _OpenDraw(request.draw, buffers)
        else:
            close_descriptors(descriptors)
        if request.refilled:
            known.sets.clear()
        return RunReply(run_ns=self._run_all(known, slots=request.draw.slot_count))

    def run_again(self, request: RunAgainRequest) -> DoneReply:
        """Run seeds whose inputs have changed in place, at the addresses that were timed."""
        opened = self._opened[request.workload]
        for seed in request.seeds:
            self._run(opened, opened.sets[seed], slot=0)
        return DoneReply()

    def time(self, request: ForeignTimeRequest) -> ForeignTimes:
        """Time calls on the first seed's inputs with the loop that times baselines."""
        opened = self._opened[request.workload]
        chosen = opened.sets[0]
        self._refill(opened, chosen)
        self._discard(chosen)
        call = chosen.call

        def timed(_index: int) -> None:
            chosen.last = call()

        threads = torch.get_num_threads()
        try:
            if request.one_thread:
                set_threads(1)
            measured = self._memory.measure(
                timed,
                self._device.options(
                    warmup_calls=0, samples=request.call_count, is_cold=request.flush_bytes > 0
                ),
                flush_bytes=request.flush_bytes,
                redraw=self._redraw(opened, chosen, request.redraw_key),
            )
        except (Exception, SystemExit) as error:
            raise self._owner.raised(error, "a timed call") from error
        finally:
            if request.one_thread:
                set_threads(threads)
        self._require_inputs(opened, chosen)
        return ForeignTimes(
            samples_ns=tuple(measured.samples_ns),
            device_ns=tuple(measured.device_ns),
            host_ns=tuple(measured.host_ns),
        )

    def keep(self, request: KeepRequest) -> ForeignKept:
        """Copy what the last timed call returned to the judge, in the order that it has."""
        opened = self._opened[request.workload]
        chosen = opened.sets[0]
        outputs, orders = dense(self._checked(opened, chosen))
        self._copy_out(opened, chosen, outputs, slot=0)
        return ForeignKept(orders=orders)

    def changes(self) -> ForeignChanges:
        """Return what the candidate has changed of the process."""
        threads = self._watched.threads(self._owner.folder)
        return ForeignChanges(replaced=self._watched.changes(), threads=threads)

    @property
    def _owner(self) -> ForeignCandidate:
        assert self._candidate is not None, "it is loaded first"
        return self._candidate

    def _run_all(self, opened: _OpenDraw, *, slots: int) -> float:
        """Run every seed; return the last call's time in nanoseconds, by this process's clock."""
        if not opened.sets:
            opened.sets = [self._set_of(opened, buffer) for buffer in opened.buffers]
        run_ns = 0.0
        for chosen in opened.sets:
            for slot in range(slots):
                started = _now_ns()
                self._run(opened, chosen, slot=slot, is_last=slot == slots - 1)
                run_ns = float(_now_ns() - started)
        return run_ns

    def _run(self, opened: _OpenDraw, chosen: _SeedSet, *, slot: int, is_last: bool = True) -> None:
        self._refill(opened, chosen)
        before = chosen.last  # alive, so that no new tensor can lie there
        earlier = [] if before is None else [
            memory_of(tensor, "an earlier output") for tensor in storages(before)
        ]  # fmt: skip
        if before is not None:
            self._overwrite(storages(before))
        try:
            chosen.last = chosen.call()
            self._memory.synchronize()
        except (Exception, SystemExit) as error:
            raise self._owner.raised(error, "a call") from error
        outputs = self._checked(opened, chosen, () if self._owner.writes_outputs else earlier)
        self._copy_out(opened, chosen, contiguous(outputs), slot=slot)
        self._require_inputs(opened, chosen)
        if is_last:
            self._require_complete(opened, chosen, slot=slot)

    def _checked(
        self, opened: _OpenDraw, chosen: _SeedSet, earlier: Any = ()
    ) -> list[torch.Tensor]:
        slots = opened.slots(TensorRole.OUTPUT)
        outputs = plain_outputs(chosen.last, slots, self._memory.torch_device)
        require_own_memory(chosen.last, [*chosen.taken, *earlier])
        return outputs

    def _set_of(self, opened: _OpenDraw, buffer: SharedBuffer) -> _SeedSet:
        workload = self._workloads[opened.draw.workload]
        inputs = [self._copied(s, buffer) for s in opened.slots(TensorRole.INPUT)]
        by_name = {s.name: s for s in opened.draw.slots}
        state = {each.path: self._copied(by_name[each.slot], buffer) for each in workload.state}
        outputs: list[torch.Tensor] = []
        if self._owner.writes_outputs:
            outputs = [self._empty(slot) for slot in opened.slots(TensorRole.OUTPUT)]
        call, held = self._owner.prepared(workload, inputs, state, outputs)
        taken = [memory_of(tensor, "an input") for tensor in inputs]
        taken += [memory_of(tensor, "a parameter or buffer") for tensor in held]
        chosen = _SeedSet(buffer=buffer, inputs=inputs, outputs=outputs, call=call, taken=taken)
        self._overwrite(outputs)
        return chosen

    def _copied(self, slot: TensorSlot, buffer: SharedBuffer) -> torch.Tensor:
        tensor = self._empty(slot)
        self._memory.copy(tensor.data_ptr(), buffer.address + slot.offsets[0], slot.size_bytes)
        return tensor

    def _empty(self, slot: TensorSlot) -> torch.Tensor:
        dtype = getattr(torch, slot.dtype)
        return torch.empty(slot.shape, dtype=dtype, device=self._memory.torch_device)

    def _refill(self, opened: _OpenDraw, chosen: _SeedSet) -> None:
        for tensor, slot in zip(chosen.inputs, opened.slots(TensorRole.INPUT), strict=True):
            source = chosen.buffer.address + slot.offsets[0]
            self._memory.copy(tensor.data_ptr(), source, slot.size_bytes)

    def _discard(self, chosen: _SeedSet) -> None:
        """Overwrite what the last call returned, and let it go."""
        if chosen.last is not None:
            self._overwrite(storages(chosen.last))
        chosen.last = None

    def _overwrite(self, tensors: Iterable[torch.Tensor]) -> None:
        for tensor in tensors:
            start, end, _ = memory_of(tensor)
            self._memory.fill(start, end - start, POISON_BYTE)

    def _copy_out(
        self, opened: _OpenDraw, chosen: _SeedSet, outputs: list[torch.Tensor], *, slot: int
    ) -> None:
        for tensor, into in zip(outputs, opened.slots(TensorRole.OUTPUT), strict=True):
            target = chosen.buffer.address + into.offsets[slot]
            self._memory.copy(target, tensor.data_ptr(), into.size_bytes)
        self._memory.synchronize()

    def _require_inputs(self, opened: _OpenDraw, chosen: _SeedSet) -> None:
        for tensor, slot in zip(chosen.inputs, opened.slots(TensorRole.INPUT), strict=True):
            source = chosen.buffer.address + slot.offsets[0]
            if not self._memory.same_bytes(tensor.data_ptr(), source, slot.size_bytes):
                raise fault(
                    EvaluationOutcome.WRONG_RESULT,
                    FindingKind.INPUT_MODIFIED,
                    f"it changed its input {slot.name} on workload {opened.draw.workload}",
                    hint="write to new tensors only",
                )

    def _require_complete(self, opened: _OpenDraw, chosen: _SeedSet, *, slot: int) -> None:
        """Look at outputs again after a while: nothing may be written once a call has returned."""
        _sleep(_LATE_SECONDS)
        outputs = contiguous(self._checked(opened, chosen))
        for tensor, into in zip(outputs, opened.slots(TensorRole.OUTPUT), strict=True):
            target = chosen.buffer.address + into.offsets[slot]
            if not self._memory.same_bytes(tensor.data_ptr(), target, into.size_bytes):
                raise _late(into.name)

    def _redraw(self, opened: _OpenDraw, chosen: _SeedSet, key: int) -> Any:
        """Return which inputs the loop changes before each call; parameters stay."""
        slots = opened.slots(TensorRole.INPUT)
        numbered = [(number, slot) for number, slot in enumerate(slots) if slot.redrawn_as]
        if not key or not numbered:
            return None
        return (
            key,
            [(slot.redrawn_as, slot.size_bytes, number) for number, slot in numbered],
            [[chosen.inputs[number].data_ptr() for number, _ in numbered]],
        )


def _late(name: str) -> CandidateFaultError:
    return fault(
        EvaluationOutcome.REJECTED,
        FindingKind.POLICY,
        f"{name} was written after the call had returned",
        hint="wait for threads and streams before returning",
    )

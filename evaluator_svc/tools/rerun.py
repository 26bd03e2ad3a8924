"""Runs one workload of a candidate again, for a tool to watch: `rerun FOLDER [profiled]`.

Every tensor and every buffer of the plan is an allocation of its own of just its size, so that a
tool sees what lies beyond it; inputs are copied from the judge's buffer where the draw names one,
and nothing else is written, so that a tool sees what is read before. For device kernels alone: on
a CPU device a kernel is native code, which never runs outside the sandbox. `profiled`: a profiler
looks at `launch` and not at `prepare`.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from evaluator_svc.hardware.visible_device import see_only
from evaluator_svc.messages.draw import Draw, TensorSlot
from evaluator_svc.processes.binding import bind_workload
from evaluator_svc.processes.locked_process import OpenDevice
from evaluator_svc.runner.loaded_sequence import LoadedSequence
from evaluator_svc.runner.memory import Buffers, PlanMemory
from evaluator_svc.runner.surroundings import Surroundings
from evaluator_svc.tools.rerun_folder import RerunInput, read
from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.plan.parse import parse
from kernel_foundry.plan.sequence import LaunchSequence

_KINDS: Final = frozenset({"cuda", "null"})
_REFUSED: Final = 2
_FAULT: Final = 3


def main(folder: Path, *, is_profiled: bool = False) -> int:
    """Run the folder's candidate; return the exit status: 3 when it is at fault."""
    import kernel_foundry_native as native

    rerun = read(folder)
    kind, _, index = see_only(rerun.load.device.id).partition(":")
    if kind not in _KINDS:
        sys.stderr.write(f"{kind} kernels are native code and are not run again\n")
        return _REFUSED
    module = native.device_kind(kind)
    opened = OpenDevice(
        module=module, device=module.open_device(int(index or 0)), index=int(index or 0)
    )
    try:
        _run(opened, rerun, _start_profiler if is_profiled else _nothing)
    except native.LaunchError as error:
        sys.stderr.write(f"{error}\n")
        return _FAULT
    return 0


def _start_profiler() -> None:
    """Let the profiler look from here on; it needs the device's context, which is there."""
    ctypes.CDLL("libcuda.so.1").cuProfilerStart()


def _nothing() -> None:
    """Nobody looks at some of the launches only."""


def _run(opened: OpenDevice, rerun: RerunInput, before_launch: Callable[[], None]) -> None:
    load, draw = rerun.load, rerun.draw
    position = next(i for i, names in enumerate(load.workloads) if names.workload == draw.workload)
    sequence: LaunchSequence = bind_workload(
        parse(load.source.plan),
        load.workloads[position],
        source=load.source,
        configuration=load.configuration,
        device=load.device,
        library_ops=load.library_ops,
    )
    unit = load.unit_of_workload[position]
    device = opened.device
    program = device.load(code=rerun.codes[unit], kernels=list(load.kernels[unit]))
    memory = SeparateMemory(device, sequence, seed_count=1)
    tensors = {slot.name: _tensor(device, slot) for slot in draw.slots}
    _fill(device, draw, tensors)
    addresses = {name: int(buffer.address) for name, buffer in tensors.items()}
    for steps, before in ((sequence.prepare, _nothing), (sequence.steps, before_launch)):
        if steps:
            again = LoadedSequence(opened, program, steps, memory, tf32=load.tf32)
            again.bind(0, addresses, seed=0)
            device.synchronize()
            before()
            again.native.run(0)
    device.synchronize()


class SeparateMemory(PlanMemory):
    """A plan's own memory whose buffers lie apart from each other, and which nothing writes."""

    def _allocate(self, kinds: tuple[str, ...], byte: int) -> Buffers:
        sizes = {i: b.size_bytes for i, b in enumerate(self.buffers) if b.kind in kinds}
        return _SeparateBuffers(self._device, sizes, byte)


class _SeparateBuffers(Buffers):
    def __init__(self, device: Any, sizes: Mapping[int, int], byte: int) -> None:
        self._memory = {at: device.allocate(max(size, 1)) for at, size in sizes.items()}
        self.addresses = {at: int(buffer.address) for at, buffer in self._memory.items()}
        self.surroundings = Surroundings(device, address=0, size_bytes=0, places=(), byte=byte)


def _tensor(device: Any, slot: TensorSlot) -> Any:
    return device.allocate(max(slot.size_bytes, 1))


def _fill(device: Any, draw: Draw, tensors: dict[str, Any]) -> None:
    shared = None
    if draw.handles:
        shared = device.open_shared(bytes.fromhex(draw.handles[0]), draw.size_bytes)
    for slot in draw.slots:
        if slot.role == TensorRole.OUTPUT.value:
            continue
        address = int(tensors[slot.name].address)
        if shared is None:
            device.fill(address, slot.size_bytes, 0)
        else:
            device.copy(
                to=address, from_=int(shared.address) + slot.offsets[0], size_bytes=slot.size_bytes
            )
    device.synchronize()
    if shared is not None:
        shared.close()


if __name__ == "__main__":
    status = main(Path(sys.argv[1]), is_profiled=sys.argv[2:] == ["profiled"])
    sys.stdout.flush()
    sys.stderr.flush()
    # A device runtime's own clean-up at exit may abort a process.
    os._exit(status)

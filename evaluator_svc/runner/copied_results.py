"""Whether a candidate's kernels did no more than copy what library calls had computed.

Looked at in a few places of each output, on the host: where those agree to the last byte, a kernel
of one's own has added nothing. Knows nothing of what outputs should be.
"""

import ctypes
import secrets
from typing import Any, Final

from evaluator_svc.messages.exchange import TensorSlot
from evaluator_svc.runner.faults import CandidateFaultError, fault
from evaluator_svc.runner.replay import Replay
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.plan.sequence import LibraryCall

_PLACES: Final = 4
_PLACE_BYTES: Final = 1 << 14


def check_copies(device: Any, replay: Replay, outputs: tuple[TensorSlot, ...]) -> None:
    """Refuse a run whose outputs all are results of library calls, moved by a kernel.

    Args:
        device: Native device.
        replay: Has just run; its calls' results are still there.
        outputs: Of the workload.

    Raises:
        CandidateFaultError: they are.
    """
    if replay.library is None:
        return
    addresses = list(replay.native.last_addresses)
    results = {step.output for step in replay.steps if isinstance(step, LibraryCall)}
    for slot in outputs:
        index = replay.buffer_index(slot.name)
        if index is None or not slot.size_bytes or index in results:
            return
        sizes = {i: replay.buffer_bytes(i) for i in results}
        same = (i for i, size in sizes.items() if size == slot.size_bytes)
        if not any(_agree(device, addresses[index], addresses[i], slot.size_bytes) for i in same):
            return
    raise _refused()


def _agree(device: Any, output: int, result: int, size_bytes: int) -> bool:
    length = min(size_bytes, _PLACE_BYTES)
    starts = (0, *(secrets.randbelow(size_bytes - length + 1) for _ in range(_PLACES)))
    return all(
        _read(device, output + start, length) == _read(device, result + start, length)
        for start in starts
    )


def _read(device: Any, address: int, size_bytes: int) -> bytes:
    content = (ctypes.c_ubyte * size_bytes)()
    device.copy(to=ctypes.addressof(content), from_=address, size_bytes=size_bytes)
    return bytes(content)


def _refused() -> CandidateFaultError:
    return fault(
        EvaluationOutcome.REJECTED,
        FindingKind.DECOY,
        "the outputs are what the library calls computed: the candidate's kernels copy it",
        hint="let kernels of your own compute a part that the outputs depend on",
    )

"""The tricks that cannot be excluded of a foreign kernel; every verdict on one names them."""

from collections.abc import Iterable
from typing import Final

from evaluator_svc.messages.draw import Draw
from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.domain.check import Check, CheckKind, CheckResult

_ALWAYS: Final = (
    "its code runs in the process that takes its times: if it rewrites native code or memory there,"
    " samples may be too short, by as much as the supervisor's clock allows (a factor of two)",
    "it can tell timed calls from others; timed calls whose outputs are verified are chosen only "
    "after they have returned",
    "parameters stay as they are from one timed call to the next: work on them may be done once",
    "its warm times are of calls on one set of inputs, whose answer it may remember; no figure but "
    "the warm times rests on them",
    "native threads and programs that it starts may work while caches are emptied between calls",
    "the formats that it computes in are not seen, only its errors; nor are its library calls",
    "it may start programs, which compilers need; they end with its process",
)

_ON_GPUS: Final = (
    "work on other streams that is under way when a call returns is seen by the comparison and the"
    " supervisor's clock alone",
)


def not_excluded(draws: Iterable[Draw], *, on_gpu: bool) -> tuple[Check, ...]:
    """Return a skipped check for each thing that nobody looked at.

    Args:
        draws: Of the timed workloads.
        on_gpu: Whether times are events on a stream.
    """
    checks = [_skipped(note) for note in (*_ALWAYS, *(_ON_GPUS if on_gpu else ()))]
    for draw in draws:
        kept = [s.name for s in draw.slots if s.role == TensorRole.INPUT.value and not s.redrawn_as]
        if kept:
            note = f"it may remember what follows from inputs that no timed call changes: {kept}"
            checks.append(_skipped(note, draw.workload))
    return tuple(checks)


def _skipped(note: str, workload: str = "") -> Check:
    return Check(
        kind=CheckKind.FOREIGN_CODE, result=CheckResult.SKIPPED, workload=workload, note=note
    )

"""A kernel that does nothing, in a process of its own: what a call costs but for its work.

A candidate's own process cannot tell: its code may make calls that do nothing take as long as it
likes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.messages.foreign import (
    CallForm,
    ForeignBindRequest,
    ForeignLoaded,
    ForeignLoadRequest,
    ForeignOpenRequest,
    ForeignWorkload,
)
from evaluator_svc.messages.locked import CandidateFailure, DoneReply
from evaluator_svc.pipeline.runner_calls import DrawnInputs
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.finding import headline
from kernel_foundry.domain.foreign import ForeignFile, ForeignForm, ForeignSource
from kernel_foundry.errors import ProcessLostError

_SECONDS: Final = 60.0
"""For its import, and for copies of a workload's inputs."""
_SOURCE: Final = ForeignSource(
    form=ForeignForm.FUNCTION_INTO_OUTPUTS,
    entry_file="empty.py",
    entry_name="empty",
    files=(ForeignFile(path="empty.py", text="def empty(*_):\n    pass\n"),),
)


@contextmanager
def empty_kernel(site: DeviceSite, drawn: DrawnInputs, form: CallForm) -> Iterator[ChildProcess]:
    """Start a process whose calls do nothing, ready for a workload's first timed call.

    Args:
        site: The device.
        drawn: The workload's inputs.
        form: How the candidate is called on them.

    Raises:
        ProcessLostError: it could not be made ready.
        IsolationUnavailableError, BackendUnavailableError: as `DeviceSite.foreign_process`.
    """
    workload = ForeignWorkload(workload=drawn.draw.workload, form=form, state=())
    with site.foreign_process() as process:
        _ask(process, ForeignLoadRequest(source=_SOURCE), ForeignLoaded)
        _ask(process, ForeignBindRequest(workload=workload), DoneReply)
        opening = ForeignOpenRequest(draw=drawn.draw)
        _ask(process, opening, DoneReply, descriptors=drawn.descriptors)
        yield process


def _ask(
    process: ChildProcess, message: object, expected: type, *, descriptors: tuple[int, ...] = ()
) -> None:
    answer = ask_candidate(
        process,
        message,
        expected,
        seconds=_SECONDS,
        doing="making an empty kernel ready",
        descriptors=descriptors,
    )
    if isinstance(answer, CandidateFailure):
        raise lost(answer)


def lost(failure: CandidateFailure) -> ProcessLostError:
    """Return our own failure for what became of an empty kernel."""
    return ProcessLostError(
        f"an empty kernel ended its process: {headline(failure.findings)}",
        cause=failure.outcome.value,
    )

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
from kernel_foundry.errors import DeviceMemoryError, ProcessLostError

_SECONDS: Final = 60.0
"""For its import, and for copies of a workload's inputs."""
_SOURCE: Final = ForeignSource(
    form=ForeignForm.FUNCTION_INTO_OUTPUTS,
    entry_file="empty.py",
    entry_name="empty",
    files=(ForeignFile(path="empty.py", text="def empty(*_):\n    pass\n"),),
)


class EmptyKernel:
    """A process whose calls do nothing."""

    def __init__(self, process: ChildProcess) -> None:
        self.process = process

    def open(self, drawn: DrawnInputs, form: CallForm) -> None:
        """Make it ready for a workload's first timed call.

        Args:
            drawn: The workload's inputs.
            form: How the candidate is called on them.

        Raises:
            DeviceMemoryError: its process ended, while the candidate's may have left it no memory.
        """
        workload = ForeignWorkload(workload=drawn.draw.workload, form=form, state=())
        opening = ForeignOpenRequest(draw=drawn.draw)
        failure = _failure(
            self.process, ForeignBindRequest(workload=workload), DoneReply
        ) or _failure(self.process, opening, DoneReply, descriptors=drawn.descriptors)
        if failure is not None:
            raise lost(failure)


@contextmanager
def empty_kernel(site: DeviceSite) -> Iterator[EmptyKernel]:
    """Start the process of a kernel that does nothing; before a candidate's.

    Raises:
        ProcessLostError: it could not be made ready.
        IsolationUnavailableError, BackendUnavailableError: as `DeviceSite.foreign_process`.
    """
    with site.foreign_process() as process:
        failure = _failure(process, ForeignLoadRequest(source=_SOURCE), ForeignLoaded)
        if failure is not None:
            raise ProcessLostError(
                f"an empty kernel ended its process: {headline(failure.findings)}",
                cause=failure.outcome.value,
            )
        yield EmptyKernel(process)


def lost(failure: CandidateFailure) -> DeviceMemoryError:
    """Return the error of an empty kernel that failed beside a candidate, which may have caused it.

    So it does not count against the device, and is tried again with the device's memory leased.
    """
    return DeviceMemoryError(
        f"an empty kernel ended its process beside a candidate: {headline(failure.findings)}",
        cause=failure.outcome.value,
    )


def _failure(
    process: ChildProcess, message: object, expected: type, *, descriptors: tuple[int, ...] = ()
) -> CandidateFailure | None:
    answer = ask_candidate(
        process,
        message,
        expected,
        seconds=_SECONDS,
        doing="making an empty kernel ready",
        descriptors=descriptors,
    )
    return answer if isinstance(answer, CandidateFailure) else None

"""Questions to a process that holds a candidate: its end, silence or nonsense is an outcome."""

import dataclasses
import signal
from typing import Final, TypeVar

from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.plausible import ImplausibleError, bounded, check_answer
from evaluator_svc.processes.call_stop import CallStoppedError, check_call
from evaluator_svc.processes.channel import (
    ChannelClosedError,
    ChannelFormatError,
    ChannelTimeoutError,
)
from evaluator_svc.processes.conversation import ReceivedMessage
from evaluator_svc.processes.process import ChildProcess, ProcessEnd
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity

T = TypeVar("T")

_END_SECONDS: Final = 1.0
"""From the channel's end to the process's own."""
_HANGS: Final = "look for a loop that never ends or a barrier that not every work-item reaches"
_ILLEGAL_ACCESS: Final = (signal.SIGSEGV, signal.SIGBUS)


def ask_candidate(
    process: ChildProcess,
    message: object,
    *expected: type[T],
    seconds: float,
    doing: str,
    blobs: tuple[bytes, ...] = (),
    descriptors: tuple[int, ...] = (),
) -> T | CandidateFailure:
    """Return the answer, or what became of the candidate instead. Ends a silent process.

    `doing` is for the author: what did not end in time.

    A process that dies while it works on a candidate is the candidate's failure, whatever the
    reason: what happened inside it cannot be told from outside.

    Raises:
        CallStoppedError: nobody waits for the answer; the process is ended.
    """
    received = ask_for_blobs(
        process,
        message,
        *expected,
        seconds=seconds,
        doing=doing,
        blobs=blobs,
        descriptors=descriptors,
    )
    if isinstance(received, CandidateFailure):
        return received
    answer: T = received.message
    return answer


def ask_for_blobs(
    process: ChildProcess,
    message: object,
    *expected: type,
    seconds: float,
    doing: str,
    late_hint: str = _HANGS,
    blobs: tuple[bytes, ...] = (),
    descriptors: tuple[int, ...] = (),
) -> ReceivedMessage | CandidateFailure:
    """As `ask_candidate`, with what travels beside the answer.

    `late_hint` is for the author, too: why it may not have ended in time.
    """
    try:
        received = process.ask(
            message,
            *expected,
            CandidateFailure,
            timeout_seconds=seconds,
            blobs=blobs,
            descriptors=descriptors,
            look=check_call,
        )
        check_answer(message, received.message, blob_count=len(received.blobs))
    except CallStoppedError:
        process.kill()
        raise
    except ChannelTimeoutError:
        process.kill()
        return _timed_out(doing, seconds, late_hint)
    except ChannelClosedError:
        end = process.wait(_END_SECONDS) or process.kill()
        return _crashed(doing, end)
    except (ChannelFormatError, ImplausibleError) as error:
        process.kill()
        return nonsense(doing, str(error))
    if isinstance(received.message, CandidateFailure):
        findings = bounded(received.message.findings)
        return dataclasses.replace(received.message, findings=findings)
    return received


def nonsense(doing: str, why: str) -> CandidateFailure:
    """Return the failure of a candidate whose process sent an impossible answer."""
    text = f"while {doing}, the process sent an impossible answer: {why}"
    failed = _failed(EvaluationOutcome.CRASHED, FindingKind.ILLEGAL_ACCESS, text)
    return dataclasses.replace(failed, findings=bounded(failed.findings))  # it quotes the process


def _timed_out(doing: str, seconds: float, hint: str) -> CandidateFailure:
    finding = Finding(
        kind=FindingKind.TIME_LIMIT,
        severity=Severity.ERROR,
        message=f"{doing} did not end within {seconds:.3g} s",
        evidence=(Figure(name="limit_seconds", value=seconds),),
        hint=hint,
    )
    return CandidateFailure(outcome=EvaluationOutcome.TIMEOUT, findings=(finding,))


def _crashed(doing: str, end: ProcessEnd | None) -> CandidateFailure:
    how = "it ended" if end is None else end.describe()
    if end is not None and end.signal in _ILLEGAL_ACCESS:
        return _failed(
            EvaluationOutcome.CRASHED,
            FindingKind.ILLEGAL_ACCESS,
            f"the process died while {doing}: {how}",
            hint="check every index against the tensor's size, above all in the last work-group",
        )
    return _failed(
        EvaluationOutcome.CRASHED,
        FindingKind.LAUNCH_RESOURCE,
        f"the process died while {doing}: {how}",
        hint="look for recursion, a huge array on a work-item's stack, a division by zero, or more "
        "work-items or local memory than the device has",
    )


def _failed(
    outcome: EvaluationOutcome, kind: FindingKind, message: str, hint: str = ""
) -> CandidateFailure:
    finding = Finding(kind=kind, severity=Severity.ERROR, message=message, hint=hint)
    return CandidateFailure(outcome=outcome, findings=(finding,))

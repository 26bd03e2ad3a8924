"""Exceptions: our own failures. A candidate's failure is an `EvaluationOutcome`, never one.

Each class carries its gRPC code and a stable reason, so that `kernel_foundry.rpc.status` can map it
both ways without parsing a message.
"""

from enum import IntEnum
from typing import ClassVar

from kernel_foundry.printable import printable


class StatusCode(IntEnum):
    """gRPC's status codes, by number."""

    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class KernelFoundryError(Exception):
    """Base of all our failures.

    Args:
        message: What happened, what was expected and what to do. Kept in printable form: it may
            hold words of a candidate, a compiler or a model.
        metadata: Every dynamic value of the message, for machines.
    """

    code: ClassVar[StatusCode] = StatusCode.INTERNAL
    reason: ClassVar[str] = "INTERNAL_ERROR"

    def __init__(self, message: str, **metadata: str) -> None:
        self.message = printable(message)
        super().__init__(self.message)
        self.metadata = metadata

    @property
    def may_pass(self) -> bool:
        """Whether the same call may succeed a moment later."""
        return self.code is StatusCode.UNAVAILABLE


class InvalidArgumentError(KernelFoundryError):
    """A request that is wrong in any state; `metadata["field"]` names the field path."""

    code = StatusCode.INVALID_ARGUMENT
    reason = "INVALID_ARGUMENT"


class TaskInvalidError(KernelFoundryError):
    """A task file that is not a valid task: no `Model`, a reference that raises, an unknown key.

    `metadata["field"]` is "task" where nothing else is said.
    """

    code = StatusCode.INVALID_ARGUMENT
    reason = "TASK_INVALID"

    def __init__(self, message: str, **metadata: str) -> None:
        super().__init__(message, **({"field": "task"} | metadata))


class RunNotFoundError(KernelFoundryError):
    """No run of that name in the store."""

    code = StatusCode.NOT_FOUND
    reason = "RUN_NOT_FOUND"


class RunHeldError(KernelFoundryError):
    """Another loop works on the run; the message says where."""

    code = StatusCode.FAILED_PRECONDITION
    reason = "RUN_HELD"


class EliteNotFoundError(KernelFoundryError):
    """Nothing passed in the run, or it has no passed candidate of that digest."""

    code = StatusCode.NOT_FOUND
    reason = "ELITE_NOT_FOUND"


class ExportRefusedError(KernelFoundryError):
    """An exported file that is wrong or slower than what was judged; the message says where."""

    code = StatusCode.FAILED_PRECONDITION
    reason = "EXPORT_REFUSED"


class AlreadyExistsError(KernelFoundryError):
    """The same id with different content."""

    code = StatusCode.ALREADY_EXISTS
    reason = "ALREADY_EXISTS"


class BackendUnavailableError(KernelFoundryError):
    """Language, device or compiler that this evaluator does not have; carries the reason."""

    code = StatusCode.FAILED_PRECONDITION
    reason = "BACKEND_UNAVAILABLE"


class PackageMissingError(KernelFoundryError):
    """A package is not installed, or without its code; the message says what to install."""

    code = StatusCode.FAILED_PRECONDITION
    reason = "PACKAGE_MISSING"


class IsolationUnavailableError(KernelFoundryError):
    """No sandbox on this host and no explicit flag to go without."""

    code = StatusCode.FAILED_PRECONDITION
    reason = "ISOLATION_UNAVAILABLE"


class TaskRefusedError(KernelFoundryError):
    """Admission refused the task; the message lists why."""

    code = StatusCode.FAILED_PRECONDITION
    reason = "TASK_REFUSED"


class DeviceBusyError(KernelFoundryError):
    """The device's queue is full: a moment later there may be room."""

    code = StatusCode.RESOURCE_EXHAUSTED
    reason = "DEVICE_BUSY"

    @property
    def may_pass(self) -> bool:
        """Return that it may."""
        return True


class DeviceMemoryError(KernelFoundryError):
    """A device has not the memory that judging takes, even for one evaluation alone."""

    code = StatusCode.RESOURCE_EXHAUSTED
    reason = "DEVICE_MEMORY"


class DeviceDriverError(KernelFoundryError):
    """A device's driver refused a call of ours, for another reason than want of memory."""

    reason = "DEVICE_DRIVER"


class FoundryClosedError(KernelFoundryError):
    """A `Foundry` that was closed is used again; connect once more."""

    code = StatusCode.FAILED_PRECONDITION
    reason = "FOUNDRY_CLOSED"


class ShuttingDownError(KernelFoundryError):
    """The service is draining."""

    code = StatusCode.UNAVAILABLE
    reason = "SHUTTING_DOWN"


class ServiceUnavailableError(KernelFoundryError):
    """A service cannot be reached; the message names its target."""

    code = StatusCode.UNAVAILABLE
    reason = "SERVICE_UNAVAILABLE"


class UnauthenticatedError(KernelFoundryError):
    """A call without a token that the service knows and that holds now."""

    code = StatusCode.UNAUTHENTICATED
    reason = "UNAUTHENTICATED"


class PermissionDeniedError(KernelFoundryError):
    """A call whose token has a role that does not allow it."""

    code = StatusCode.PERMISSION_DENIED
    reason = "PERMISSION_DENIED"


class MalformedAnswerError(KernelFoundryError):
    """A service answered with what is no message of the contract, or says what no service can."""

    reason = "MALFORMED_ANSWER"


class ProcessLostError(KernelFoundryError):
    """A process died that is ours alone: a judge, a fork server, or one without a candidate yet.

    One that dies while it works on a candidate is the candidate's failure, and data.
    """

    code = StatusCode.UNAVAILABLE
    reason = "PROCESS_LOST"


class VerdictMismatchError(KernelFoundryError):
    """An evaluator answered with a verdict on another candidate or task than it was asked about."""

    reason = "VERDICT_MISMATCH"


class TooManyWatchersError(KernelFoundryError):
    """As many event streams are open as an archive serves."""

    code = StatusCode.RESOURCE_EXHAUSTED
    reason = "TOO_MANY_WATCHERS"


class QuotaExceededError(KernelFoundryError):
    """A user's quota of a service is used up, see `rpc.quotas`; the message says which."""

    code = StatusCode.RESOURCE_EXHAUSTED
    reason = "QUOTA_EXCEEDED"


class LlmQuotaError(KernelFoundryError):
    """A provider's quota, or the run's own budget, is used up."""

    code = StatusCode.RESOURCE_EXHAUSTED
    reason = "LLM_QUOTA"


class LlmUnavailableError(KernelFoundryError):
    """A provider cannot be reached or answers with its own failure."""

    code = StatusCode.UNAVAILABLE
    reason = "LLM_UNAVAILABLE"


class LlmConfigurationError(KernelFoundryError):
    """An unknown model or a missing key; the message says which variable to set."""

    code = StatusCode.FAILED_PRECONDITION
    reason = "LLM_CONFIGURATION"


class TaskBeyondModelsError(KernelFoundryError):
    """No model that a run may ask can do the task; nothing was spent."""

    code = StatusCode.FAILED_PRECONDITION
    reason = "TASK_BEYOND_MODELS"


class DeadlineExceededError(KernelFoundryError):
    """The call's own deadline, not a kernel's time limit."""

    code = StatusCode.DEADLINE_EXCEEDED
    reason = "DEADLINE_EXCEEDED"


class StoreUnavailableError(KernelFoundryError):
    """The store is locked, full or cannot be opened; no evaluation stored before is lost."""

    code = StatusCode.UNAVAILABLE
    reason = "STORE_UNAVAILABLE"


class CorruptArchiveError(KernelFoundryError):
    """The store cannot be read, or was written by a newer version."""

    code = StatusCode.DATA_LOSS
    reason = "CORRUPT_ARCHIVE"


def first_failure(failures: ExceptionGroup[Exception]) -> Exception:
    """Return the first failure itself: callers catch its type, not a group."""
    inner = failures.exceptions[0]
    return first_failure(inner) if isinstance(inner, ExceptionGroup) else inner

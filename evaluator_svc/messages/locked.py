"""The messages that the supervisor exchanges with every locked process, and their common types."""

from dataclasses import dataclass
from typing import Self

from evaluator_svc.sandbox.confinement import Confinement
from kernel_foundry import errors
from kernel_foundry.domain.admission import NamedScalar, NamedTensor
from kernel_foundry.domain.device import DeviceSpec, IsolationReport
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Configure:
    """First message to a builder, inspector or runner: lock yourself in and open what you need."""

    kind: str
    """Device kind: "cuda", "sycl" or "null"."""
    index: int
    architecture: str
    """Architecture that a builder builds for, such as "sm_90"; "" is the device's own."""
    confinement: Confinement
    outer: tuple[str, ...]
    """Mechanisms that were in force before the process began ("bubblewrap")."""
    unsafe_no_sandbox: bool
    """Whether to go on when nothing locks the process in."""
    node: str = ""
    """The device's own node, when known: no other GPU is to be opened then."""
    counts_devices: bool = False
    """Whether to see the kind's other devices as well, and say how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Answer to `Configure`."""

    process_id: int
    isolation: IsolationReport
    device: DeviceSpec | None
    """None when the device kind cannot be used here, and in builders that open none."""
    device_count: int = 0
    """Devices of the kind that the process sees; 0 in builders that open none."""
    node: str = ""
    """The device's own node, such as "/dev/nvidia3"; "" if it has none of that sort."""
    compiler_version: str = ""
    unavailable: str = ""
    """Why there is no device, in the loader's or driver's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateFailure:
    """The candidate is at fault: an outcome, with its findings."""

    outcome: EvaluationOutcome
    findings: tuple[Finding, ...]
    is_runner_usable: bool = False
    """Whether the runner that says so goes on, as with another configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """One dynamic value of an error's message."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFailure:
    """One of our own errors, on its way to be raised again in the supervisor."""

    reason: str
    """`KernelFoundryError.reason`; empty for a bug."""
    message: str
    details: tuple[Detail, ...] = ()

    @classmethod
    def of(cls, error: errors.KernelFoundryError) -> Self:
        """Return the message that carries `error`."""
        details = tuple(Detail(name=k, value=v) for k, v in error.metadata.items())
        return cls(reason=error.reason, message=error.message, details=details)

    def error(self) -> errors.KernelFoundryError:
        """Return the error as it was raised."""
        kinds = {k.reason: k for k in errors.KernelFoundryError.__subclasses__()}
        kind = kinds.get(self.reason, errors.KernelFoundryError)
        return kind(self.message, **{d.name: d.value for d in self.details})


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneReply:
    """It is done; there is no result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadNames:
    """The names that a plan may use in one workload."""

    workload: str
    tensors: tuple[NamedTensor, ...]
    scalars: tuple[NamedScalar, ...]
    is_optional: bool = False
    """A plan, or a compiler, that refuses it leaves it out, and the others go on."""
    is_spare: bool = False
    """An optional one that is of use only where others that are taken do not show as much."""

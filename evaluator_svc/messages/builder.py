"""What supervisor and builder say to each other."""

from dataclasses import dataclass
from typing import Final

from evaluator_svc.messages.locked import WorkloadNames
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import Setting
from kernel_foundry.domain.finding import Finding
from kernel_foundry.domain.sweep import Configuration

LOG_CHARACTERS: Final = 64 << 10
"""What is kept of a compiler's log, from its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCandidateRequest:
    """Parse and check a candidate."""

    source: KernelSource
    configuration: tuple[Setting, ...]
    device: DeviceSpec
    workloads: tuple[WorkloadNames, ...]
    """Optional ones last, and spare ones behind the other optional ones."""
    library_ops: tuple[str, ...] = ()
    """Library calls that the task allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationUnit:
    """One source to be built: the device code with its macros."""

    source: str
    options: tuple[str, ...]
    kernels: tuple[str, ...]
    """Names of its kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCandidateReply:
    """A candidate that can be built."""

    configuration: tuple[Setting, ...]
    """A value for every TUNE name."""
    units: tuple[TranslationUnit, ...]
    unit_of_workload: tuple[int, ...]
    """For each requested workload, in order, the index of its unit."""
    parse_ms: float
    policy_ms: float
    uses_library: bool = False
    """Whether the plan makes library calls: its runner needs torch."""
    findings: tuple[Finding, ...] = ()
    """What the policy's rules found in source and plan; none refuses."""
    left_out: tuple[str, ...] = ()
    """Optional workloads, by name, that the plan refuses, that are of no use or too many to build
    for; the first unit is said to be theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileRequest:
    """Build a unit of the candidate read last; the builder still has its source."""

    unit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileReply:
    """A built unit.

    Object code and assembly (PTX; empty for SPIR-V) are the message's blobs, absent when the build
    failed.
    """

    succeeded: bool
    log: str
    build_ns: float
    findings: tuple[Finding, ...] = ()
    """What the log says of the candidate, when the build failed."""
    is_meant: bool = True
    """False: a `static_assert` failed, so this configuration was not meant to be built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumerateRequest:
    """Say which configurations a candidate has."""

    source: KernelSource
    device: DeviceSpec
    workloads: tuple[WorkloadNames, ...]
    order: tuple[Configuration, ...]
    """Those to name first, behind the default."""
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumerateReply:
    """Answer to `EnumerateRequest`: what to try, in order, a value for every TUNE name each."""

    configurations: tuple[Configuration, ...]
    uses_library: bool = False
    """Whether the plan makes library calls: its runner needs torch."""

"""The messages between supervisor and builder."""

from dataclasses import dataclass
from typing import Final

from evaluator_svc.messages.locked import WorkloadNames
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import Setting
from kernel_foundry.domain.finding import Finding
from kernel_foundry.domain.sweep import Configuration

LOG_CHARACTERS: Final = 64 << 10
"""Characters of a compiler's log that are kept, from its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCandidateRequest:
    """Parse and check a candidate."""

    source: KernelSource
    configuration: tuple[Setting, ...]
    device: DeviceSpec
    workloads: tuple[WorkloadNames, ...]
    """The required ones first, then the optional ones, of these the spare ones last."""
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
    """Findings of the policy's rules on source and plan; none of them refuses the candidate."""
    left_out: tuple[str, ...] = ()
    """Names of optional workloads that the plan refuses, that are of no use, or that are too many
    to build for. `unit_of_workload` has 0 for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileRequest:
    """Build a unit of the last candidate that was read; the builder still has its source."""

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
    """Findings from the log, if the build failed."""
    is_meant: bool = True
    """False if a `static_assert` failed: this configuration is excluded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumerateRequest:
    """List the configurations of a candidate."""

    source: KernelSource
    device: DeviceSpec
    workloads: tuple[WorkloadNames, ...]
    order: tuple[Configuration, ...]
    """Configurations to list first, after the default."""
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumerateReply:
    """Answer to `EnumerateRequest`: configurations with a value for every TUNE name, in order."""

    configurations: tuple[Configuration, ...]
    uses_library: bool = False
    """Whether the plan makes library calls: its runner needs torch."""

"""Findings: typed diagnoses of a candidate, each with numbers and a hint for the next one."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Severity(StrEnum):
    """How much a finding matters to the next proposal."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class FindingKind(StrEnum):
    """The subject of a finding."""

    EXTRACTION = "extraction"
    PLAN = "plan"
    POLICY = "policy"
    COMPILE_ERROR = "compile_error"
    COMPILE_WARNING = "compile_warning"
    LAUNCH_RESOURCE = "launch_resource"
    ILLEGAL_ACCESS = "illegal_access"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    INPUT_MODIFIED = "input_modified"
    OUTPUT_NOT_WRITTEN = "output_not_written"
    MISMATCH = "mismatch"
    CONSTANT_FACTOR = "constant_factor"
    BORDER_MISMATCH = "border_mismatch"
    TRANSPOSED = "transposed"
    NOT_A_NUMBER = "not_a_number"
    PRECISION = "precision"
    NONDETERMINISM = "nondeterminism"
    IMPOSSIBLE_TIME = "impossible_time"
    TRAFFIC_BOUND = "traffic_bound"
    MEMORY_BOUND = "memory_bound"
    COMPUTE_BOUND = "compute_bound"
    LATENCY_BOUND = "latency_bound"
    LAUNCH_BOUND = "launch_bound"
    REGISTER_PRESSURE = "register_pressure"
    STRIDED_ACCESS = "strided_access"
    NOISY_TIMING = "noisy_timing"
    CACHED_DATA = "cached_data"
    OCCUPANCY = "occupancy"
    SPILL = "spill"
    BANK_CONFLICT = "bank_conflict"
    DATA_RACE = "data_race"
    STALL = "stall"
    THROTTLED = "throttled"
    LIBRARY_SHARE = "library_share"
    DECOY = "decoy"
    TOOL = "tool"
    STRAY_WRITE = "stray_write"
    VALUE_RANGE = "value_range"
    DATA_FLOW = "data_flow"
    SUSPICION = "suspicion"
    ARITHMETIC_ESTIMATE = "arithmetic_estimate"
    BASELINE_DRIFT = "baseline_drift"
    LOADED_HOST = "loaded_host"
    PREPARE_TIME = "prepare_time"
    SCHEDULE = "schedule"
    HOST_LOST = "host_lost"


OF_THE_MOMENT: Final = (FindingKind.BASELINE_DRIFT, FindingKind.LOADED_HOST)
"""Kinds that are about the host while times were taken, and not about the candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One named number behind a finding or a check; the unit is in the name."""

    name: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One diagnosis."""

    kind: FindingKind
    severity: Severity
    message: str
    line: int | None = None
    """1-based line in the device code (compile errors) or the plan (plan errors)."""
    evidence: tuple[Figure, ...] = ()
    hint: str = ""
    """Advice on what to try next; may be empty."""
    rule: str = ""
    """Id of the policy rule that it comes from ("source.include"); empty for other findings."""


_ORDER: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def errors_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings by severity; those of one severity stay in the order of the stages."""
    return tuple(sorted(findings, key=lambda finding: _ORDER.index(finding.severity)))


def blamed(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the causes of a failure: its errors, or all findings if none is an error."""
    ordered = errors_first(findings)
    return tuple(f for f in ordered if f.severity is Severity.ERROR) or ordered


def headline(findings: Iterable[Finding]) -> str:
    """First line of the finding that a failure is put down to; empty when there are none."""
    messages = [finding.message.splitlines() for finding in blamed(findings)[:1]]
    return next((lines[0] for lines in messages if lines), "")

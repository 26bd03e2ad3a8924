"""Domain types as the launch-plan language wants them, and its errors as findings.

Used in builder and runner alike.
"""

import ast
from typing import Final

from evaluator_svc.messages.locked import WorkloadNames
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.finding import Evidence, Finding, FindingKind, Severity
from kernel_foundry.plan.errors import NotMeant, PlanError
from kernel_foundry.plan.names import NameTable, ScalarName, TensorName
from kernel_foundry.plan.values import DeviceLimits


def name_table(workload: WorkloadNames) -> NameTable:
    """Return the name table of a workload, as admission wrote it."""
    tensors = tuple(
        TensorName(name=t.name, dtype=t.dtype, shape=t.shape, role=t.role.value, path=t.path)
        for t in workload.tensors
    )
    scalars = tuple(
        ScalarName(name=s.name, value=ast.literal_eval(s.literal)) for s in workload.scalars
    )
    return NameTable(tensors=tensors, scalars=scalars)


def device_limits(device: DeviceSpec) -> DeviceLimits:
    """Return what a plan may ask about `device`, and what bounds its launches."""
    return DeviceLimits(
        compute_units=device.compute_units,
        sub_group_size=device.sub_group_size,
        shared_bytes=device.shared_bytes,
        max_block=device.max_block,
        memory_bytes=device.memory_bytes,
    )


_NOT_MEANT: Final = Evidence(name="not_meant", value=1.0)


def plan_finding(error: PlanError) -> Finding:
    """Return the finding that says what `error` says."""
    return Finding(
        kind=FindingKind.PLAN,
        severity=Severity.ERROR,
        message=error.message,
        line=error.line,
        evidence=(_NOT_MEANT,) if isinstance(error, NotMeant) else (),
    )


def is_not_meant(finding: Finding) -> bool:
    """Return whether a finding says that a configuration is not meant, by WHERE or `require`."""
    return finding.kind is FindingKind.PLAN and _NOT_MEANT in finding.evidence

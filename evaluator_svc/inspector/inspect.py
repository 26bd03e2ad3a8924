"""One pass over object code: its report. Nothing in the code makes it fail."""

import dataclasses

from evaluator_svc import cubin, ptx, spirv
from evaluator_svc.behaviour import KernelFacts
from evaluator_svc.inspector import from_ptx, from_spirv
from evaluator_svc.messages.object_report import ObjectReport
from evaluator_svc.policy.finding import rule_finding
from evaluator_svc.policy.number_formats import ObjectFacts


def inspect_spirv(code: bytes, kernels: tuple[str, ...] = ()) -> ObjectReport:
    """Return the report on a SPIR-V module; `kernels` must be in it."""
    try:
        module = spirv.parse(code)
    except spirv.SpirvError as error:
        return _unreadable(f"the object code cannot be read: {error.reason}")
    return from_spirv.report(module, kernels)


def inspect_spirv_object(
    code: bytes, assembly: bytes, kernels: tuple[str, ...], *, log: str
) -> ObjectReport:
    """Return the report on a SPIR-V module, which has no assembly; its log is not read."""
    del assembly, log
    return inspect_spirv(code, kernels)


def inspect_cubin(
    code: bytes, assembly: bytes, kernels: tuple[str, ...] = (), *, log: str = ""
) -> ObjectReport:
    """Return the report on a cubin and the PTX that it was made from.

    Args:
        code: The cubin; only what its kernels take is read there.
        assembly: The PTX.
        kernels: Names of kernels that must be in it.
        log: The compiler's, with the assembler's report (`-v`) in it; may be empty.
    """
    report = inspect_ptx(assembly, kernels)
    try:
        return dataclasses.replace(report, resources=cubin.resources(code, log))
    except cubin.CubinError as error:
        return _unreadable(f"the object code cannot be read: {error.reason}")


def inspect_ptx(assembly: bytes, kernels: tuple[str, ...] = ()) -> ObjectReport:
    """Return the report on a PTX text; `kernels` must be in it."""
    try:
        module = ptx.parse(assembly)
    except ptx.PtxError as error:
        return _unreadable(f"the assembly cannot be read: {error.reason}")
    return from_ptx.report(module, kernels)


def _unreadable(message: str) -> ObjectReport:
    return ObjectReport(
        findings=(rule_finding("object.unreadable", message),),
        numbers=ObjectFacts(),
        kernels=KernelFacts(),
    )

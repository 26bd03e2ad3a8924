"""Inspects a PTX module: findings of the rules, number formats, kernel facts."""

from evaluator_svc.inspector.flow_rules import flow_report
from evaluator_svc.inspector.from_ptx.access import accesses
from evaluator_svc.inspector.from_ptx.dataflow import dataflow
from evaluator_svc.inspector.from_ptx.flow import flows
from evaluator_svc.inspector.from_ptx.formats import number_formats
from evaluator_svc.inspector.from_ptx.lower import lower
from evaluator_svc.inspector.from_ptx.rules import findings
from evaluator_svc.inspector.kernel_facts import kernel_facts
from evaluator_svc.inspector.recurrence import recurrences
from evaluator_svc.messages.object_report import ObjectReport
from evaluator_svc.ptx import Module

__all__ = ["report"]


def report(module: Module, kernels: tuple[str, ...]) -> ObjectReport:
    """Return the report on a module; `kernels` must be in it."""
    program = lower(module)
    carried = [recurrences(dataflow(body)) for body in program.functions.values()]
    followed = flow_report(flows(module, program))
    return ObjectReport(
        findings=(*findings(module, program, kernels), *followed.findings),
        updates=followed.updates,
        numbers=number_formats(module),
        kernels=kernel_facts(program, accesses(module, program), carried),
    )

"""What is found in a PTX module: findings of the rules, number formats, kernel facts."""

from evaluator_svc.inspector.from_ptx.facts import kernel_facts
from evaluator_svc.inspector.from_ptx.formats import number_formats
from evaluator_svc.inspector.from_ptx.rules import findings

__all__ = ["findings", "kernel_facts", "number_formats"]

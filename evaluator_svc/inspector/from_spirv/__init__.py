"""What is found in a SPIR-V module: findings of the rules, number formats, kernel facts."""

from evaluator_svc.inspector.from_spirv.facts import kernel_facts
from evaluator_svc.inspector.from_spirv.formats import number_formats
from evaluator_svc.inspector.from_spirv.rules import findings

__all__ = ["findings", "kernel_facts", "number_formats"]

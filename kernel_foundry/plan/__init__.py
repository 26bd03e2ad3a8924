"""The launch-plan language: parse, check, bind (reference: docs/launch-plan.md).

A plan says which kernels run on which tensors, with which grid. Its text is hostile until checked:
it is parsed with `ast`, interpreted here within bounds, and never executed by Python.
"""

from kernel_foundry.plan.allowed_library import NO_LIBRARY, allowed_library_ops, check_library_ops
from kernel_foundry.plan.bind import bind
from kernel_foundry.plan.candidate_text import (
    ExtractionError,
    ExtractionReason,
    render,
    split,
)
from kernel_foundry.plan.configuration import (
    Configuration,
    chosen_values,
    configurations,
    constants,
    default_configuration,
    is_meant,
    settings_of,
    space_size,
)
from kernel_foundry.plan.errors import NotMeant, PlanError, PlanErrorKind
from kernel_foundry.plan.library import LIBRARY_OPS, LibraryOp
from kernel_foundry.plan.macros import translation_unit
from kernel_foundry.plan.names import NameTable, ScalarName, TensorName
from kernel_foundry.plan.parse import parse
from kernel_foundry.plan.prompt import short_reference
from kernel_foundry.plan.sequence import (
    Argument,
    BufferArgument,
    BufferSpec,
    Clear,
    Launch,
    LaunchSequence,
    LibraryCall,
    LocalArgument,
    Operand,
    ScalarArgument,
    Step,
    TensorOperand,
)
from kernel_foundry.plan.signature import KernelParameter, KernelSignature, kernels
from kernel_foundry.plan.source_text import strip_comments
from kernel_foundry.plan.tree import Plan, TuneParameter, TuneValue
from kernel_foundry.plan.values import DeviceLimits

__all__ = [
    "LIBRARY_OPS",
    "NO_LIBRARY",
    "Argument",
    "BufferArgument",
    "BufferSpec",
    "Clear",
    "Configuration",
    "DeviceLimits",
    "ExtractionError",
    "ExtractionReason",
    "KernelParameter",
    "KernelSignature",
    "Launch",
    "LaunchSequence",
    "LibraryCall",
    "LibraryOp",
    "LocalArgument",
    "NameTable",
    "NotMeant",
    "Operand",
    "Plan",
    "PlanError",
    "PlanErrorKind",
    "ScalarArgument",
    "ScalarName",
    "Step",
    "TensorName",
    "TensorOperand",
    "TuneParameter",
    "TuneValue",
    "allowed_library_ops",
    "bind",
    "check_library_ops",
    "chosen_values",
    "configurations",
    "constants",
    "default_configuration",
    "is_meant",
    "kernels",
    "parse",
    "render",
    "settings_of",
    "short_reference",
    "space_size",
    "split",
    "strip_comments",
    "translation_unit",
]

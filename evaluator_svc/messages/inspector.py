"""The messages between supervisor and inspector."""

from dataclasses import dataclass

from evaluator_svc.messages.object_report import ObjectReport
from kernel_foundry.domain.language import Language


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectRequest:
    """Read the object code of one translation unit.

    Object code and assembly (PTX; empty for SPIR-V) are the message's blobs.
    """

    language: Language
    kernels: tuple[str, ...]
    """Names of kernels that must be in it."""
    log: str
    """The compiler's, in which an assembler reports what kernels take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectReply:
    """Answer to `InspectRequest`."""

    report: ObjectReport

"""What the process that tries an exported file is told."""

from dataclasses import dataclass

from evaluator_svc.sandbox.confinement import Confinement
from kernel_foundry.exported_form import FormRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class FormTrial:
    """Try an exported file; its text, which may be longer than a message, is the only blob."""

    request: FormRequest
    """Its own text is empty."""
    confinement: Confinement
    """How the process locks itself in."""

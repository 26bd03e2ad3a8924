"""The structured form of a proposal's task, for models that read data instead of prose.

It travels beside the prompt, in the call's metadata, which LiteLLM hands to custom providers
and never sends over the network.
"""

from dataclasses import dataclass

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.archive import Selection
from kernel_foundry.domain.language import Language

METADATA_KEY = "kernel_foundry_assignment"
"""Name of the metadata entry; its value is JSON by `kernel_foundry.domain.plain`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """All that a structured model needs for one proposal."""

    admission: Admission
    selection: Selection
    language: Language
    seed: int
    library_ops: tuple[str, ...] = ()
    """Library calls that the task allows, by their names in plans."""

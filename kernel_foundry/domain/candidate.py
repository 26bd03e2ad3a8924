"""Candidates: kernel source and launch plan, with where they came from.

What the hardware said of one is in `evaluation.py`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.language import Language

LONGEST_CANDIDATE: Final = 1 << 20
"""Most characters of a candidate as Markdown, and of what is kept of a reply without one."""


class Operator(StrEnum):
    """How a proposal is made from what is known."""

    SEED = "seed"
    MUTATE = "mutate"
    COMBINE = "combine"
    REPAIR = "repair"
    TEMPLATISE = "templatise"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSource:
    """Device code plus its launch plan."""

    language: Language
    device_code: str
    """Text of the block in the candidate's language."""
    plan: str
    """Text of the `python` block."""

    @property
    def digest(self) -> str:
        """SHA-256 hex digest of language, device code and plan."""
        return content_digest(self.language.value, self.device_code, self.plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A proposed kernel and its provenance."""

    source: KernelSource
    parents: tuple[str, ...] = ()
    """Digests of the candidates it was made from; empty for a seed."""
    operator: Operator = Operator.SEED
    generation: int = 0
    """One more than the largest generation among its parents."""
    prompt_digest: str = ""
    """Digest of the prompt that it answers; empty when written by hand."""
    model: str = ""
    """Name of the model that wrote it; empty when written by hand."""

    @property
    def digest(self) -> str:
        """Identity of the candidate: that of its source, wherever it came from."""
        return self.source.digest

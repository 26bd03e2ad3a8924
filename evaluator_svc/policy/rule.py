"""A policy rule as data, for messages, documents and tests.

The rules are in `*_rules.py`; `source.py`, `plan.py`, the inspector and the pipeline match them.
"""

from dataclasses import dataclass
from enum import StrEnum

from evaluator_svc.languages import backend_of
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language


class RuleClass(StrEnum):
    """The effect of a rule on a candidate that breaks it."""

    REJECT = "reject"
    """It goes no further: REJECTED, or WRONG_RESULT where its outputs are at fault."""
    SUSPECT = "suspect"
    """It is evaluated a second time on fresh inputs. If that is suspect too, trust is `suspect`."""
    NOTE = "note"
    """It is reported, and nothing else happens."""


class Subject(StrEnum):
    """The subject that a rule reads."""

    SOURCE = "source"
    """Device code as the compiler's first phases see it."""
    PLAN = "plan"
    """The parsed launch plan."""
    OBJECT = "object"
    """Object code: SPIR-V, or PTX."""
    TIMING = "timing"
    """The times of calls."""
    NUMBERS = "numbers"
    """The outputs of calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """One rule."""

    id: str
    """Subject and name: "source.include"; stored with findings, so it never changes."""
    subject: Subject
    is_for_every_language: bool = True
    """Else it is for the languages whose backend names it: `LanguageBackend.rules`."""
    rule_class: RuleClass
    refusal: FindingKind = FindingKind.POLICY
    """Kind of the finding where the class is reject."""
    catches: str
    """The pattern that it finds, in one line."""
    why: str
    """The harm that it could do."""
    honest_use: str
    """Honest code that looks alike and passes."""

    def is_for(self, language: Language) -> bool:
        """Return whether it applies to device code and object code of a language."""
        return self.is_for_every_language or self.id in backend_of(language).rules

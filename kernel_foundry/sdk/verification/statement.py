"""Statements of a verification: one for each part of a record that was checked."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Agreement(StrEnum):
    """Whether one part of a record agrees."""

    AGREES = "agrees"
    DIFFERS = "differs"
    INCONCLUSIVE = "inconclusive"
    """It was measured, and the interval is too wide to agree or to differ."""
    NOT_COMPARABLE = "not_comparable"
    """It could not be looked at here, or says nothing; the note says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The result for one part of a record."""

    subject: str
    """Such as "digest", "outcome" or "time of default"."""
    agreement: Agreement
    recorded: str = ""
    """What the record says, for people."""
    found: str = ""
    """What was found now."""
    note: str = ""
    """What that means; empty when it is plain."""


CODE_OF_FILE: Final = Statement(
    subject="code of the file",
    agreement=Agreement.NOT_COMPARABLE,
    note="not checked: what this file runs need not be what its record is on. `kfoundry export` "
    "writes it anew from the run",
)
"""Of a record that is found in a Python file, which is read and not run."""


def holds(statements: tuple[Statement, ...]) -> bool:
    """Return whether nothing differs."""
    return all(s.agreement is not Agreement.DIFFERS for s in statements)

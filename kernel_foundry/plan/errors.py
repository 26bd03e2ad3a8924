"""The errors of launch plans.

A plan is written by a model, so these exceptions are caught at the stage border and become an
outcome. The evaluator's outcomes are in `domain/evaluation.py`.
"""

from __future__ import annotations

import enum


class PlanErrorKind(enum.StrEnum):
    """Which rule of the launch-plan language was broken."""

    SYNTAX = "syntax"
    """The text is no Python at all, or a quoted expression in it is none."""
    POLICY = "policy"
    """Valid Python, but a construct that the launch-plan language does not have."""
    BIND = "bind"
    """The plan does not fit the kernels, the tensors, the device or the values at hand."""
    ASSERT = "assert"
    """A claim that the plan itself makes is false."""
    LIMIT = "limit"
    """Too large, too deep, too many steps, launches or bytes."""
    NOT_MEANT = "not_meant"
    """`require(...)` or `WHERE` says that this configuration or workload is not meant."""


class PlanError(Exception):
    """A refusal of a plan: says what was found, in which line, and what is allowed instead.

    Args:
        message: The refusal, without the line.
        kind: Which rule was broken.
        line: 1-based line in the plan text; None when the fault has no line there.
    """

    def __init__(self, message: str, *, kind: PlanErrorKind, line: int | None = None) -> None:
        super().__init__(message, kind, line)
        self.message = message
        self.kind = kind
        self.line = line

    def __str__(self) -> str:
        """Return the message, led by its line when it has one."""
        return self.message if self.line is None else f"line {self.line}: {self.message}"

    def at(self, line: int) -> PlanError:
        """Return the same refusal with a line, unless it has one already."""
        if self.line is not None:
            return self
        return type(self)(self.message, kind=self.kind, line=line)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by fields, so that the error crosses process borders whole."""
        return (_rebuild, (type(self), self.message, self.kind, self.line))


class NotMeant(PlanError):  # noqa: N818  not a fault of the plan: a sweep skips, nobody failed
    """The configuration or workload is not meant: skipped in a sweep, an outcome elsewhere.

    Args:
        message: Which condition is false.
        kind: Always `PlanErrorKind.NOT_MEANT`.
        line: 1-based line of the condition in the plan text.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: PlanErrorKind = PlanErrorKind.NOT_MEANT,
        line: int | None = None,
    ) -> None:
        super().__init__(message, kind=kind, line=line)


def _rebuild(
    cls: type[PlanError], message: str, kind: PlanErrorKind, line: int | None
) -> PlanError:
    return cls(message, kind=kind, line=line)


def syntax_error(message: str, line: int | None = None) -> PlanError:
    """Return the error for text that is not Python."""
    return PlanError(message, kind=PlanErrorKind.SYNTAX, line=line)


def policy_error(message: str, line: int | None = None) -> PlanError:
    """Return the error for a construct that the language does not have."""
    return PlanError(message, kind=PlanErrorKind.POLICY, line=line)


def bind_error(message: str, line: int | None = None) -> PlanError:
    """Return the error for a plan that does not fit its kernels, tensors or values."""
    return PlanError(message, kind=PlanErrorKind.BIND, line=line)


def limit_error(message: str, line: int | None = None) -> PlanError:
    """Return the error for a plan that is too large or runs too long."""
    return PlanError(message, kind=PlanErrorKind.LIMIT, line=line)


def short(text: str, limit: int = 60) -> str:
    """Return `text`, cut so that a message stays readable."""
    return text if len(text) <= limit else text[: limit - 1] + "…"

"""Checks of single numbers, lengths and counts against what is allowed; they name the field."""

import math

from kernel_foundry.errors import InvalidArgumentError


def check_number(field: str, value: float, least: float, most: float, unit: str = "") -> None:
    """Refuse a value outside `least` to `most`, or that is not finite.

    Raises:
        InvalidArgumentError: it says which field and what is allowed, as do the checks below.
    """
    if not (math.isfinite(value) and least <= value <= most):
        raise out_of_bounds(field, f"is {value}, expected {least:g} to {most:g} {unit}".rstrip())


def check_length(field: str, text: str, most: int) -> None:
    """Refuse a text of more than `most` characters; raises as `check_number`."""
    if len(text) > most:
        raise out_of_bounds(field, f"{len(text)} characters, expected at most {most}")


def check_count(field: str, count: int, most: int) -> None:
    """Refuse more than `most` of something; raises as `check_number`."""
    if count > most:
        raise out_of_bounds(field, f"{count} of them, expected at most {most}")


def check_limit(limit: int) -> None:
    """Refuse to list less than one of something; raises as `check_number`."""
    if limit < 1:
        raise InvalidArgumentError(f"limit is {limit}, expected >= 1", field="limit")


def out_of_bounds(field: str, what: str) -> InvalidArgumentError:
    """Return the error that says what is wrong with `field`."""
    return InvalidArgumentError(f"{field}: {what}", field=field)

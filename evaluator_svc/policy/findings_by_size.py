"""Findings on object code that matter only to tasks with large tensors."""

from collections.abc import Iterable
from typing import Final

from kernel_foundry.domain.finding import Finding

SHORT_PLACE: Final = "object.short_place"
"""Id of the rule on places in memory that are computed in 32 bits."""

LEAST_FOR_SHORT_PLACES: Final = 1 << 28
"""Elements of a task's largest tensor from which the rule is reported: an eighth of those at which
such places are wrong."""


def fitting_sizes(findings: Iterable[Finding], largest_element_count: int) -> tuple[Finding, ...]:
    """Return the findings without those that no tensor of the task is large enough for.

    Args:
        findings: Of the object code.
        largest_element_count: Of the largest tensor in any workload of the task.
    """
    is_large = largest_element_count >= LEAST_FOR_SHORT_PLACES
    return tuple(f for f in findings if is_large or f.rule != SHORT_PLACE)

"""The order of work-items in a run whose work-groups are in reverse order."""

from enum import StrEnum


class ItemOrder(StrEnum):
    """The order of the work-items of a group."""

    REVERSED = "reversed"
    SUB_GROUPS = "sub_groups"
    """Sub-groups are reversed as wholes, if their size divides the first side of a group."""
    KEPT = "kept"

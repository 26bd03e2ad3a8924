"""What a run in reverse order does with the work-items of a group."""

from enum import StrEnum


class ItemOrder(StrEnum):
    """What becomes of the work-items of a group."""

    REVERSED = "reversed"
    SUB_GROUPS = "sub_groups"
    """Sub-groups are reversed as wholes, where they divide the first side of a group."""
    KEPT = "kept"

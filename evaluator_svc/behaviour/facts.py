"""Counted facts about kernels, from which levels and diagnoses follow.

The same facts for every language; `evaluator_svc.inspector` finds them in object code.
"""

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """Who takes part in a barrier or a group operation."""

    WORK_ITEM = "work_item"
    SUB_GROUP = "sub_group"
    WORK_GROUP = "work_group"
    DEVICE = "device"
    """Several work-groups, up to all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFacts:
    """Facts about all kernels of a candidate together.

    Access weights count an access eight times as often for each loop around it.
    """

    contiguous_weight: float = 0.0
    """Global accesses where neighbours touch neighbouring data."""
    strided_weight: float = 0.0
    """Global accesses where neighbours touch data that lie apart."""
    strided_line: int | None = None
    """Line of the source of the heaviest strided access; None: there is none, or it is not told."""
    uniform_weight: float = 0.0
    """Global accesses where neighbours touch the same data."""
    vector_weight: float = 0.0
    """Global accesses that move several numbers at once."""
    pass_count: int = 0
    """Loops over global data, at least one for each kernel."""
    stages_local: bool = False
    """Global data is put into local memory and read from there."""
    shares_local: bool = False
    """Work-items read local memory that others wrote."""
    moves_ahead: bool = False
    """Asynchronous copies or prefetches."""
    has_register_tile: bool = False
    has_matrix_product: bool = False
    is_online: bool = False
    reduces_in_group: bool = False
    """Reductions, scans or exchanges over a sub-group or work-group."""
    group_scopes: tuple[Scope, ...] = ()
    """Scopes of the group operations, each once."""
    barrier_scopes: tuple[Scope, ...] = ()
    """Scopes of the barriers, each once."""
    has_global_atomics: bool = False
    has_local_atomics: bool = False
    may_wait: bool = False
    """A loop may end by what others write; in SYCL."""

    @property
    def strided_share(self) -> float:
        """Share of strided accesses among all global ones, in [0, 1]."""
        total = self.contiguous_weight + self.strided_weight + self.uniform_weight
        return self.strided_weight / total if total else 0.0

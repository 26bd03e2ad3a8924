"""When a generated workload that was made for some plans alone is of use to one of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kernel_foundry.domain.admission import NamedTensor

_TIMES: Final = 3
"""How many times longer an axis is than in all others, for a workload to show more than they."""

_Tensors = Sequence[NamedTensor]


def is_spare_of_use(
    spare: _Tensors, taken: Sequence[_Tensors], own: Sequence[_Tensors] = ()
) -> bool:
    """Return whether a spare workload shows what others do not.

    Where a plan takes no other generated one, or none with an axis nearly as long.

    Args:
        spare: Its tensors.
        taken: Those of each generated workload that the plan takes.
        own: Those of the task's own.
    """
    if not taken:
        return True
    longest = _longest(tensor for tensors in (*own, *taken) for tensor in tensors)
    return any(size >= _TIMES * longest[place] for place, size in _longest(spare).items())


def _longest(tensors: Iterable[NamedTensor]) -> Mapping[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for tensor in tensors:
        for axis, size in enumerate(tensor.shape):
            found[tensor.name, axis] = max(found.get((tensor.name, axis), 1), size)
    return found

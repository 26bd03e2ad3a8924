"""From which inputs of a reference the tensors follow that its operators make."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from evaluator_svc.judge.reference.indexed_values import ALONE, BESIDE
from evaluator_svc.judge.reference.operators import operator_name, written_arguments


class FollowedInputs:
    """Which tensors follow from which inputs by their numbers; truth values and places do not.

    Args:
        inputs: Those that the reference runs on.
    """

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        self._sources: Any = WeakTensorKeyDictionary()
        for index, tensor in enumerate(inputs):
            self._sources[tensor] = frozenset({index})

    def sources_of(self, value: Any) -> frozenset[int]:
        """Return the inputs, by index, that the tensors in `value` follow from."""
        none = frozenset[int]()
        return none.union(*(self._sources.get(tensor, none) for tensor in tensors_in(value)))

    def follow(
        self, func: Any, given: Mapping[str, Any], result: Any, sources: frozenset[int]
    ) -> None:
        """Note what an operator made of `sources`, and what it wrote to.

        Args:
            func: The `OpOverload`.
            given: Its arguments by name.
            result: What it returned.
            sources: The inputs that its arguments follow from.
        """
        name = operator_name(func)
        if name in ALONE:
            return
        results = result[:1] if name in BESIDE and isinstance(result, tuple) else result
        changed = tensors_in(written_arguments(func, given))
        # Of a view that is written to, the whole is looked at later.
        changed += [tensor._base for tensor in changed if tensor._base is not None]
        for tensor in (*tensors_in(results), *changed):
            # A truth value has no size.
            if tensor.dtype is not torch.bool:
                self._sources[tensor] = self._sources.get(tensor, frozenset[int]()) | sources


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Return the tensors of a tree of values, in order."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]

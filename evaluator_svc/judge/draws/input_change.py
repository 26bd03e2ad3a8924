"""Inputs changed in a few secret places, to see that outputs follow.

Elements are replaced by those of another draw at the same places, so that every value is one that
the reference's inputs can have. A tensor with a structure that single elements would break
(symmetric, sorted, a permutation, shares of a whole) stays as it is: a kernel may rely on it. What
each row holds twice changes at both places.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.tensors.equal_parts import EqualParts, both_places
from evaluator_svc.judge.tensors.structure import structures

_SHARE: Final = 64
"""One in so many elements of a tensor is replaced."""
_RUN: Final = 32
"""Neighbours that are replaced together."""
_FEW: Final = 16
"""Elements that are replaced if only a few are."""
_MOST: Final = 1 << 22
"""Elements that are replaced in any tensor, or pairs of equal ones; their places take memory,
too."""
_INTEGERS: Final = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""By bytes of an element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputChange:
    """What is changed in one input set."""

    other_seed: int
    """Where the new values come from; also decides the places."""
    is_sparse: bool
    """A few single elements instead of runs."""
    with_parameters: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a tensor changes, and what it holds there."""

    indices: torch.Tensor
    """Into the flat tensor."""
    bits: torch.Tensor
    """The elements, as integers of their size."""


def choose_places(input_set: InputSet, change: InputChange) -> tuple[Places | None, ...]:
    """Return where each pristine tensor changes, with its present elements; None: nowhere."""
    generator = torch.Generator(input_set.module.device).manual_seed(change.other_seed)
    count = len(input_set.inputs)
    tensors = input_set.pristine if change.with_parameters else input_set.inputs
    chosen = [_chosen(tensor, generator, is_sparse=change.is_sparse) for tensor in tensors]
    return (*chosen, *(None for _ in range(len(input_set.state) + count - len(chosen))))


def replacements(places: Sequence[Places | None], other: InputSet) -> tuple[Places | None, ...]:
    """Return `places` with the elements of `other`; None where all of them are the same."""
    pairs = zip(places, other.pristine, strict=True)
    return tuple(None if at is None else _replacement(at, tensor) for at, tensor in pairs)


def changed(
    input_set: InputSet, patches: Sequence[Places | None], in_place: Sequence[bool] = ()
) -> InputSet:
    """Return a copy of `input_set` with other elements; tensors unchanged are shared.

    Args:
        input_set: Before the change.
        patches: Other elements of each pristine tensor.
        in_place: Which of them may be changed themselves; empty: none.
    """
    own = in_place or (False,) * len(patches)
    tensors = [
        tensor if places is None else _patched(tensor, places, in_place=is_own)
        for tensor, places, is_own in zip(input_set.pristine, patches, own, strict=True)
    ]
    count = len(input_set.inputs)
    return input_set.with_values(
        tensors[:count], dict(zip(input_set.state, tensors[count:], strict=True))
    )


def patch(tensor: torch.Tensor, places: Places) -> None:
    """Put other elements into a contiguous tensor, in place."""
    _bits(tensor)[places.indices] = places.bits


def _chosen(tensor: torch.Tensor, generator: torch.Generator, *, is_sparse: bool) -> Places | None:
    bound = structures(tensor) - {"labels"}
    parts = next((p for p in EqualParts if bound == {p.value}), None)
    if not tensor.numel() or (bound and parts is None):
        return None
    if parts is None:
        indices = _places(tensor.numel(), generator, is_sparse=is_sparse)
    else:
        indices = _places(tensor.numel() // 2, generator, is_sparse=is_sparse)
        indices = both_places(indices, tensor.shape[-1], parts)
    return Places(indices=indices, bits=_bits(tensor)[indices])


def _replacement(places: Places, tensor: torch.Tensor) -> Places | None:
    # Of a reference that draws shapes at random this one may be shorter.
    if int(places.indices.max()) >= tensor.numel():
        return None
    bits = _bits(tensor)[places.indices]
    return None if torch.equal(bits, places.bits) else Places(indices=places.indices, bits=bits)


def _patched(tensor: torch.Tensor, places: Places, *, in_place: bool) -> torch.Tensor:
    is_own = in_place and tensor.is_contiguous()
    result = tensor if is_own else tensor.clone(memory_format=torch.contiguous_format)
    patch(result, places)
    return result


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements as integers of their size, flat: every format can be indexed so."""
    return tensor.reshape(-1).view(_INTEGERS[tensor.element_size()])


def _places(count: int, generator: torch.Generator, *, is_sparse: bool) -> torch.Tensor:
    """Return flat indices below `count`."""
    device = generator.device
    if is_sparse or count < _SHARE:
        size = min(_FEW, -(-count // 2))
        return torch.randint(count, (size,), generator=generator, device=device)
    run = min(_RUN, count // _SHARE)
    runs = min(-(-count // (_SHARE * run)), _MOST // run)
    starts = torch.randint(count - run + 1, (runs,), generator=generator, device=device)
    return (starts[:, None] + torch.arange(run, device=device)).reshape(-1)

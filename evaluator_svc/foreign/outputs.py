"""What a candidate returned: plain tensors of their own, or it is at fault."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import torch
from torch import nn

from evaluator_svc.messages.draw import TensorSlot
from evaluator_svc.runner.faults import CandidateFaultError, fault
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind

Region = tuple[int, int, str]
"""Start, end and owner of memory."""

Orders = tuple[tuple[int, ...], ...]
"""Axes of each output, the one with the largest step in memory first."""

_PLAIN: Final = (torch.Tensor, nn.Parameter)
_contiguous, _clone = torch.Tensor.contiguous, torch.Tensor.clone
"""As they were before any candidate, and never a tensor's own attributes."""


def plain_outputs(
    result: Any, slots: Sequence[TensorSlot], device: torch.device
) -> list[torch.Tensor]:
    """Return the tensors of a result, which have to fit the outputs.

    Raises:
        CandidateFaultError: one is no plain tensor, or of another shape or type.
    """
    found = list(_flattened(result))
    if len(found) != len(slots):
        raise _mismatch(f"{len(found)} outputs, expected {len(slots)}")
    for tensor, slot in zip(found, slots, strict=True):
        if tensor.layout is not torch.strided or tensor.device.type != device.type:
            raise _mismatch(f"{slot.name} is {tensor.layout} on {tensor.device}")
        dtype, shape = str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)
        if (dtype, shape) != (slot.dtype, slot.shape):
            raise _mismatch(f"{slot.name} is {dtype} {shape}, expected {slot.dtype} {slot.shape}")
    return [_resolved(tensor) for tensor in found]


def contiguous(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Return tensors with their elements in the order of their shapes, copied where needed."""
    return [_contiguous(tensor) for tensor in tensors]


def dense(tensors: Iterable[torch.Tensor]) -> tuple[list[torch.Tensor], Orders]:
    """Return tensors without gaps, and the order of each one's axes in memory.

    A tensor with gaps or with elements that share a place is copied, in the order of its axes.
    """
    found = [_dense(tensor) for tensor in tensors]
    return [tensor for tensor, _ in found], tuple(order for _, order in found)


def memory_of(tensor: torch.Tensor, owner: str = "") -> Region:
    """Return where a tensor's whole storage lies."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes(), owner


def require_own_memory(result: Any, taken: Sequence[Region]) -> None:
    """Refuse outputs that lie in memory of something else.

    Raises:
        CandidateFaultError: one does.
    """
    for tensor in _flattened(result):
        start, end, _ = memory_of(tensor)
        for other_start, other_end, owner in taken:
            if start < other_end and other_start < end:
                raise fault(
                    EvaluationOutcome.REJECTED,
                    FindingKind.POLICY,
                    f"an output lies in the memory of {owner}",
                    hint="return a new tensor",
                )


def storages(result: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a result that was looked at before."""
    yield from _flattened(result)


def _resolved(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose bytes are its values, without a conjugation or sign to be applied."""
    return torch.resolve_neg(torch.resolve_conj(tensor))


def _dense(tensor: torch.Tensor) -> tuple[torch.Tensor, tuple[int, ...]]:
    order = _order(tensor)
    if order is None:
        tensor = _clone(tensor, memory_format=torch.preserve_format)
        order = _order(tensor)
    if order is None:
        return _contiguous(tensor), tuple(range(tensor.dim()))
    return tensor, order


def _order(tensor: torch.Tensor) -> tuple[int, ...] | None:
    """Return the order of a tensor's axes in memory; None where it has gaps or shared places."""
    axes = range(tensor.dim())
    if tensor.is_contiguous():
        return tuple(axes)
    order = sorted(axes, key=lambda axis: tensor.stride(axis) * (tensor.shape[axis] > 1))
    step = 1
    for axis in order:
        if tensor.shape[axis] > 1:
            if tensor.stride(axis) != step:
                return None
            step *= tensor.shape[axis]
    return tuple(reversed(order))


def _flattened(value: Any) -> Iterator[torch.Tensor]:
    if type(value) in _PLAIN:
        if vars(value):
            names = ", ".join(sorted(vars(value)))
            raise _not_plain(f"a tensor with attributes of its own ({names})")
        yield value
    elif type(value) in (list, tuple) and value:
        for item in value:
            yield from _flattened(item)
    else:
        raise _not_plain(f"a {type(value).__module__}.{type(value).__qualname__}")


def _not_plain(what: str) -> CandidateFaultError:
    return fault(
        EvaluationOutcome.REJECTED,
        FindingKind.POLICY,
        f"the result is {what}: what it does when it is read would not be timed",
        hint="return a torch.Tensor, or a tuple or list of them",
    )


def _mismatch(message: str) -> CandidateFaultError:
    return fault(EvaluationOutcome.WRONG_RESULT, FindingKind.MISMATCH, message)

"""What a candidate returned: plain tensors of their own, or it is at fault."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import torch
from torch import nn

from evaluator_svc.messages.draw import TensorSlot
from evaluator_svc.runner.faults import CandidateFaultError, fault
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind

Region = tuple[int, int, str]
"""Start, end and owner of memory."""

_PLAIN: Final = (torch.Tensor, nn.Parameter)
_contiguous = torch.Tensor.contiguous
"""As it was before any candidate, and never a tensor's own attribute."""


def plain_outputs(
    result: Any, slots: Sequence[TensorSlot], device: torch.device
) -> list[torch.Tensor]:
    """Return the tensors of a result, contiguous, which have to fit the outputs.

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
    return [_contiguous(tensor) for tensor in found]


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

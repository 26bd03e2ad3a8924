"""The kernels as functions of tensors, for programs that call no module."""

from collections.abc import Sequence
from typing import Any

import torch

from kernel_foundry.sdk.export.runtime.binding import NAMES, bound_call
from kernel_foundry.sdk.export.runtime.bound_call import BoundCall
from kernel_foundry.sdk.export.runtime.counts import counts
from kernel_foundry.sdk.export.runtime.plan import NoKernelError
from kernel_foundry.sdk.export.runtime.reference import flat, kind_for, rest_of, with_weights
from kernel_foundry.sdk.export.runtime.task import INPUTS, OUTPUTS, TASK


def run(*values: Any) -> None:
    """Compute the outputs of inputs and weights, given after them, in place."""
    cut = len(values) - len(OUTPUTS)
    _compute(values[:cut], list(values[cut:]))


def custom_kernel(data: Any) -> Any:
    """Return the outputs of a tuple of inputs and weights; those that follow are written."""
    values = [data] if isinstance(data, torch.Tensor) else list(data)
    has_outputs = len(flat(values)[0]) == len(NAMES) + len(OUTPUTS)
    cut = len(values) - len(OUTPUTS) if has_outputs else len(values)
    results = _compute(values[:cut], values[cut:] if has_outputs else None)
    return results[0] if len(OUTPUTS) == 1 else tuple(results)


@torch.no_grad()
def _compute(values: Sequence[Any], outputs: list[torch.Tensor] | None) -> list[torch.Tensor]:
    """Outputs of forward's arguments, then of the weights.

    By kernels where they were judged, else by the reference.
    """
    cut = len(values) - len(NAMES) + len(INPUTS)
    inputs, rest = flat(values[:cut])
    tensors = [*inputs, *flat(values[cut:])[0]]
    if len(tensors) != len(NAMES):
        raise TypeError(f"{TASK} takes {len(NAMES)} tensors, not {len(tensors)}")
    kind = kind_for(tuple(tuple(t.shape) for t in tensors))
    if rest != rest_of(kind):
        raise ValueError(f"{TASK} was judged with {rest_of(kind)}, not with {rest}")
    try:
        call = bound_call(kind, tensors)
        if outputs is not None and _can_write(call, tensors, outputs):
            results = outputs
        else:
            results = call.new_results()
        call.run(tensors, results)
        counts.add_kernel()
    except NoKernelError as error:
        counts.reference(str(error))
        results = with_weights(kind, tensors[: len(INPUTS)], tensors[len(INPUTS) :])
    return results if outputs is None or outputs is results else _copied(results, outputs)


def _can_write(call: BoundCall, tensors: list[torch.Tensor], outputs: list[torch.Tensor]) -> bool:
    """Whether kernels can write outputs where they are: nothing else is there, and they fit."""
    taken = {t.untyped_storage().data_ptr() for t in tensors}
    return all(
        (tuple(o.shape), o.dtype) == expected
        and o.device == tensors[0].device
        and o.is_contiguous()
        and o.data_ptr() % call.alignment == 0
        and o.untyped_storage().data_ptr() not in taken
        for o, expected in zip(outputs, call.outputs, strict=True)
    )


def _copied(results: list[torch.Tensor], outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    for result, output in zip(results, outputs, strict=True):
        if (result.shape, result.dtype) != (output.shape, output.dtype):
            found = f"{output.dtype} of {tuple(output.shape)}"
            raise ValueError(f"an output is {found}, not {result.dtype} of {tuple(result.shape)}")
        output.copy_(result)
    return outputs

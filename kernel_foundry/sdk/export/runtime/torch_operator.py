"""The operator in `torch.ops`: what torch.compile, torch.export and autograd see of a call.

Its gradients are those of a found backward pass where that was judged, else the reference's.
"""

import contextlib
import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import torch

from kernel_foundry.sdk.export.runtime.binding import (
    DEVICE,
    NAMES,
    bound_backward,
    bound_call,
)
from kernel_foundry.sdk.export.runtime.counts import backward_counts, counts
from kernel_foundry.sdk.export.runtime.plan import NoKernelError
from kernel_foundry.sdk.export.runtime.reference import Sizes, with_weights
from kernel_foundry.sdk.export.runtime.task import (
    BACKWARD,
    DIGEST,
    GRADIENTS,
    INPUTS,
    NAMESPACE,
    OUTPUTS,
    TASK,
)


def _operator(*arguments: Any) -> Any:
    kind, tensors = kind_of(arguments[-1]), list(arguments[:-1])
    with _without_autocast():
        try:
            results = bound_call(kind, tensors).results(tensors)
            counts.add_kernel()
        except NoKernelError as error:
            counts.reference(str(error))
            own = {t.untyped_storage().data_ptr() for t in tensors}
            results = [r.contiguous() for r in _of_reference(kind, tensors)]
            results = [r.clone() if r.untyped_storage().data_ptr() in own else r for r in results]
    return results[0] if len(OUTPUTS) == 1 else results


def _shapes(*arguments: Any) -> Any:
    with _without_autocast():
        results = _of_reference(kind_of(arguments[-1]), list(arguments[:-1]))
    made = [torch.empty(r.shape, dtype=r.dtype, device=r.device) for r in results]
    return made[0] if len(OUTPUTS) == 1 else made


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs[:-1])
    ctx.kind = inputs[-1]


def _backward(ctx: Any, *grads: Any) -> Any:
    given = grads[0] if isinstance(grads[0], list | tuple) else [grads[0]]
    wanted = list(ctx.needs_input_grad[:-1])
    found = iter(_gradient(list(ctx.saved_tensors), list(given), wanted, ctx.kind))
    return (*[next(found) if is_wanted else None for is_wanted in wanted], None)


def _gradients(
    tensors: list[torch.Tensor], grads: list[torch.Tensor | None], wanted: list[bool], kind: str
) -> list[torch.Tensor]:
    # That of an embedding's rows may be sparse.
    grads = [g if g is None or g.layout is torch.strided else g.to_dense() for g in grads]
    with _without_autocast():
        if not BACKWARD:
            return _by_reference(tensors, grads, wanted, kind)
        try:
            found = _by_kernels(tensors, grads, wanted, kind)
            backward_counts.add_kernel()
        except NoKernelError as error:
            backward_counts.reference(str(error))
            found = _by_reference(tensors, grads, wanted, kind)
    return found


def _by_kernels(
    tensors: list[torch.Tensor], grads: list[torch.Tensor | None], wanted: list[bool], kind: str
) -> list[torch.Tensor]:
    """Gradients by what is wanted, of the found backward pass, which computes all of them."""
    places = {of: place for place, (_, of) in enumerate(GRADIENTS)}
    asked = [name for name, is_wanted in zip(NAMES, wanted, strict=True) if is_wanted]
    for name in asked:
        if name not in places:
            raise NoKernelError(f"no kernels give the gradient by {name}")
    given = [*tensors]
    for name, grad in zip(OUTPUTS, grads, strict=True):
        if grad is None:
            raise NoKernelError(f"the gradient of {name} is not given")
        # That of a sum is one number at many places, and that of a part begins anywhere.
        whole = grad.contiguous()
        given.append(whole.clone() if whole.storage_offset() else whole)
    results = bound_backward(kind_of(kind), given).results(given)
    return [results[places[name]] for name in asked]


def _by_reference(
    tensors: list[torch.Tensor], grads: list[torch.Tensor | None], wanted: list[bool], kind: str
) -> list[torch.Tensor]:
    leaves = [t.detach().requires_grad_(w) for t, w in zip(tensors, wanted, strict=True)]
    asked = [leaf for leaf in leaves if leaf.requires_grad]
    with _autograd():
        results = _of_reference(kind_of(kind), leaves)
        pairs = [
            (result, grad)
            for result, grad in zip(results, grads, strict=True)
            if grad is not None and result.requires_grad
        ]
        if not pairs:
            return [torch.zeros_like(leaf) for leaf in asked]
        found = torch.autograd.grad(
            [result for result, _ in pairs],
            asked,
            [grad for _, grad in pairs],
            allow_unused=True,
            materialize_grads=True,
        )
    return [grad.contiguous().clone() for grad in found]


def _gradient_shapes(
    tensors: list[torch.Tensor], grads: list[torch.Tensor | None], wanted: list[bool], kind: str
) -> list[torch.Tensor]:
    chosen = [t for t, is_wanted in zip(tensors, wanted, strict=True) if is_wanted]
    return [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in chosen]


def _without_autocast() -> contextlib.AbstractContextManager[Any]:
    """Compute in the types of the tensors, as judged: forward was called without autocast."""
    if torch.is_autocast_enabled(DEVICE):
        return torch.autocast(DEVICE, enabled=False)
    return contextlib.nullcontext()


@contextlib.contextmanager
def _autograd() -> Iterator[None]:
    """Let autograd record, which it does not below an operator's call.

    Another thread would record too, but wait for ever on a GPU: the one thread that computes the
    device's gradients is this one.
    """
    excluded = torch._C._dispatch_tls_local_exclude_set()
    for key in ("AutogradFunctionality", "AutogradOther", "AutogradNestedTensor"):
        excluded = excluded.remove(getattr(torch._C.DispatchKey, key))
    included = torch._C._dispatch_tls_local_include_set()
    with torch._C._ForceDispatchKeyGuard(included, excluded), torch.enable_grad():
        yield


def _refuse_vmap(*_arguments: Any) -> Any:
    raise NotImplementedError(
        f"{TASK}: kernels do not run under torch.vmap; call the reference's own module there"
    )


_operator_name: Final = f"{NAMESPACE}::{TASK}_{DIGEST}"
_schema: Final = (
    f"({', '.join(f'Tensor {name}' for name in NAMES)}, str kf_kind) -> "
    f"{'Tensor' if len(OUTPUTS) == 1 else 'Tensor[]'}"
)
operator: Final = torch.library.custom_op(
    _operator_name, _operator, mutates_args=(), schema=_schema
)
"""The operator: inputs, parameters and buffers by their names, and which module it is."""
_gradient: Final = torch.library.custom_op(
    f"{_operator_name}_backward",
    _gradients,
    mutates_args=(),
    schema="(Tensor[] tensors, Tensor?[] grads, bool[] wanted, str kind) -> Tensor[]",
)
operator.register_fake(_shapes)
operator.register_autograd(_backward, setup_context=_keep)
operator.register_vmap(_refuse_vmap)
_gradient.register_vmap(_refuse_vmap)
_gradient.register_fake(_gradient_shapes)


@cache
def kind_of(text: str) -> Sizes:
    """Return which module it is, from the operator's last argument."""
    return tuple(sorted(json.loads(text).items()))


def _of_reference(kind: Sizes, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return with_weights(kind, tensors[: len(INPUTS)], tensors[len(INPUTS) :])

"""The module that takes the place of the reference's."""

import inspect
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn

from kernel_foundry.sdk.export.runtime.binding import DEVICE, bound_call
from kernel_foundry.sdk.export.runtime.counts import counts
from kernel_foundry.sdk.export.runtime.identity import Identity
from kernel_foundry.sdk.export.runtime.plan import NoKernelError
from kernel_foundry.sdk.export.runtime.reference import (
    argument_names,
    check_mode,
    flat,
    reference_at,
    rest_of,
    results_of,
    returned,
    weights_of,
)
from kernel_foundry.sdk.export.runtime.task import (
    IGNORES_MODE,
    INPUTS,
    TRAINING,
)
from kernel_foundry.sdk.export.runtime.torch_operator import kind_of, operator

_INPUTS: Final = len(INPUTS)
_Reference: Any = reference_at(()).Model
_is_traced: Final = torch.compiler.is_dynamo_compiling


class Module(_Reference):  # type: ignore[misc]  # its class is in a text
    """The reference's module, with its constructor and its state: kernels where they were judged.

    Any other call runs the reference; `stats()` says how often and why.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._kf_class = type(self)
        self._kf = identity_of(self)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Return what forward returns; hooks see the call."""
        # Before anything else, as this is what most calls are.
        if len(arguments) == _INPUTS and not (named or _is_traced()):
            identity = self._kf
            if identity.module is self:
                try:
                    for known in identity.known_whole:
                        result = known(*arguments)
                        if result is not None:
                            return result
                except NoKernelError:
                    pass  # forward meets it as well, and tells
        return super().__call__(*arguments, **named)

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """Compute what the reference computes."""
        if torch.compiler.is_compiling():
            return _traced(self, arguments, named, super().forward)
        try:
            return kernel_result(self, arguments, named)
        except NoKernelError as error:
            counts.reference(str(error))
            return super().forward(*arguments, **named)

    _kf_forward = forward

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_kf"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._kf = identity_of(self)


Module.forward.__signature__ = inspect.signature(_Reference.forward)  # type: ignore[attr-defined]


def identity_of(module: Any) -> Identity:
    """Return which judged module an exported one is now."""
    return Identity(module, module._kf_class.__module__)


def kernel_result(
    module: Any, arguments: tuple[Any, ...], named: dict[str, Any], *, is_strict: bool = False
) -> Any:
    """Return what a module's forward returns, by kernels.

    Args:
        module: The module.
        arguments: Of its forward, by position.
        named: Those by name.
        is_strict: Whether the reference may not run below autograd or a transform either.

    Raises:
        NoKernelError: it has to be the reference's.
    """
    if module._kf.module is not module:  # a replica has its original's attributes
        module._kf = identity_of(module)
    if not named and len(arguments) == _INPUTS:
        for known in module._kf.known:
            result = known(*arguments)
            if result is not None:
                return result
    before = module._kf.watched()
    kind, tensors = call_of(module, arguments, named)
    plain = is_plain(tensors)
    call = bound_call(kind_of(kind), tensors) if plain or is_strict else None
    if call is None or not plain:
        return returned(results_of(operator(*tensors, kind)))
    results = call.results(tensors)
    counts.add_kernel()
    if not named and before is not None:
        module._kf.know(arguments, call, tensors, before, is_whole=_is_whole(module))
    return returned(results)


def _is_whole(module: Any) -> bool:
    """Whether a call of a module is one of this file's forward, but for hooks."""
    kind = type(module)
    is_own = kind.forward is kind._kf_forward and "forward" not in vars(module)
    return is_own and module._compiled_call_impl is None


def call_of(
    module: Any, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[str, list[torch.Tensor]]:
    """Return which module a call is of, and its tensors.

    Raises:
        NoKernelError: it has to be the reference's.
    """
    if module._kf.is_stale:
        module._kf = identity_of(module)
    identity = module._kf
    if not identity.kind:
        raise NoKernelError(identity.reason)
    if identity.has_hooks:
        raise NoKernelError("a part of the module has hooks")
    kind = kind_of(identity.kind)
    check_mode(module)
    if named:
        arguments = _by_position(arguments, named)
    inputs, rest = flat(arguments)
    if rest != rest_of(kind):
        raise NoKernelError("the arguments are none that were judged")
    if inputs[0].device.type != DEVICE:
        raise NoKernelError(f"{INPUTS[0]} is on {inputs[0].device}; kernels run on {DEVICE}")
    if torch.is_autocast_enabled(DEVICE):
        raise NoKernelError("autocast is on")
    if torch.autograd.forward_ad._current_level >= 0:
        raise NoKernelError("gradients are computed forward")
    if torch._C._get_tracing_state() is not None:
        raise NoKernelError("torch.jit.trace sees no kernels")
    return identity.kind, [*inputs, *weights_of(module)]


def _traced(
    module: Any, arguments: tuple[Any, ...], named: dict[str, Any], reference: Callable[..., Any]
) -> Any:
    """What torch.compile and torch.export see: the operator, or the reference."""
    inputs, rest = flat((*arguments, *named.values()))
    # Read one by one, so that what is traced is traced again when one of them changes.
    for part, name, value in module._kf.attributes:
        if getattr(part, name) != value:
            return reference(*arguments, **named)
    for part, children in module._kf.children:
        if len(part._modules) != len(children):
            return reference(*arguments, **named)
        for name, child in children:
            if part._modules.get(name) is not child:
                return reference(*arguments, **named)
    for hooks in module._kf.hooks:
        if len(hooks) > 0:
            return reference(*arguments, **named)
    if not IGNORES_MODE:
        for part in module._kf.parts:
            if part.training is not TRAINING:
                return reference(*arguments, **named)
    is_usual = bool(module._kf.kind) and all(isinstance(item, str) for item in rest)
    if named or not is_usual or len(inputs) != len(INPUTS) or len(rest) != len(INPUTS):
        return reference(*arguments, **named)
    if inputs[0].device.type != DEVICE or torch.is_autocast_enabled(DEVICE):
        return reference(*arguments)
    return returned(results_of(operator(*inputs, *weights_of(module), module._kf.kind)))


def _by_position(arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    names = argument_names()
    given = dict(zip(names, arguments, strict=False)) | named
    if set(given) - set(names) or len(given) != len(arguments) + len(named):
        raise NoKernelError("the arguments are none that were judged")
    return tuple(given[name] for name in names if name in given)


def is_plain(tensors: list[torch.Tensor]) -> bool:
    """Whether nobody has to see the operator: no gradients, transforms, modes or subclasses."""
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        return False
    if torch._C._len_torch_dispatch_stack() or torch._C._functorch.peek_interpreter_stack():
        return False
    return all(type(t) in (torch.Tensor, nn.Parameter, nn.Buffer) for t in tensors)

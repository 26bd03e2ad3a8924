"""What a program uses: `Module` in place of the reference's, `swap` for those in a larger model.

Both go through the operator `torch.ops.kfoundry`, or past it where nobody has to see it: in a plain
call without gradients.
"""

import collections
import contextlib
import inspect
import json
import threading
from collections.abc import Callable, Iterator
from functools import cache
from operator import is_, itemgetter
from typing import Any, Final, NamedTuple

import torch
from torch import nn

from kernel_foundry.sdk.export.runtime.call import DEVICE, BoundCall, bound_call
from kernel_foundry.sdk.export.runtime.plan import NoKernelError
from kernel_foundry.sdk.export.runtime.reference import (
    Sizes,
    argument_names,
    check_mode,
    container_of,
    flat,
    own_attributes,
    reference_at,
    rest_of,
    sizes_of_module,
    weights_of,
    with_weights,
)
from kernel_foundry.sdk.export.runtime.same_source import is_same_source
from kernel_foundry.sdk.export.runtime.task import (
    DIGEST,
    IGNORES_MODE,
    INPUTS,
    NAMESPACE,
    OUTPUTS,
    TASK,
    TRAINING,
    WORKLOADS,
)

_NAMES: Final = (*INPUTS, *WORKLOADS[0]["weights"])
_MOST_REASONS: Final = 64
_MOST_KNOWN: Final = 8
"""Kinds of calls that a module is quick with."""
_HOOKS: Final = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class _Counts:
    """How often kernels ran, and the reference, and why."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.kernel = 0
        self.reasons: collections.Counter[str] = collections.Counter()
        self.last_reason = ""

    def reference(self, reason: str) -> None:
        """Count a call of the reference."""
        with self._lock:
            known = reason in self.reasons or len(self.reasons) < _MOST_REASONS
            self.reasons[reason if known else "other reasons"] += 1
            self.last_reason = reason


counts: Final = _Counts()


def stats() -> dict[str, Any]:
    """Return how often kernels ran and how often the reference, and why: the last and each reason.

    Calls count when they run: what `torch.compile` traces, and what a CUDA graph replays, does not.
    """
    reasons = dict(counts.reasons)
    return {
        "kernel": counts.kernel,
        "reference": sum(reasons.values()),
        "last_reason": counts.last_reason,
        "reasons": reasons,
    }


def reset_stats() -> None:
    """Count from 0 again."""
    counts.reset()


def _run(call: BoundCall, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    results = call.results(tensors)
    counts.kernel += 1
    return results


def _operator(*arguments: Any) -> Any:
    kind, tensors = kind_of(arguments[-1]), list(arguments[:-1])
    try:
        results = _run(bound_call(kind, tensors), tensors)
    except NoKernelError as error:
        counts.reference(str(error))
        own = {t.untyped_storage().data_ptr() for t in tensors}
        results = [r.contiguous() for r in _of_reference(kind, tensors)]
        results = [r.clone() if r.untyped_storage().data_ptr() in own else r for r in results]
    return results[0] if len(OUTPUTS) == 1 else results


def _shapes(*arguments: Any) -> Any:
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


class _Identity:
    """Which judged module a module is, what to watch for changes, and calls that were as judged.

    Args:
        module: The module.
        own: Name of the Python module where its own classes are.
    """

    def __init__(self, module: nn.Module, own: str) -> None:
        self.kind = self.reason = ""
        self.container: type = tuple
        parts = list(module.modules())
        try:
            kind = sizes_of_module(module, own)
            weights_of(module)
            self.container = container_of(kind)
            self.kind = json.dumps(dict(kind))
        except NoKernelError as error:
            self.reason = str(error)
        self._watched = [_watch(p._modules, list(p._modules)) for p in parts if p._modules]
        for part in parts:
            if names := [name for name, _ in own_attributes(part)]:
                self._watched.append(_watch(vars(part), names))
        self._modes = [] if IGNORES_MODE else [vars(part) for part in parts]
        self.attributes = [
            (part, name, value)
            for part in parts
            for name, value in own_attributes(part)
            if isinstance(value, bool | int | float | str | None)
        ]
        self.parts = parts
        self._hooks = [getattr(part, name) for part in parts[1:] for name in _HOOKS]
        self._weights = [_owner(module, path) for path in WORKLOADS[0]["weights"].values()]
        self._known: tuple[_KnownCall, ...] = ()

    @property
    def is_stale(self) -> bool:
        """Whether an attribute or a part of the module has been replaced since."""
        try:
            for values, read, known in self._watched:
                if not all(map(is_, read(values), known)):
                    return True
        except KeyError:
            return True
        return False

    @property
    def has_hooks(self) -> bool:
        """Whether a part of the module has hooks, which kernels would not run."""
        return any(self._hooks)

    def results(self, arguments: tuple[Any, ...]) -> list[torch.Tensor] | None:
        """Return the results of a call like one before; None: all is to be looked at.

        Raises:
            NoKernelError: it has to be the reference's.
        """
        if not self._known or self.is_stale or any(self._hooks):
            return None
        for values in self._modes:
            if values["training"] is not TRAINING:
                return None
        try:
            tensors = [*arguments, *[owner[name] for owner, name in self._weights]]
        except KeyError:
            return None
        for count, is_like, call, has_gradients in self._known:
            if len(tensors) == count and is_like(*tensors):
                if has_gradients and torch.is_grad_enabled():
                    return None
                if call.has_settings:
                    call.check_settings()
                return _run(call, tensors)
        return None

    def know(
        self, arguments: tuple[Any, ...], call: BoundCall, tensors: list[torch.Tensor]
    ) -> None:
        """Remember a call that was as judged, if all its arguments are tensors."""
        if not all(isinstance(argument, torch.Tensor) for argument in arguments):
            return
        known = _known_call(call, tensors)
        if known is not None:
            self._known = (known, *self._known[: _MOST_KNOWN - 1])


class _KnownCall(NamedTuple):
    tensors: int
    """Number of inputs and weights."""
    is_like: Callable[..., bool]
    """Whether tensors are as they were: type, dtype, device, sizes, strides, and what torch's
    dispatcher does with them, such as autocast and transforms."""
    call: BoundCall
    has_gradients: bool


def _known_call(call: BoundCall, tensors: list[torch.Tensor]) -> _KnownCall | None:
    """What to know a call by; None where torch has nothing to compare tensors at once."""
    try:
        sizes: list[Any] = [list(tensor.shape) for tensor in tensors]
        strides: list[Any] = [list(tensor.stride()) for tensor in tensors]
        guards = torch._C._dynamo.guards.TensorGuards(
            *tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides
        )
        if not guards.check(*tensors):  # the same tensor twice
            return None
    except (AttributeError, TypeError, ValueError, RuntimeError, SystemError):
        return None  # no public function does it: other releases may have another one
    has_gradients = any(tensor.requires_grad for tensor in tensors)
    return _KnownCall(len(tensors), guards.check, call, has_gradients)


def _watch(values: dict[str, Any], names: list[str]) -> tuple[dict[str, Any], Any, tuple[Any, ...]]:
    """Attributes, what reads some of them at once, and what it reads now."""
    read = itemgetter(*names, names[0])  # of one name it would return no tuple
    return values, read, read(values)


def _owner(module: nn.Module, path: str) -> tuple[dict[str, Any], str]:
    """The attributes among which a parameter or buffer is, and its name there."""
    owner, _, name = path.rpartition(".")
    try:
        part = module.get_submodule(owner)
    except AttributeError:
        return {}, name
    places: tuple[dict[str, Any], ...] = (vars(part), part._parameters, part._buffers)
    return next((place for place in places if name in place), {}), name


_operator_name: Final = f"{NAMESPACE}::{TASK}_{DIGEST}"
_schema: Final = (
    f"({', '.join(f'Tensor {name}' for name in _NAMES)}, str kf_kind) -> "
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
_gradient.register_fake(_gradient_shapes)
_Reference: Any = reference_at(()).Model


class Module(_Reference):  # type: ignore[misc]  # its class is in a text
    """The reference's module, with its constructor and its state: kernels where they were judged.

    Any other call runs the reference; `stats()` says how often and why.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._kf_class = type(self)
        self._kf = _identity(self)

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """Compute what the reference computes."""
        if torch.compiler.is_compiling():
            return _traced(self, arguments, named, super().forward)
        try:
            return kernel_result(self, arguments, named)
        except NoKernelError as error:
            counts.reference(str(error))
            return super().forward(*arguments, **named)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_kf"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._kf = _identity(self)


Module.forward.__signature__ = inspect.signature(_Reference.forward)  # type: ignore[attr-defined]


def swap(model: nn.Module, of: type[nn.Module] | None = None) -> nn.Module:
    """Replace the reference's modules in a model; they keep their parameters and buffers.

    Args:
        model: Its modules are replaced in place.
        of: Class of the modules to replace; without it, those whose class has the same source as
            the reference's.

    Returns:
        The model; its replacement, where it is such a module itself.

    Raises:
        ValueError: there is no such module in it.
    """
    made: dict[int, nn.Module] = {}
    seen: set[int] = set()

    def replaced(module: nn.Module) -> nn.Module:
        kind: Any = type(module)
        if "_kf_class" in vars(module):  # of this file or of another one: its parts are its own
            return module
        if id(module) in made:
            return made[id(module)]
        if kind is of if of else is_same_source(kind):
            made[id(module)] = _adopted(module)
            return made[id(module)]
        if id(module) not in seen:
            seen.add(id(module))
            for name, child in module._modules.items():
                if child is not None:
                    module._modules[name] = replaced(child)
        return module

    result = replaced(model)
    if not made:
        raise ValueError(f"the model has no module of {of or f'the class of {TASK}'}")
    return result


def _adopted(module: nn.Module) -> nn.Module:
    """An exported module in place of one, whose parts are the user's own once more."""
    given_back: dict[int, nn.Module] = {}
    for part in module.modules():
        for name, child in part._modules.items():
            kind = None if child is None else vars(child).get("_kf_class")
            if child is not None and kind is not None and kind is not type(child):
                if id(child) not in given_back:
                    given_back[id(child)] = _alike(child, kind)
                part._modules[name] = given_back[id(child)]
    made = _alike(module, Module)
    made.__dict__["_kf_class"] = type(module)
    made.__dict__["_kf"] = _identity(made)
    return made


def _alike(module: nn.Module, kind: type[nn.Module]) -> nn.Module:
    """A module of another class with the same attributes, parameters and parts."""
    made: nn.Module = kind.__new__(kind)
    made.__dict__.update({n: v for n, v in vars(module).items() if not n.startswith("_kf")})
    return made


def _identity(module: Any) -> _Identity:
    return _Identity(module, module._kf_class.__module__)


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
    results = None if named else module._kf.results(arguments)
    if results is None:
        kind, tensors = call_of(module, arguments, named)
        plain = is_plain(tensors)
        call = bound_call(kind_of(kind), tensors) if plain or is_strict else None
        if call is None or not plain:
            result = operator(*tensors, kind)
            return result if len(OUTPUTS) == 1 else module._kf.container(result)
        results = _run(call, tensors)
        if not named:
            module._kf.know(arguments, call, tensors)
    return results[0] if len(OUTPUTS) == 1 else module._kf.container(results)


def call_of(
    module: Any, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[str, list[torch.Tensor]]:
    """Return which module a call is of, and its tensors.

    Raises:
        NoKernelError: it has to be the reference's.
    """
    if module._kf.is_stale:
        module._kf = _identity(module)
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
    if not IGNORES_MODE:
        for part in module._kf.parts:
            if part.training is not TRAINING:
                return reference(*arguments, **named)
    is_usual = bool(module._kf.kind) and all(isinstance(item, str) for item in rest)
    if named or not is_usual or len(inputs) != len(INPUTS) or len(rest) != len(INPUTS):
        return reference(*arguments, **named)
    if inputs[0].device.type != DEVICE or torch.is_autocast_enabled(DEVICE):
        return reference(*arguments)
    result = operator(*inputs, *weights_of(module), module._kf.kind)
    return result if len(OUTPUTS) == 1 else module._kf.container(result)


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


@cache
def kind_of(text: str) -> Sizes:
    """Return which module it is, from the operator's last argument."""
    return tuple(sorted(json.loads(text).items()))


def _of_reference(kind: Sizes, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return with_weights(kind, tensors[: len(INPUTS)], tensors[len(INPUTS) :])

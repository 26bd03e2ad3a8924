"""A call like one before, as straight-line code: what differs is for others to look at.

Python takes longer for a loop over tensors, or for a step into another function, than the driver
takes for a launch. So the code of such a call is written for its number of tensors.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import torch

from kernel_foundry.sdk.export.runtime.bound_call import BoundCall
from kernel_foundry.sdk.export.runtime.counts import counts
from kernel_foundry.sdk.export.runtime.task import OUTPUTS

KnownCall = Callable[..., Any]
"""Takes the inputs and returns what forward does, or None where the call is not like the known one.
Raises `NoKernelError` where torch's settings or the driver refuse it."""


class Watched(NamedTuple):
    """A module as it was when a call was looked at."""

    places: tuple[dict[str, Any], ...]
    """Where its attributes, parts and weights are."""
    versions: tuple[int, ...]
    """Of the places: another one after each change."""
    hooks: tuple[Any, ...]
    """All empty: kernels would not run them."""


def watched(places: list[dict[str, Any]], hooks: list[Any]) -> Watched | None:
    """Return places as they are now; None where torch cannot tell their versions."""
    # No public function: other releases may have another one.
    version_of = getattr(torch._C._dynamo.guards, "dict_version", None)
    if version_of is None:
        return None
    return Watched(tuple(places), tuple(map(version_of, places)), tuple(hooks))


def known_call(
    call: BoundCall,
    inputs: list[torch.Tensor],
    weights: list[torch.Tensor],
    module: Watched,
    container: type,
) -> KnownCall | None:
    """Return the code for calls like one that was as judged; None where torch cannot compare them.

    Args:
        call: Bound to it.
        inputs: Of the call.
        weights: Of the module, as they are in its places.
        module: As it was before all that was looked at.
        container: Of several results, a tuple or a list.
    """
    tensors = [*inputs, *weights]
    try:
        sizes: list[Any] = [list(tensor.shape) for tensor in tensors]
        strides: list[Any] = [list(tensor.stride()) for tensor in tensors]
        # Compares type, dtype, device, sizes, strides, and what torch's dispatcher does with a
        # tensor, such as autocast and transforms. No public function does it.
        guards = torch._C._dynamo.guards.TensorGuards(
            *tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides
        )
        if not guards.check(*tensors):  # the same tensor twice
            return None
    except (AttributeError, TypeError, ValueError, RuntimeError, SystemError):
        return None
    make = _maker(
        inputs=len(inputs),
        weights=len(weights),
        places=len(module.places),
        has_gradients=any(tensor.requires_grad for tensor in tensors),
        has_settings=call.has_settings,
        is_host=call.device.is_host,
        is_one_row=call.is_one_row,
        laid_out=tuple(call.laid_out),
        brackets="()" if container is tuple else "[]",
    )
    made: KnownCall = make(guards.check, weights, module, call, counts)
    return made


_MAKER: Final = """\
def make(is_like, weights, module, call, counts):
    version_of = torch._C._dynamo.guards.dict_version
    is_grad_enabled = torch.is_grad_enabled
    forward_gradients = torch.autograd.forward_ad
    {places} = module.places
    {versions} = module.versions
    hooks = module.hooks
    {weights} = weights
    {makers} = call.makers
    misplaced = call.device.alignment - 1
    is_current, current = call.device.is_current, call.device.current
    check_settings, check_addresses = call.check_settings, call.check_addresses
    start = call.start
    run = call.steps[0].run if call.is_one_row else None
    layout_of = call.layouts.kept.get
    key = {key}

    def known({inputs}):
        if {changed}any(hooks) or forward_gradients._current_level >= 0:
            return None
        if not is_like({tensors}):
            return None
{lines}
        return {result}

    return known
"""


@cache
def _maker(
    *,
    inputs: int,
    weights: int,
    places: int,
    has_gradients: bool,
    has_settings: bool,
    is_host: bool,
    is_one_row: bool,
    laid_out: tuple[int, ...],
    brackets: str,
) -> Callable[..., KnownCall]:
    """What makes the code of a known call, for some numbers of tensors."""
    given, own = _names("t", inputs), _names("w", weights)
    results = _names("r", len(OUTPUTS))
    tensors = [*given, *own]
    addresses = _names("p", len(tensors))
    listed = ", ".join(addresses)
    lines = []
    if has_gradients:
        lines += ["if is_grad_enabled():", "    return None"]
    if has_settings:
        lines += ["check_settings()"]
    if not is_host:
        lines += ["if not is_current():", "    with current():"]
        lines += [f"        return known({', '.join(given)})"]
    lines += [f"{p} = {t}.data_ptr()" for p, t in zip(addresses, tensors, strict=True)]
    lines += [f"if ({' | '.join(addresses)}) & misplaced:", f"    check_addresses([{listed}])"]
    lines += [f"{r} = make_{r}()" for r in results]
    start = f"start([{listed}], [{', '.join(tensors)}], [{', '.join(results)}])"
    run = f"run({listed}, {', '.join(f'{r}.data_ptr()' for r in results)}"
    if not is_one_row:
        lines += [start]
    elif not laid_out:
        lines += [f"{run})"]
    else:
        versions = _tuple([f"{tensors[i]}._version" for i in laid_out])
        now = _tuple([addresses[i] for i in laid_out])
        lines += [
            "layout = layout_of(key)",
            f"if layout is not None and layout.versions == {versions} \\",
            f"        and layout.addresses == {now} and layout.is_ready():",
            f"    {run}, *layout.places)",
            "else:",
            f"    {start}",
        ]
    lines += ["counts.kernel += 1"]
    one, several = results[0], f"{brackets[0]}{', '.join(results)}{brackets[1]}"
    text = _MAKER.format(
        places=_tuple(_names("d", places)),
        versions=_tuple(_names("v", places)),
        weights=_tuple(own),
        key=_tuple([f"id({tensors[i]})" for i in laid_out]),
        makers=_tuple([f"make_{r}" for r in results]),
        inputs=", ".join(given),
        changed="".join(f"version_of(d{i}) != v{i} or " for i in range(places)),
        tensors=", ".join(tensors),
        lines="\n".join(f"        {line}" for line in lines),
        result=one if len(results) == 1 else several,
    )
    found: dict[str, Any] = {"torch": torch}
    exec(compile(text, "<a known call>", "exec"), found)
    made: Callable[..., KnownCall] = found["make"]
    return made


def _names(letter: str, count: int) -> list[str]:
    return [f"{letter}{i}" for i in range(count)]


def _tuple(names: list[str]) -> str:
    """A tuple of them, which takes apart another one as well."""
    return f"({', '.join(names)},)" if names else "()"

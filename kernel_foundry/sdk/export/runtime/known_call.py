"""A call like one before, as straight-line code: what differs is for others to look at.

Python takes longer for a loop over tensors, or for a step into another function, than the driver
takes for a launch. So the code of such a call is written for its number of tensors.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import torch

from kernel_foundry.sdk.export.runtime.bound_call import BoundCall
from kernel_foundry.sdk.export.runtime.counts import counts
from kernel_foundry.sdk.export.runtime.streams import current_queue, is_captured
from kernel_foundry.sdk.export.runtime.task import CONTAINER, OUTPUTS

KnownCall = Callable[..., Any]
"""Takes the inputs and returns what forward does, or None where the call is not like the known one.
Raises `NoKernelError` where torch's settings or the driver refuse it."""


class Watched(NamedTuple):
    """A module as it was when a call was looked at."""

    places: tuple[dict[str, Any], ...]
    """Where its attributes, parts and weights are, as far as there are any."""
    versions: tuple[int, ...]
    """Of the places: another one after each change."""
    empty: tuple[Any, ...]
    """Places where there is none, and hooks: kernels would not run them."""


def watched(places: list[dict[str, Any]], hooks: list[Any]) -> Watched | None:
    """Return places as they are now; None where torch cannot tell their versions."""
    # No public function: other releases may have another one.
    version_of = getattr(torch._C._dynamo.guards, "dict_version", None)
    if version_of is None:
        return None
    filled = tuple(place for place in places if place)
    empty = (*(place for place in places if not place), *hooks)
    return Watched(filled, tuple(map(version_of, filled)), empty)


def known_call(
    call: BoundCall,
    inputs: list[torch.Tensor],
    weights: list[torch.Tensor],
    module: Watched,
) -> KnownCall | None:
    """Return the code for calls like one that was as judged; None where torch cannot compare them.

    Args:
        call: Bound to it.
        inputs: Of the call.
        weights: Of the module, as they are in its places.
        module: As it was before all that was looked at.
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
        _Form(
            inputs=len(inputs),
            weights=len(weights),
            places=len(module.places),
            empty=len(module.empty),
            has_gradients=any(tensor.requires_grad for tensor in tensors),
            has_settings=call.has_settings,
            is_host=call.device.is_host,
            has_devices=not call.device.is_host and torch.cuda.device_count() != 1,
            is_one_row=call.is_one_row,
            laid_out=tuple(call.laid_out),
            prepared=tuple(call.prepared),
            scratch=tuple((slot, offset) for slot, offset, _ in call.scratch.places),
            read=frozenset(call.read),
        )
    )
    made: KnownCall = make(guards.check, weights, module, call)
    return made


_MAKER: Final = """\
def make(is_like, weights, module, call):
    version_of = torch._C._dynamo.guards.dict_version
    is_grad_enabled = torch.is_grad_enabled
    forward_gradients = torch.autograd.forward_ad
    {places} = module.places
    {versions} = module.versions
    {empty} = module.empty
    {weights} = weights
    {makers} = call.makers
    misplaced = call.device.alignment - 1
    check_settings, check_addresses = call.check_settings, call.check_addresses
    start = call.start
    layout_of = call.layouts.kept.get
    key = {key}
{device}

    def known({inputs}):
        if {changed}forward_gradients._current_level >= 0 or not is_like({tensors}):
            return None
{lines}
        return {result}

    return known
"""
_RETURNED: Final = {"tensor": "{}", "tuple": "({},)", "list": "[{}]"}
_ON_GPU: Final = """\
    current_device = torch._C._cuda_getDevice
    index, current = call.device.index, call.device.current
"""
_ROW_OF_GPU: Final = """\
    row = call.steps[0]
    launch, launch_again = row.start, row.start_again
    make_scratch = call.make_scratch
    {fixed} = fixed = [weight.data_ptr() for weight in weights]
    spare = []  # blocks of these weights
    take, give = spare.pop, spare.append

    def new_block():
        block = row.new_block()
        block.addresses[{inputs} : {inputs} + {weights}] = fixed
        return block
"""


class _Form(NamedTuple):
    """What the code of a known call depends on: numbers of things, and positions of slots."""

    inputs: int
    weights: int
    places: int
    empty: int
    has_gradients: bool
    has_settings: bool
    is_host: bool
    has_devices: bool
    is_one_row: bool
    laid_out: tuple[int, ...]
    prepared: tuple[int, ...]
    scratch: tuple[tuple[int, int], ...]
    """Each with its offset in that memory."""
    read: frozenset[int]

    @property
    def tensors(self) -> list[str]:
        """Names of inputs and weights."""
        return [*_names("t", self.inputs), *_names("w", self.weights)]

    @property
    def addresses(self) -> list[str]:
        """Names of their addresses."""
        return _names("p", self.inputs + self.weights)

    @property
    def moving(self) -> list[int]:
        """Positions of weights whose addresses are written once, so that others are unknown."""
        is_written_once = self.is_one_row and not self.is_host
        return list(range(self.inputs, self.inputs + self.weights)) if is_written_once else []


@lru_cache(maxsize=128)  # offsets in scratch differ from shape to shape
def _maker(form: _Form) -> Callable[..., KnownCall]:
    """What makes the code of a known call."""
    device = "    run = call.steps[0].run if call.is_one_row else None" if form.is_host else _ON_GPU
    if form.is_one_row and not form.is_host:
        fixed = _tuple([f"f{i}" for i in form.moving])
        device += _ROW_OF_GPU.format(fixed=fixed, inputs=form.inputs, weights=form.weights)
    changed = [f"version_of(d{i}) != v{i} or " for i in range(form.places)]
    changed += [f"e{i} or " for i in range(form.empty)]
    results = _names("r", len(OUTPUTS))
    text = _MAKER.format(
        places=_tuple(_names("d", form.places)),
        versions=_tuple(_names("v", form.places)),
        empty=_tuple(_names("e", form.empty)),
        weights=_tuple(_names("w", form.weights)),
        key=_tuple([f"id({form.tensors[i]})" for i in form.laid_out]),
        makers=_tuple([f"make_{r}" for r in results]),
        device=device,
        inputs=", ".join(_names("t", form.inputs)),
        changed="".join(changed),
        tensors=", ".join(form.tensors),
        lines="\n".join(f"        {line}" for line in _lines(form, results)),
        result=_RETURNED[CONTAINER].format(", ".join(results)),
    )
    found: dict[str, Any] = {
        "torch": torch,
        "add_kernel": counts.add_kernel,
        "current_queue": current_queue,
        "is_captured": is_captured,
    }
    exec(compile(text, "<a known call>", "exec"), found)
    maker: Callable[..., KnownCall] = found["make"]
    return maker


def _lines(form: _Form, results: list[str]) -> list[str]:
    """Code of a call that is like the known one."""
    lines = []
    if form.has_gradients:
        lines += ["if is_grad_enabled():", "    return None"]
    if form.has_settings:
        lines += ["check_settings()"]
    if form.has_devices:
        lines += ["if current_device() != index:", "    with current():"]
        lines += [f"        return known({', '.join(_names('t', form.inputs))})"]
    pairs = zip(form.addresses, form.tensors, strict=True)
    lines += [f"{p} = {t}.data_ptr()" for p, t in pairs]
    if form.moving:
        lines += [f"if {' or '.join(f'p{i} != f{i}' for i in form.moving)}:", "    return None"]
    checked = form.addresses[: form.inputs] if form.moving else form.addresses
    lines += [f"if ({' | '.join(checked)}) & misplaced:"]
    lines += [f"    check_addresses([{', '.join(form.addresses)}])"]
    lines += [f"{r} = make_{r}()" for r in results]
    return [*lines, *_started(form, results), "add_kernel()"]


_READY: Final = (
    "(layout.moment is None or layout.moment.queue == queue and not is_captured()"
    " or layout.is_ready())"
)
"""As `is_ready`, in the usual case without a step into it."""


def _started(form: _Form, results: list[str]) -> list[str]:
    """Code that starts the kernels."""
    given = (form.addresses, form.tensors, results)
    start = f"start({', '.join('[' + ', '.join(names) + ']' for names in given)})"
    if not form.is_one_row:
        return [start]
    if form.is_host:
        values = [*form.addresses, *(f"{r}.data_ptr()" for r in results)]
        row = [f"run({', '.join([*values, *(['*layout.places'] if form.prepared else [])])})"]
    else:
        row = _row_of_gpu(form, results)
    queue = [] if form.is_host else ["queue = current_queue(index)"]
    if not form.laid_out:
        return [*queue, *row]
    versions = _tuple([f"{form.tensors[i]}._version" for i in form.laid_out])
    addresses = _tuple([form.addresses[i] for i in form.laid_out])
    return [
        *queue,
        "layout = layout_of(key)",
        f"if layout is not None and layout.versions == {versions} \\",
        f"        and layout.addresses == {addresses} \\",
        f"        and {'layout.is_ready()' if form.is_host else _READY}:",
        *(f"    {line}" for line in row),
        "else:",
        f"    {start}",
    ]


def _row_of_gpu(form: _Form, results: list[str]) -> list[str]:
    """Code as `GpuRow.run`: what changes is written in place, for the slots that kernels read."""
    lines = []
    scratch = [(slot, offset) for slot, offset in form.scratch if slot in form.read]
    if scratch:
        lines += ["memory = make_scratch()", "base = memory.data_ptr()"]
    lines += ["try:", "    block = take()", "except IndexError:", "    block = new_block()"]
    lines += ["if block.queue != queue:", "    block.enter(queue)", "places = block.addresses"]
    if form.prepared:
        lines += ["if block.layout != layout.number:"]
        lines += [f"    {_tuple([f'places[{s}]' for s in form.prepared])} = layout.places"]
        lines += ["    block.layout = layout.number"]
    values = dict(enumerate(_names("p", form.inputs)))
    first = form.inputs + form.weights
    values |= {first + i: f"{result}.data_ptr()" for i, result in enumerate(results)}
    values |= {slot: f"base + {offset}" for slot, offset in scratch}
    lines += [f"places[{slot}] = {value}" for slot, value in values.items() if slot in form.read]
    lines += ["for arguments in block.calls:", "    if launch(*arguments):"]
    return [*lines, "        launch_again(arguments)", "give(block)"]


def _names(letter: str, count: int) -> list[str]:
    return [f"{letter}{i}" for i in range(count)]


def _tuple(names: list[str]) -> str:
    """A tuple of them, which takes apart another one as well."""
    return f"({', '.join(names)},)" if names else "()"

"""Records the calls of all modules while a program runs: inputs, outputs and times."""

import inspect
import statistics
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Self

import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

_MOST_EVENTS: Final = 4096
"""Pairs of a GPU's events that wait to be read."""

Key = tuple[Any, ...]
"""What distinguishes calls: places, shapes, strides and dtypes of tensors, and other arguments."""


@dataclass(slots=True)
class Argument:
    """One argument of forward: a tensor, a list of tensors, or a constant."""

    name: str
    tensors: tuple[torch.Tensor, ...] = ()
    is_list: bool = False
    constant: Any = None

    def key(self) -> Key:
        """Return what distinguishes it from others in another call."""
        kinds = tuple((tuple(t.shape), t.stride(), t.dtype) for t in self.tensors)
        return (self.name, kinds, self.is_list, repr(self.constant))


@dataclass(slots=True)
class RecordedCalls:
    """All calls of one module with arguments of one kind."""

    module: nn.Module
    path: str
    arguments: tuple[Argument, ...]
    """Of the first call; its tensors are on the meta device."""
    outputs: tuple[torch.Tensor, ...]
    """Alike; none where the result holds anything but tensors."""
    ranges: tuple[tuple[float, float], ...]
    """Least and largest finite value of each tensor, in the first call."""
    device: torch.device
    reason: str = ""
    """Why no task can have such a call."""
    times_ns: list[float] = field(default_factory=list)

    @property
    def call_ns(self) -> float:
        """The median; without the first call, which warms up, where there are others."""
        return statistics.median(self.times_ns[1:] or self.times_ns)


@dataclass(slots=True)
class _Call:
    module: nn.Module
    start: Any


class CallRecorder:
    """Records from `with` on; the recorded calls are complete after it.

    Modules that are called by others are recorded too, so times of a module hold those of its
    parts. On a GPU times are those between events around the call on the current stream. On a CPU
    what recording itself takes is left out.
    """

    def __init__(self) -> None:
        self._recorded: dict[Key, RecordedCalls] = {}
        self._paths: dict[int, str] = {}
        self._roots: list[nn.Module] = []
        self._open = threading.local()
        self._pending: list[tuple[list[float], Any, Any]] = []
        self._spent_ns = 0
        self._handles: list[Any] = []
        self._top: list[list[float]] = []

    def __enter__(self) -> Self:
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, with_kwargs=True),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._read_events()

    def calls(self) -> tuple[RecordedCalls, ...]:
        """Return what was recorded."""
        return tuple(self._recorded.values())

    def outermost_calls(self) -> tuple[RecordedCalls, ...]:
        """Return the calls of modules that no other module made."""
        top = {id(times) for times in self._top}
        return tuple(calls for calls in self._recorded.values() if id(calls.times_ns) in top)

    def _before(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        entered = time.perf_counter_ns()
        stack: list[_Call] = self._stack()
        if not stack and id(module) not in self._paths:
            self._roots.append(module)  # kept, or another could have its id
            for path, part in module.named_modules():
                self._paths.setdefault(id(part), path)
        call = _Call(module, None)
        stack.append(call)
        on_gpu = _device_of(module, arguments).type == "cuda"
        self._spent_ns += time.perf_counter_ns() - entered
        call.start = _event() if on_gpu else time.perf_counter_ns() - self._spent_ns

    def _after(
        self, module: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any], output: Any
    ) -> None:
        entered = time.perf_counter_ns()
        stack = self._stack()
        while stack and stack[-1].module is not module:
            stack.pop()  # calls that raised
        start = stack.pop().start
        is_event = isinstance(start, torch.cuda.Event)
        end = _event() if is_event else entered - self._spent_ns
        found, reason = _arguments(module, arguments, named)
        key = (id(module), module.training, reason, *(each.key() for each in found))
        recorded = self._recorded.get(key)
        if recorded is None:
            recorded = self._first(module, found, output, reason)
            self._recorded[key] = recorded
            if not stack:
                self._top.append(recorded.times_ns)
        if is_event:
            self._pending.append((recorded.times_ns, start, end))
            if len(self._pending) == _MOST_EVENTS:
                self._read_events()
        else:
            recorded.times_ns.append(float(end - start))
        self._spent_ns += time.perf_counter_ns() - entered

    def _first(
        self, module: nn.Module, arguments: tuple[Argument, ...], output: Any, reason: str
    ) -> RecordedCalls:
        outputs = _tensors_of(output)
        tensors = [tensor for argument in arguments for tensor in argument.tensors]
        return RecordedCalls(
            module=module,
            path=self._paths.get(id(module), ""),
            arguments=tuple(_without_memory(argument) for argument in arguments),
            outputs=tuple(map(_meta, outputs or ())),
            ranges=tuple(map(_range, tensors)),
            device=_device_of(module, tensors),
            reason=reason or ("" if outputs else "its result is not one or several tensors"),
        )

    def _stack(self) -> list[_Call]:
        if not hasattr(self._open, "calls"):
            self._open.calls = []
        calls: list[_Call] = self._open.calls
        return calls

    def _read_events(self) -> None:
        if self._pending:
            torch.cuda.synchronize()
        for times_ns, start, end in self._pending:
            times_ns.append(start.elapsed_time(end) * 1e6)
        self._pending.clear()


def _arguments(
    module: nn.Module, values: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Argument, ...], str]:
    """The arguments by position, and why a task cannot have them; "" when it can."""
    parameters = _parameters(type(module).forward)
    given = list(zip([p.name for p in parameters], values, strict=False))
    given += [(f"argument_{i}", value) for i, value in enumerate(values[len(given) :])]
    left = dict(named)
    for parameter in parameters[len(values) :]:
        if not left:
            break
        given.append((parameter.name, left.pop(parameter.name, parameter.default)))
    if left:
        return (), f"forward takes {', '.join(left)} by keyword only"
    found = []
    for name, value in given:
        tensors = _tensors_of(value)
        if tensors is not None:
            found.append(Argument(name, tensors, is_list=not isinstance(value, torch.Tensor)))
        elif _is_constant(value):
            found.append(Argument(name, constant=value))
        else:
            return (), f"forward's {name} is a {type(value).__name__}"
    if not any(argument.tensors for argument in found):
        return (), "forward takes no tensors"
    return tuple(found), ""


def _is_constant(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(item, int | float) for item in value)
    return value is None or isinstance(value, bool | int | float | str)


@cache
def _parameters(forward: Callable[..., Any]) -> list[inspect.Parameter]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(forward).parameters.values()
    return [p for p in parameters if p.kind in kinds][1:]


def _tensors_of(value: Any) -> tuple[torch.Tensor, ...] | None:
    """The tensors of a tensor, or of a list or tuple of tensors alone; None for all else."""
    if isinstance(value, torch.Tensor):
        return (value,)
    is_list = type(value) in (list, tuple) and bool(value)
    if is_list and all(isinstance(item, torch.Tensor) for item in value):
        return tuple(value)
    return None


def _without_memory(argument: Argument) -> Argument:
    tensors = tuple(map(_meta, argument.tensors))
    return Argument(argument.name, tensors, argument.is_list, argument.constant)


def _meta(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def _range(tensor: torch.Tensor) -> tuple[float, float]:
    """Least and largest finite value; (0, 0) where there is none."""
    with torch.no_grad():
        flat = tensor.detach().reshape(-1)
        if flat.is_complex() or not flat.numel():
            return (0.0, 0.0)
        if flat.is_floating_point():
            flat = torch.nan_to_num(flat.float(), nan=0.0, posinf=0.0, neginf=0.0)
        least, largest = torch.aminmax(flat.to(torch.uint8) if flat.dtype == torch.bool else flat)
        return (float(least), float(largest))


def _device_of(module: nn.Module, arguments: Iterable[Any]) -> torch.device:
    tensors = (value for value in arguments if isinstance(value, torch.Tensor))
    first = next(tensors, None)
    if first is None:
        first = next(module.parameters(), None)
    return torch.device("cpu") if first is None else first.device


def _event() -> Any:
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event

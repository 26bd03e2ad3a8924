"""State of the judge's process that a task's file can set, kept apart for each task.

One process executes the files of all tasks. What a file sets for all of torch (a default dtype,
threads, a function replaced by its own) is put back before another task's turn, and set again
before its own next one. State that is not listed here is not seen.
"""

import builtins
import gc
import importlib
import operator
import os
import random
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import FunctionType, ModuleType
from typing import Any, Final

import numpy as np
import torch
from torch import overrides
from torch.utils import _config_module, _python_dispatch

from evaluator_svc.hardware.openmp import set_threads
from kernel_foundry.errors import TaskInvalidError

_TASKS_KEPT: Final = 256
"""Tasks whose state is kept; an older one's file is not executed again with what it had set."""
_SHOWN: Final = 8
"""Names in a message."""
_ABSENT: Final = object()

_MODULES: Final = (
    "builtins", "copy", "functools", "itertools", "math", "operator", "os", "random", "sys", "time",
    "numpy", "numpy.random", "torch", "torch._C._nn", "torch.autograd", "torch.cuda", "torch.fft",
    "torch.linalg", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.random",
    "torch.special",
)  # fmt: skip
_OUR_ROOTS: Final = ("evaluator_svc", "kernel_foundry", "kernel_foundry_native")
_CONFIGS: Final = ("torch._dynamo.config", "torch._functorch.config", "torch._inductor.config")
_SWITCHES: Final = {
    "torch.backends.cuda.matmul": (
        "allow_tf32",
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
        "fp32_precision",
    ),
    "torch.backends.cudnn": (
        "enabled",
        "benchmark",
        "deterministic",
        "allow_tf32",
        "fp32_precision",
    ),
}
_COMPILER: Final = ("torch._dynamo", "torch._compile")
_DEVICE_KEYS: Final = ("/CPU", "/CUDA")
"""Under which torch.library replaces what an operator does on a device."""
_AUTOCAST: Final = ("cpu", "cuda")
_DENORMAL: Final = 5e-324


@dataclass(frozen=True, slots=True)
class _Setting:
    """One value of the process."""

    get: Callable[[], Any]
    set: Callable[[Any], object] | None
    """None: what was changed cannot be changed back."""


class ProcessState:
    """The process as it was when this was made, and what has changed since.

    A change is a name with the value that is there now.
    """

    def __init__(self) -> None:
        self._settings = dict(_settings())
        self._start = {name: setting.get() for name, setting in self._settings.items()}
        self._namespaces = {label: (owner, _watched(owner)) for label, owner in _namespaces()}
        self._builtin_names = frozenset(vars(builtins))

    def changes(self) -> dict[str, Any]:
        """Return what is not as it was: names with the values that are there now."""
        found = {}
        for name, before in self._start.items():
            now = _read(self._settings[name])
            if now != before:
                found[name] = now
        for label, (owner, watched) in self._namespaces.items():
            for key, value in self._changed_attributes(owner, watched):
                found[f"{label}.{key}"] = value
        found |= _config_changes()
        return found

    def permanent_changes(self) -> tuple[str, ...]:
        """Return the names of what was changed and cannot be changed back."""
        return tuple(
            name
            for name, setting in self._settings.items()
            if setting.set is None and setting.get() != self._start[name]
        )

    def restore(self, changes: Iterable[str]) -> None:
        """Put back what the named changes were at first."""
        for name in changes:
            self._put(name, self._first(name))

    def apply(self, changes: Mapping[str, Any]) -> None:
        """Change again what `changes` had returned."""
        for name, value in changes.items():
            self._put(name, value)

    def _changed_attributes(
        self, owner: Any, watched: Mapping[str, Any]
    ) -> Iterator[tuple[str, Any]]:
        now = vars(owner)
        # Some 10,000 attributes: looked at one by one only where one of them is another.
        if not all(map(operator.is_, map(now.get, watched), watched.values())):
            for key, before in watched.items():
                value = now.get(key, _ABSENT)
                if value is not before and not _is_of_the_compiler(value):
                    yield key, value
        new = now.keys() - watched.keys()
        if isinstance(owner, ModuleType) and owner is not builtins:
            # Modules gain attributes as they are used, and hide nothing but builtins.
            new &= self._builtin_names
        for key in sorted(new):
            if _is_watched(now[key]):
                yield key, now[key]

    def _first(self, name: str) -> Any:
        if name in self._start:
            return self._start[name]
        label, _, key = name.rpartition(".")
        if label in self._namespaces:
            return self._namespaces[label][1].get(key, _ABSENT)
        return _ABSENT

    def _put(self, name: str, value: Any) -> None:
        if name in self._settings:
            change = self._settings[name].set
            if change is not None and value is not _ABSENT:
                change(value)
            return
        label, _, key = name.rpartition(".")
        if label in self._namespaces:
            owner = self._namespaces[label][0]
            if value is not _ABSENT:
                setattr(owner, key, value)
            elif key in vars(owner):
                delattr(owner, key)
            return
        module, _, key = name.partition(":")
        config: Any = sys.modules[module]
        setattr(config, key, _own_value(config._config[key]) if value is _ABSENT else value)


class TaskStates:
    """Each task's changes of the process, of which only one task's are there at a time.

    Args:
        state: The process before any task's file was executed.
    """

    def __init__(self, state: ProcessState) -> None:
        self._state = state
        self._current = ""
        self._kept: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def enter(self, task: str) -> None:
        """Give the process the state of a task (its digest; "": that of none)."""
        if task == self._current:
            return
        changes = self._state.changes()
        self._state.restore(changes)
        if changes and self._current:
            self._kept[self._current] = changes
            while len(self._kept) > _TASKS_KEPT:
                self._kept.popitem(last=False)
        self._current = task
        self._state.apply(self._kept.pop(task, {}))

    def check(self, name: str) -> None:
        """Look whether the process can still be given back to other tasks.

        Raises:
            TaskInvalidError: the current task, called `name`, changed what stays so for good.
        """
        if permanent := self._state.permanent_changes():
            raise TaskInvalidError(
                f"{name}: the reference changes {', '.join(permanent)} of the judge's process,"
                " which serves other tasks and cannot change it back: leave that out",
                task=name,
            )

    def is_sound(self) -> bool:
        """Return False when the process can no longer be given to other tasks."""
        return not self._state.permanent_changes()

    def changed(self) -> tuple[str, ...]:
        """Return what the current task has changed, for people; the first few names."""
        lines = [
            f"{name} = {value}" if isinstance(value, bool | int | str | torch.dtype) else name
            for name, value in self._state.changes().items()
        ]
        more = len(lines) - _SHOWN
        return (*lines[:_SHOWN], *([f"{more} more"] if more > 0 else []))


def state_warning(changed: tuple[str, ...]) -> str:
    """Return what an admission says of a task that changes the process."""
    return (
        f"the reference changes the process that it runs in: {', '.join(changed)}. Its own times"
        " and results are with that; those of other tasks are not"
    )


def _settings() -> Iterator[tuple[str, _Setting]]:
    known = frozenset(torch.library._impls)
    yield "default dtype", _Setting(torch.get_default_dtype, torch.set_default_dtype)
    yield "default device", _Setting(torch.get_default_device, _set_default_device)
    # A default device is a mode, too, so the depth comes after it.
    yield "function modes", _Setting(_function_depth, _leave_function_modes)
    yield "dispatch modes", _Setting(_dispatch_depth, _leave_dispatch_modes)
    yield "threads of torch", _Setting(torch.get_num_threads, set_threads)
    yield "threads between operators", _Setting(torch.get_num_interop_threads, None)
    yield "operators of torch.library", _Setting(partial(_count_overrides, known), None)
    yield "gradients", _Setting(torch.is_grad_enabled, torch.set_grad_enabled)
    yield (
        "deterministic algorithms",
        _Setting(torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    )
    yield "denormals flushed", _Setting(_flushes_denormals, torch.set_flush_denormal)
    for device in _AUTOCAST:
        yield f"autocast on {device}", _Setting(*_of_device("autocast_enabled", device, is_=True))
        yield f"autocast dtype on {device}", _Setting(*_of_device("autocast_dtype", device))
    backends: Any = torch.backends
    for name, owner in (
        ("torch.backends.cuda.matmul", backends.cuda.matmul),
        ("torch.backends.cudnn", backends.cudnn),
        ("torch.backends", backends),
        ("torch.backends.cudnn.conv", backends.cudnn.conv),
        ("torch.backends.cudnn.rnn", backends.cudnn.rnn),
        ("torch.backends.mkldnn.matmul", backends.mkldnn.matmul),
        ("torch.backends.mkldnn.conv", backends.mkldnn.conv),
    ):
        for key in _SWITCHES.get(name, ("fp32_precision",)):
            yield f"{name}.{key}", _attribute(owner, key)
    # After the switches: it turns several of them, and cannot be read while they contradict it.
    yield (
        "float32 matmul precision",
        _Setting(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    )
    yield "mkldnn", _Setting(torch._C._get_mkldnn_enabled, torch._C._set_mkldnn_enabled)
    cuda = torch.backends.cuda
    for kind in ("flash", "mem_efficient", "math", "cudnn"):
        yield (
            f"{kind} attention",
            _Setting(getattr(cuda, f"{kind}_sdp_enabled"), getattr(cuda, f"enable_{kind}_sdp")),
        )
    yield "numpy's treatment of errors", _Setting(np.geterr, lambda value: np.seterr(**value))
    yield "sys.gettrace()", _Setting(sys.gettrace, sys.settrace)
    yield "sys.getprofile()", _Setting(sys.getprofile, sys.setprofile)
    yield (
        "garbage collection",
        _Setting(gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    )
    yield "working directory", _Setting(os.getcwd, os.chdir)


def _of_device(what: str, device: str, *, is_: bool = False) -> tuple[Any, Any]:
    get = getattr(torch, f"is_{what}" if is_ else f"get_{what}")
    change = getattr(torch, f"set_{what}")
    return (lambda: get(device)), (lambda value: change(device, value))


def _attribute(owner: Any, name: str) -> _Setting:
    return _Setting(lambda: getattr(owner, name), lambda value: setattr(owner, name, value))


def _read(setting: _Setting) -> Any:
    try:
        return setting.get()
    except RuntimeError:  # torch's, where a file mixes its old and new switches
        return _ABSENT


def _set_default_device(device: torch.device) -> None:
    torch.set_default_device(None if device.type == "cpu" else device)


def _function_depth() -> int:
    return len(overrides._get_current_function_mode_stack())  # type: ignore[no-untyped-call]


def _leave_function_modes(depth: int) -> None:
    while _function_depth() > depth:
        overrides._pop_mode()  # type: ignore[no-untyped-call]


def _dispatch_depth() -> int:
    return len(_python_dispatch._get_current_dispatch_mode_stack())


def _leave_dispatch_modes(depth: int) -> None:
    while _dispatch_depth() > depth:
        _python_dispatch._pop_mode()


def _flushes_denormals() -> bool:
    return _DENORMAL * float(len(_AUTOCAST)) == 0.0


def _count_overrides(known: frozenset[str]) -> int:
    """Return how often an operator's code for a device was replaced beyond what is known."""
    new = torch.library._impls - known
    return sum(key.startswith("aten/") and key.endswith(_DEVICE_KEYS) for key in new)


def _namespaces() -> Iterator[tuple[str, Any]]:
    for name in _MODULES:
        yield name, importlib.import_module(name)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _OUR_ROOTS:
            yield name, module
    layers = [c for c in vars(torch.nn.modules).values() if isinstance(c, type)]
    classes = (torch.Tensor, torch.nn.Parameter, torch.autograd.Function, random.Random, *layers)
    for each in dict.fromkeys(classes):
        yield f"{each.__module__}.{each.__qualname__}", each


def _watched(owner: Any) -> dict[str, Any]:
    return {key: value for key, value in vars(owner).items() if _is_watched(value)}


def _is_watched(value: Any) -> bool:
    """Return whether an attribute is one that nobody but a task's file would replace.

    Plain values are counters and caches as often as not.
    """
    kinds = (float, torch.dtype, ModuleType, property, staticmethod, classmethod)
    return callable(value) or isinstance(value, kinds)


def _is_of_the_compiler(value: Any) -> bool:
    """Return whether torch.compile put it there, as it does when it is first imported."""
    if not isinstance(value, FunctionType):
        return False
    name = value.__globals__.get("__name__", "")
    module = sys.modules.get(name)
    return name.startswith(_COMPILER) and module is not None and vars(module) is value.__globals__


def _config_changes() -> dict[str, Any]:
    """Return the compiler's options that are not as torch sets them, of what has been imported."""
    return {
        f"{name}:{key}": value
        for name in _CONFIGS
        if name in sys.modules
        for key, value, own in _options(sys.modules[name])
        if value != own
    }


def _options(config: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, value and torch's own value of each plain option that was ever set."""
    for key, entry in config._config.items():
        if config._is_default(key):
            continue  # nearly all of them, and quick to tell
        # Reading a deprecated option warns; before torch 2.12 there are none.
        is_deprecated = getattr(entry, "deprecated", False)
        if entry.alias is None and entry.justknob is None and not is_deprecated:
            own = _own_value(entry)
            if isinstance(own, bool | int | float | str | None):
                yield key, getattr(config, key, own), own


def _own_value(entry: Any) -> Any:
    given = (entry.env_value_force, entry.env_value_default, entry.default)
    return next(value for value in given if value is not _config_module._UNSET_SENTINEL)

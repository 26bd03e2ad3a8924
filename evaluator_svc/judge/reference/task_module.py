"""A task's reference as a live module: its text executed with one workload's sizes.

Whatever the reference raises becomes a `TaskInvalidError` that names the user's own line. The text
is the user's own, not a candidate's, and runs in the judge.
"""

import ast
import itertools
import linecache
import random
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from types import ModuleType
from typing import Any, Final

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from evaluator_svc.judge.memory_limit import memory_limit
from evaluator_svc.judge.reference.check_call import refusal_in
from evaluator_svc.judge.reference.formats import is_narrow
from evaluator_svc.judge.reference.zeroed_memory import ZeroedMemory
from evaluator_svc.judge.time_limit import TimeLimitError, time_limit
from evaluator_svc.sizes.size_places import override_places
from kernel_foundry.domain.task import Precision, Task, Workload
from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.task_source import missing_names, override_scalars, parse_reference

_CAST: Final = {
    Precision.FP32: torch.float32,
    Precision.FP16: torch.float16,
    Precision.BF16: torch.bfloat16,
}
"""What each precision casts inputs and weights to; without one they stay as they are."""

_CONSTRUCTION_SEED: Final = 20_260_101
"""Weights are drawn anew for every evaluation; this one only makes loading reproducible."""

_CHECK_SECONDS: Final = 10.0
"""Longest call of a task's check; a verdict makes a few."""

_CHECK_BYTES: Final = 1 << 30
"""Host memory that a check may always take."""

_CHECK_COPIES: Final = 8
"""A check may also take as much as so many copies of the tensors that it gets."""

_counter = itertools.count()


class TaskModule:
    """The reference of one task at the sizes and with the scalars of one workload.

    Args:
        task: The task; its reference is executed here.
        workload: One of its workloads.
        device: Where its parameters and inputs are made; the meta device gives shapes alone.

    Raises:
        TaskInvalidError: the text is no Python, lacks a name, or raises.
    """

    def __init__(self, task: Task, workload: Workload, device: torch.device) -> None:
        self.task = task
        self.workload = workload
        self.device = device
        self.cast = None if task.precision is None else _CAST[task.precision]
        self.rounding: torch.dtype = self.cast or torch.float32
        """The narrowest format that its operators round to; known once it ran."""
        self.output_roundings: tuple[torch.dtype, ...] = ()
        """The format that each output rounds to; known once it ran."""
        self.output_dtypes: tuple[torch.dtype, ...] = ()
        """The format of each output; known once it ran."""
        self.may_assert = False
        """Whether an operator checks values on the device; known once it ran."""
        self.names_places = False
        """Whether an operator names places of values, of which equal ones leave a choice; known
        once it ran."""
        self.cast_from: set[torch.dtype] = set()
        """Formats that were cast; known once its model and inputs were made."""
        self.frozen: frozenset[str] = frozenset()
        """Paths of parameters that are not to be trained; known once its model was made."""
        self.allows_tf32 = task.tf32 and device.type == "cuda"
        self._makes_on_device = device.type != "cpu"
        self._file_name = f"{task.name}-{task.digest[:12]}-{next(_counter)}.py"
        self._module = ModuleType(self._file_name.removesuffix(".py").replace(".", "_"))
        self._execute(_sized_tree(task, workload))

    @property
    def is_narrow(self) -> bool:
        """Whether any operator rounds its result to fewer bits than float32 has."""
        return is_narrow(self.rounding)

    @cached_property
    def model(self) -> nn.Module:
        """The reference's module in the task's mode, cast where the task asks for it.

        Made when first asked for.
        """
        model = self._make(
            "Model(*get_init_inputs())",
            lambda: self._module.Model(*self._get_init_inputs()),
            seed=_CONSTRUCTION_SEED,
        )
        if not isinstance(model, nn.Module):
            raise TaskInvalidError(f"{shown_name(self.task)}: Model is no torch.nn.Module")
        adopt_plain_tensors(model)
        self._note_casts([*model.parameters(), *model.buffers()])
        self.frozen = frozenset(p for p, v in model.named_parameters() if not v.requires_grad)
        model.to(device=self.device, dtype=self.cast)
        return model.train(self.task.training).requires_grad_(requires_grad=False)

    def init_values(self) -> list[Any]:
        """Return what `get_init_inputs` gives."""
        made = self._make("get_init_inputs()", self._get_init_inputs, seed=_CONSTRUCTION_SEED)
        return list(made)

    def input_values(self, seed: int) -> list[Any]:
        """Return what `get_inputs` gives under `seed`, floats cast where the task asks for it.

        What it makes without values, such as room for an output, holds zeros.
        """
        with torch.no_grad(), ZeroedMemory():
            values = self._make("get_inputs()", self._module.get_inputs, seed=seed)
        if not isinstance(values, list | tuple):
            raise TaskInvalidError(
                f"{shown_name(self.task)}: get_inputs() gives a {type(values).__name__};"
                " expected a list"
            )
        self._note_casts(tree_leaves(values))
        return [_placed(value, self.cast, self.device) for value in values]

    def input_shapes(self) -> list[Any]:
        """Return what `get_inputs` gives on the meta device: shapes without memory.

        Raises:
            TaskInvalidError: it needs real values.
        """
        with torch.device("meta"), self.user_code("get_inputs() on the meta device"):
            return list(self._module.get_inputs())

    def check(
        self,
        inputs: list[Any],
        expected: list[torch.Tensor],
        actual: list[torch.Tensor],
        *,
        time_share: float = 1.0,
    ) -> str:
        """Return what the task's check finds wrong with `actual`; "" where it finds nothing.

        `time_share`: of the time that a check may take.

        Raises:
            TaskInvalidError: the file has no such function, or it raises, returns something else,
                or takes more time or host memory than a check may.
        """
        name = self.task.check
        function = getattr(self._module, name, None)
        if not callable(function):
            raise TaskInvalidError(
                f"{shown_name(self.task)}: no function {name}", task=self.task.name
            )
        shown_bytes = sum(
            t.nbytes for t in tree_leaves([inputs, expected, actual]) if _is_tensor(t)
        )
        most_bytes = max(_CHECK_BYTES, _CHECK_COPIES * shown_bytes)
        try:
            with (
                self.user_code(f"{name}()"),
                torch.no_grad(),
                memory_limit(most_bytes),
                time_limit(time_share * _CHECK_SECONDS),
            ):
                said = function(inputs, expected, actual)
                return refusal_in(said, f"{shown_name(self.task)}: {name}()")
        except TimeLimitError as error:
            raise TaskInvalidError(
                f"{shown_name(self.task)}: {name}() is {error}", task=self.task.name
            ) from None

    @contextmanager
    def user_code(self, what: str) -> Iterator[None]:
        """Turn whatever the body raises into a `TaskInvalidError` naming the user's line."""
        try:
            yield
        except (TaskInvalidError, torch.OutOfMemoryError):
            raise
        except (Exception, SystemExit) as error:  # the user's code may raise anything
            raise TaskInvalidError(
                f"{shown_name(self.task)}: {what} raises {type(error).__name__}: {error}"
                f"{self._user_line(error)}",
                task=self.task.name,
            ) from error

    def close(self) -> None:
        """Forget the module, so that nothing keeps its tensors alive."""
        sys.modules.pop(self._module.__name__, None)
        linecache.cache.pop(self._file_name, None)

    def _get_init_inputs(self) -> Any:
        return getattr(self._module, "get_init_inputs", list)()

    def _make(self, what: str, make: Callable[[], Any], *, seed: int) -> Any:
        """Return what the user's `make` gives under `seed`, made on the device where it can be.

        Code that needs host memory (numpy, generators of its own) is run again without a default
        device, from then on for everything; the caller moves the result.
        """
        if self._makes_on_device:
            seed_all(seed, self.device)
            try:
                with self.user_code(what), self.device:
                    return make()
            except TaskInvalidError:
                self._makes_on_device = False
        seed_all(seed, self.device)
        with self.user_code(what):
            return make()

    def _note_casts(self, values: Iterable[Any]) -> None:
        floats = (v for v in values if isinstance(v, torch.Tensor) and v.is_floating_point())
        self.cast_from |= {v.dtype for v in floats if self.cast not in (None, v.dtype)}

    def _execute(self, tree: ast.Module) -> None:
        text = self.task.reference
        # Tracebacks and torch.compile look the source up by file name.
        linecache.cache[self._file_name] = (
            len(text),
            None,
            text.splitlines(keepends=True),
            self._file_name,
        )
        # Dataclasses and torch.compile look the module up by name.
        sys.modules[self._module.__name__] = self._module
        seed_all(_CONSTRUCTION_SEED, self.device)
        with self.user_code("the file"):
            exec(compile(tree, self._file_name, "exec"), self._module.__dict__)

    def _user_line(self, error: BaseException) -> str:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename == self._file_name]
        if not own:
            return ""
        return f" (line {own[-1].lineno}: {(own[-1].line or '').strip()})"


def seed_all(seed: int, device: torch.device) -> None:
    """Seed every global generator that a reference on `device` may draw from."""
    # torch.manual_seed would note the stack of each call, for devices that nobody opens.
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed_all(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  references draw from the global one


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _placed(value: Any, cast: torch.dtype | None, device: torch.device) -> Any:
    """Return `value` with its tensors on `device`, floating-point ones cast where asked."""
    if isinstance(value, torch.Tensor):
        return value.to(device=device, dtype=cast if value.is_floating_point() else None)
    if isinstance(value, list | tuple):
        return [_placed(item, cast, device) for item in value]
    return value


def adopt_plain_tensors(model: nn.Module) -> None:
    """Make tensors that are plain attributes buffers, so that they are named, cast and copied."""
    for module in model.modules():
        plain = [name for name, value in vars(module).items() if type(value) is torch.Tensor]
        for name in plain:
            value = vars(module).pop(name)
            module.register_buffer(name, value.detach(), persistent=False)


def shown_name(task: Task) -> str:
    """Return what messages call a task; one that came by gRPC may have no name."""
    return task.name or "task.reference"


def _sized_tree(task: Task, workload: Workload) -> ast.Module:
    file_name = f"{task.name}.py" if task.name else shown_name(task)
    tree = parse_reference(task.reference, file_name=file_name)
    if missing := missing_names(tree):
        raise TaskInvalidError(
            f"{shown_name(task)}: no {' and no '.join(missing)} in the reference", task=task.name
        )
    return override_scalars(override_places(tree, workload.sizes), task.scalars_of(workload))

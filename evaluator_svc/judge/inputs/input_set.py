"""One seed's inputs, parameters and buffers, and the reference bound to them.

The tensors here are the judge's private, pristine copies; no candidate can reach them. Expected
outputs are computed when first asked for, which the judge does only after the candidate ran.
"""

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, Literal, Self

import torch
from torch import nn
from torch.utils._pytree import tree_map

from evaluator_svc.judge.inputs.parameters import ParameterRule, new_parameters
from evaluator_svc.judge.reference.arguments import Arguments, read_arguments
from evaluator_svc.judge.reference.formats import WideningMode, widen_state, widened
from evaluator_svc.judge.reference.task_module import TaskModule, seed_all
from evaluator_svc.judge.reference.tf32 import tf32_allowed
from kernel_foundry.errors import TaskInvalidError


class InputSet:
    """Everything that one seed decides.

    Args:
        module: The loaded reference.
        rules: How its parameters are drawn.
        seed: The same seed gives the same tensors.
        change: Applied to every input tensor; gives one of the same shape and type.
    """

    def __init__(
        self,
        module: TaskModule,
        rules: tuple[ParameterRule, ...],
        seed: int,
        *,
        change: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        self.module = module
        self.seed = seed
        values = module.input_values(seed)
        arguments = read_arguments(module.model, values, module.workload.sizes)
        if change is not None:
            changed = tuple(map(change, arguments.tensors))
            arguments = dataclasses.replace(arguments, tensors=changed)
        self.arguments: Arguments = arguments
        self.state = new_parameters(rules, seed)
        self._own: tuple[torch.Tensor, ...] | None = None
        self._expected: tuple[torch.Tensor, ...] | None = None
        self.is_stepped = False
        """Whether values of inputs that are far from zero are equal or far from each other, so that
        rounding tells none of them apart."""
        self._is_changed = False
        self._is_admitted = False
        self._refusal: TaskInvalidError | Literal[False] | None = None
        """How the trial on the host ended; None: it was not made."""

    @property
    def inputs(self) -> tuple[torch.Tensor, ...]:
        """Input tensors, in order of forward's arguments."""
        return self.arguments.tensors

    @property
    def pristine(self) -> tuple[torch.Tensor, ...]:
        """Inputs, parameters, buffers: the order of the name table."""
        return (*self.inputs, *self.state.values())

    def with_values(
        self, inputs: Sequence[torch.Tensor], state: Mapping[str, torch.Tensor]
    ) -> Self:
        """Return the same reference on other inputs and parameters."""
        other = copy.copy(self)
        other.arguments = dataclasses.replace(self.arguments, tensors=tuple(inputs))
        other.state = dict(state)
        other._own = other._expected = other._refusal = None
        other._is_changed = True
        return other

    def as_stepped(self) -> Self:
        """Return the same, of which `is_stepped` holds."""
        other = copy.copy(self)
        other.is_stepped = True
        return other

    def as_admitted(self) -> Self:
        """Return the same, of values that an admission has tried, as all that is made of it."""
        other = copy.copy(self)
        other._is_admitted = True
        return other

    def with_inputs(self, inputs: Sequence[torch.Tensor]) -> Self:
        """Return the same with other inputs; itself where each of them is its own tensor."""
        if all(new is old for new, old in zip(inputs, self.inputs, strict=True)):
            return self
        return self.with_values(inputs, self.state)

    def expected(self) -> tuple[torch.Tensor, ...]:
        """Return the reference's outputs, computed at the first call.

        What rounds to fewer bits than float32 has is computed in float32 from the rounded inputs,
        so that a candidate that accumulates more exactly than eager PyTorch is not marked down
        for it; for the same reason without TF32, whatever the task allows.
        """
        if self._expected is None:
            exact = self.run(dtype=torch.float32)
            if self.module.is_narrow:
                dtypes = self.module.output_dtypes
                if len(dtypes) != len(exact):
                    dtypes = tuple(output.dtype for output in self.own())
                exact = tuple(o.to(d) for o, d in zip(exact, dtypes, strict=True))
            self._expected = exact
        return self._expected

    def own(self) -> tuple[torch.Tensor, ...]:
        """Return what `run` gives without replacements, computed at the first call.

        Raises:
            TaskInvalidError: as `run`.
        """
        if not self.module.is_narrow and not self.module.allows_tf32:
            return self.expected()
        if self._own is None:
            self._own = self.run()
        return self._own

    def run(
        self,
        *,
        dtype: torch.dtype | None = None,
        inputs: Sequence[torch.Tensor] | None = None,
        state: Mapping[str, torch.Tensor] | None = None,
        random_seed: int | None = None,
    ) -> tuple[torch.Tensor, ...]:
        """Return contiguous outputs of the reference, with parts of it replaced where given.

        In TF32 where the task allows it, unless `dtype` asks for all of a type's bits: then
        nothing is computed in fewer bits than that has.

        Other values than those drawn are tried on the host first, unless they are admitted.

        Raises:
            TaskInvalidError: the reference raises, changes its inputs, or gives something
                other than tensors.
        """
        if inputs is not None or state is not None:
            return self.with_values(
                self.inputs if inputs is None else inputs, self.state if state is None else state
            ).run(dtype=dtype, random_seed=random_seed)
        if self._is_changed and not self._is_admitted:
            self._try_on_host()
        values = self.arguments.values(self.inputs)
        model = with_state(self.module.model, self.state)
        mode: AbstractContextManager[object] = nullcontext()
        if dtype is torch.float64 or (dtype is not None and self.module.is_narrow):
            values = tree_map(partial(widened, dtype=dtype), values)
            model, mode = widen_state(model, dtype), WideningMode(dtype)
        seed_all(self.seed if random_seed is None else random_seed, self.module.device)
        tf32 = tf32_allowed(self.module.device, allowed=dtype is None and self.module.allows_tf32)
        with (
            self.module.user_code("forward()"),
            torch.no_grad(),
            tf32,
            mode,
            self._unchanged(),
        ):
            outputs = list(flatten_outputs(model(*values)))
            if self.module.device.type == "cuda":
                # A fault on the device shows when it is waited for, and is the reference's.
                torch.cuda.synchronize(self.module.device)
        return tuple(output.detach().contiguous() for output in outputs)

    def is_taken(self) -> bool:
        """Return whether the reference runs on these values, tried on the host."""
        try:
            self._try_on_host()
        except TaskInvalidError:
            return False
        return True

    def _try_on_host(self) -> None:
        """Run a GPU's reference on the host, once, if an operator of it checks values.

        A GPU's own assertion, as on a probability beyond 1, would end the judge's context. Others
        are not tried: a whole network takes seconds on the host.

        Raises:
            TaskInvalidError: as `run`.
        """
        if not self.module.may_assert or self.module.device.type == "cpu":
            return
        if self._refusal is None:
            self._refusal = False
            host = TaskModule(self.module.task, self.module.workload, torch.device("cpu"))
            try:
                self._on(host).run(dtype=torch.float32)
            except TaskInvalidError as error:
                self._refusal = error
            finally:
                host.close()
        if self._refusal:
            raise self._refusal

    def _on(self, host: TaskModule) -> Self:
        other = self.with_values(
            [tensor.cpu() for tensor in self.inputs],
            {path: tensor.cpu() for path, tensor in self.state.items()},
        )
        other.module = host
        return other

    def callable_model(self) -> tuple[nn.Module, list[Any]]:
        """Return the reference bound to this seed's parameters, and its arguments."""
        return with_state(self.module.model, self.state), self.arguments.values(self.inputs)

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        versions = [tensor._version for tensor in self.inputs]
        yield
        for name, tensor, version in zip(self.arguments.names, self.inputs, versions, strict=True):
            if tensor._version != version:
                raise TaskInvalidError(
                    f"{self.module.task.name}: forward() changes its input {name!r} in place;"
                    " write it without in-place operations on inputs"
                )


def with_state(model: nn.Module, state: Mapping[str, torch.Tensor]) -> nn.Module:
    """Return a copy of `model` that uses the parameters of `state` without copying them.

    Buffers are copied: forward in training mode changes running statistics. On a GPU the weights
    of recurrent layers are copied too, into one piece.
    """
    memo: dict[int, Any] = {
        id(parameter): nn.Parameter(state[path], requires_grad=False)
        for path, parameter in model.named_parameters()
    }
    memo |= {id(buffer): state[path].clone() for path, buffer in model.named_buffers()}
    bound = copy.deepcopy(model, memo)
    for part in bound.modules():
        if isinstance(part, nn.RNNBase):
            # cuDNN takes its weights in one piece and would gather them at every call.
            with torch.no_grad():
                part.flatten_parameters()
    return bound


def flatten_outputs(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of what forward gives, in order.

    Raises:
        TaskInvalidError: there is something else in it.
    """
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple) and value:
        for item in value:
            yield from flatten_outputs(item)
    else:
        raise TaskInvalidError(
            f"forward() gives a {type(value).__name__}; expected a tensor, or a tuple or list"
            " of tensors"
        )

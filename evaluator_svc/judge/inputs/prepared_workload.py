"""A workload made ready once: loaded reference, name table, layout.

What stays the same over all evaluations of a task.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.output_formats import output_roundings
from evaluator_svc.judge.inputs.parameters import (
    ParameterRule,
    dense,
    fixed,
    new_parameters,
    parameter_rules,
)
from evaluator_svc.judge.inputs.telling_mantissas import with_telling_mantissas
from evaluator_svc.judge.memory.layout import lay_out
from evaluator_svc.judge.memory.peak import torch_peak
from evaluator_svc.judge.reference.flop_count import FlopCount
from evaluator_svc.judge.reference.formats import narrowest, same_values
from evaluator_svc.judge.reference.indexed_values import PLACING
from evaluator_svc.judge.reference.input_uses import InputTrace, InputUses, asks_of_floats
from evaluator_svc.judge.reference.name_table import named_scalars, named_tensors
from evaluator_svc.judge.reference.operators import OperatorLog
from evaluator_svc.judge.reference.self_differences import COMPARING, SUBTRACTING, SelfDifferences
from evaluator_svc.judge.reference.task_module import TaskModule
from evaluator_svc.judge.reference.traits import ReferenceTraits
from evaluator_svc.judge.tensors.structure import structures, zeros_lie_alike
from evaluator_svc.judge.tensors.tensor_parts import all_finite
from evaluator_svc.messages.draw import OUTPUT_SLOTS
from evaluator_svc.sizes.memory_needs import WorkloadSizes, full_need
from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import TaskInvalidError

P = ParamSpec("P")
T = TypeVar("T")

KEPT_SHARE = 0.5
"""A workload is large when judging it with every copy needs more of the memory."""

_BLOCK_BYTES = 1 << 27

PREPARATION_SEED = 7
"""Any seed will do: the sets drawn from it decide shapes, never a verdict."""

_LIGHT_BYTES = 1 << 26
"""Most bytes of inputs, parameters and outputs of a workload for which one thread is enough."""
_LIGHT_FLOPS = 1 << 27
"""Most operations of the products of such a workload."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CodeShare:
    """The share of an output's whole numbers that rounding decides, found in `rounded_codes.py`."""

    by_rounding: float = 0.0
    """That one rounding error moves, in proportion to what many move."""
    on_borders: float = 0.0
    """That lies exactly on borders, and that one rounding error moves."""


class PreparedWorkload:
    """One workload of a task, loaded.

    Args:
        task: The task.
        workload: One of its workloads.
        device: Where the reference runs.
        memory_bytes: Memory that an evaluation can have.

    Raises:
        TaskInvalidError: the reference cannot be loaded or run.
    """

    def __init__(
        self, task: Task, workload: Workload, *, device: torch.device, memory_bytes: int
    ) -> None:
        self.task = task
        self.workload = workload
        self._kept: dict[int, InputSet] | None = None
        """Sets by their seeds, while they are kept."""
        self.module = TaskModule(task, workload, device)
        model = self.module.model  # which says what is frozen
        self.rules = parameter_rules(model, self.module.frozen)
        sample = self.input_set(PREPARATION_SEED)
        with (
            torch_peak(device) as peak,
            FlopCount() as flops,
            OperatorLog() as computed,
        ):
            outputs = sample.run()
        self.module.rounding = narrowest(computed.dtypes)
        self.module.output_dtypes = tuple(output.dtype for output in outputs)
        self.product_flops = dict(flops.of_operators)
        """Floating-point operations of products, by the names of their operators."""
        self.traits = ReferenceTraits(computed)
        self.module.may_assert = self.traits.may_assert
        self.module.names_places = not PLACING.isdisjoint(computed.operators)
        self.module.output_roundings = output_roundings(sample, outputs, self.module.rounding)
        self._has_exact_outputs = not all(o.is_floating_point() for o in outputs)
        self._has_float_outputs = any(o.is_floating_point() for o in outputs)
        self.tensors = named_tensors(model, sample.arguments, outputs)
        self._require_constants()
        self.rules = self._settled_rules(sample, outputs)
        self.scalars = named_scalars(model, sample.arguments, self.tensors)
        self.sizes = self._sizes(peak.bytes)
        self.is_light = (
            self.sizes.set_bytes <= _LIGHT_BYTES
            and flops.of_operators.total() <= _LIGHT_FLOPS
            and not self.traits.has_uncounted_products
        )
        """Whether a thread alone runs the reference and compares with it in a few milliseconds."""
        self.slots, self.size_bytes = lay_out(self.tensors, output_slots=OUTPUT_SLOTS)
        self.lean_slots, self.lean_size_bytes = lay_out(self.tensors, output_slots=1)
        self.is_large = full_need(self.sizes, pool_bytes=0).bytes > KEPT_SHARE * memory_bytes
        """Whether admission does without copies."""
        self._answers = dict[object, Any]()
        """What `once` was asked for."""
        self.redrawn: tuple[str, ...] | None = None
        """The type with which each input and parameter is redrawn before a timed call; None until
        `call_inputs.py` has found out."""
        self.code_shares: tuple[CodeShare, ...] | None = None
        """Share of each output's whole numbers that rounding decides; None until
        `rounded_codes.py` has found out."""
        self._exact_seconds: list[float] = []

    def once(
        self,
        find: "Callable[Concatenate[PreparedWorkload, P], T]",
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return what `find` gives of the workload and the arguments, found at the first call."""
        key = (find, args, tuple(kwargs.items()))
        if key not in self._answers:
            self._answers[key] = find(self, *args, **kwargs)
        answer: T = self._answers[key]
        return answer

    def input_set(self, seed: int, *, is_telling: bool = False, in_place: bool = False) -> InputSet:
        """Return inputs and parameters drawn from `seed`.

        Args:
            seed: The same seed gives the same tensors.
            is_telling: With mantissas that tell of rounding to 16 bits. Not where all outputs are
                whole numbers, which have no errors to tell.
            in_place: Whether to give inputs these mantissas where they lie.
        """
        if not is_telling or not self._has_float_outputs:
            return InputSet(self.module, self.rules, seed)
        own = self.own_inputs if in_place else itertools.repeat(object=False)
        numbered = zip(itertools.count(), own)

        def change(tensor: torch.Tensor) -> torch.Tensor:
            number, is_own = next(numbered)
            return self._telling(tensor, number, seed, in_place=is_own)

        drawn = InputSet(self.module, self.rules, seed, change=change)
        drawn.state = self.telling_state(drawn.state, seed)
        return drawn

    def shared_set(self, seed: int) -> InputSet:
        """Return `input_set(seed)`, to be read only: the one of before while sets are kept."""
        if self._kept is None:
            return self.input_set(seed)
        if seed not in self._kept:
            self._kept[seed] = self.input_set(seed)
        return self._kept[seed]

    def telling_state(
        self, state: Mapping[str, torch.Tensor], seed: int
    ) -> dict[str, torch.Tensor]:
        """Return parameters and buffers with telling mantissas, where they are drawn anew.

        Changed where they lie: `state` is some of a draw's own, by path.
        """
        if not self._has_float_outputs:
            return dict(state)
        first = len(self._input_names)
        return {
            rule.path: state[rule.path]
            if rule.is_fixed
            else self._telling(state[rule.path], first + place, seed, in_place=True)
            for place, rule in enumerate(self.rules)
            if rule.path in state
        }

    def _telling(
        self, tensor: torch.Tensor, number: int, seed: int, *, in_place: bool = False
    ) -> torch.Tensor:
        names = (*self._input_names, *self._state_names)
        if names[number] in self.task.constants:
            return tensor
        # An index of one of several equal values is ambiguous.
        is_distinct = self._has_exact_outputs
        if is_distinct and structures(tensor):
            return tensor
        return with_telling_mantissas(
            tensor,
            seed + number,
            number=self._float_numbers[number],
            is_distinct=is_distinct,
            in_place=in_place,
        )

    @cached_property
    def _float_numbers(self) -> tuple[int, ...]:
        """How many tensors of the same kind are before each input, parameter and buffer."""
        roles = (TensorRole.INPUT, TensorRole.PARAMETER, TensorRole.BUFFER)
        floats = [t.dtype in ("float32", "float64") for t in self.tensors if t.role in roles]
        return tuple(itertools.accumulate((0, *floats)))

    @property
    def _input_names(self) -> tuple[str, ...]:
        return tuple(t.name for t in self.tensors if t.role is TensorRole.INPUT)

    @property
    def own_inputs(self) -> tuple[bool, ...]:
        """Which inputs are made anew by each draw; others are constants of the task's file."""
        return self._repetition[1]

    @property
    def fixed_inputs(self) -> tuple[bool, ...]:
        """Which inputs are the same under every seed."""
        return self._repetition[2]

    @property
    def known_inputs(self) -> tuple[bool, ...]:
        """Which inputs a kernel may know by heart: no seed changes a bit, nor do mantissas."""
        return self._repetition[3]

    @cached_property
    def inputs_with_zeros(self) -> tuple[bool, ...]:
        """Which inputs have zeros at the same places under every seed, and values elsewhere."""
        first, second = (self.shared_set(PREPARATION_SEED + more) for more in (0, 1))
        pairs = zip(first.inputs, second.inputs, self.fixed_inputs, strict=True)
        return tuple(not is_fixed and zeros_lie_alike(a, b) for a, b, is_fixed in pairs)

    @cached_property
    def input_uses(self) -> InputUses:
        """What the reference takes the whole numbers of its inputs for."""
        sample = self.shared_set(PREPARATION_SEED)
        trace = InputTrace(sample.inputs)
        with trace:
            sample.run()
        return trace.uses

    @property
    def float_uses(self) -> InputUses | None:
        """What the reference takes floats for besides numbers; None: nothing, by its operators."""
        return self.input_uses if asks_of_floats(self.traits.operators) else None

    @property
    def self_differences(self) -> frozenset[int]:
        """Which inputs, by their indices, the reference subtracts from themselves."""
        return self._self_uses[0]

    @property
    def self_comparisons(self) -> frozenset[int]:
        """Which inputs, by their indices, the reference compares with themselves."""
        return self._self_uses[1]

    @cached_property
    def _self_uses(self) -> tuple[frozenset[int], frozenset[int]]:
        if (SUBTRACTING | COMPARING).isdisjoint(self.traits.operators):
            return frozenset(), frozenset()
        sample = self.shared_set(PREPARATION_SEED)
        log = SelfDifferences(sample.inputs)
        with log:
            sample.run()
        return frozenset(log.found), frozenset(log.compared)

    @property
    def is_repeatable(self) -> bool:
        """Whether a seed decides inputs and parameters, so that they need not be kept."""
        return self._repetition[0]

    @cached_property
    def _repetition(self) -> tuple[bool, tuple[bool, ...], tuple[bool, ...], tuple[bool, ...]]:
        first, second = self.shared_set(PREPARATION_SEED), self.input_set(PREPARATION_SEED)
        is_same = all(
            a.shape == b.shape and _same_bytes(a, b)
            for a, b in zip(first.pristine, second.pristine, strict=True)
        )
        # Both are alive, so that what is made anew cannot lie in one place.
        places = [t.untyped_storage().data_ptr() for t in (*first.inputs, *second.inputs)]
        own = (places.count(place) == 1 for place in places[: len(first.inputs)])
        del second
        other = self.shared_set(PREPARATION_SEED + 1)
        fixed = tuple(same_values(a, b) for a, b in zip(first.inputs, other.inputs, strict=True))
        del other
        known = tuple(
            is_fixed
            and (not self._has_float_outputs or same_values(a, self._telling(a, number, 0)))
            for number, (a, is_fixed) in enumerate(zip(first.inputs, fixed, strict=True))
        )
        return is_same, tuple(own), fixed, known

    @property
    def kept_weights(self) -> tuple[str, ...]:
        """Names of floating-point parameters and buffers that are never of unusual values.

        But for constants of the task, which says so itself.
        """
        return tuple(
            name
            for name, rule in zip(self._state_names, self.rules, strict=True)
            if rule.base.is_floating_point()
            and not rule.is_free
            and name not in self.task.constants
        )

    @property
    def _state_names(self) -> tuple[str, ...]:
        roles = (TensorRole.PARAMETER, TensorRole.BUFFER)
        return tuple(t.name for t in self.tensors if t.role in roles)

    def _require_constants(self) -> None:
        names = (*self._input_names, *self._state_names)
        for name in self.task.constants:
            if name not in names:
                raise TaskInvalidError(
                    f"{self.task.name}: constants: no input, parameter or buffer {name!r}; there"
                    f" are {', '.join(names)}"
                )

    def _settled_rules(
        self, sample: InputSet, outputs: Sequence[torch.Tensor]
    ) -> tuple[ParameterRule, ...]:
        """Return the rules with the task's constants, and without zeros where that is defined."""
        rules = tuple(
            fixed(rule) if name in self.task.constants else rule
            for name, rule in zip(self._state_names, self.rules, strict=True)
        )
        filled = tuple(map(dense, rules))
        if all(new is old for new, old in zip(filled, rules, strict=True)):
            return rules
        state = new_parameters(filled, PREPARATION_SEED)
        try:
            found = sample.run(state=state)
        except TaskInvalidError:
            return rules
        is_defined = [
            all_finite(a) or not all_finite(b) for a, b in zip(found, outputs, strict=True)
        ]
        return filled if all(is_defined) else rules

    def _sizes(self, reference_bytes: int) -> WorkloadSizes:
        """Return the sizes; what is expected of 16 bits is computed in float32 besides."""
        sizes = WorkloadSizes.of(self.tensors, reference_bytes=reference_bytes)
        if not self.module.is_narrow:
            return sizes
        needed = 2 * (sizes.source_bytes + sizes.reference_bytes) + sizes.output_bytes
        return dataclasses.replace(sizes, reference_bytes=needed)

    def note_exact_seconds(self, seconds: float) -> None:
        """Keep how long the reference took in float64."""
        self._exact_seconds.append(seconds)

    def exact_seconds(self, trials: int) -> float:
        """Return the shortest time of the reference in float64; 0 until `trials` are known."""
        known = self._exact_seconds
        return min(known) if len(known) >= trials else 0.0

    def close(self) -> None:
        """Forget the loaded reference."""
        self.module.close()


@contextmanager
def keeping_sets(prepared: Iterable[PreparedWorkload]) -> Iterator[None]:
    """While active, keep the shared sets of workloads, with what the reference gives on them.

    Those of a large workload are drawn at each use: there is no memory for several.
    """
    chosen = [item for item in prepared if item._kept is None and not item.is_large]
    for item in chosen:
        item._kept = {}
    try:
        yield
    finally:
        for item in chosen:
            item._kept = None


def _same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    flat = (t.reshape(-1).view(torch.uint8) for t in (a, b))
    parts = zip(*(torch.split(t, _BLOCK_BYTES) for t in flat), strict=True)
    return all(torch.equal(x, y) for x, y in parts)

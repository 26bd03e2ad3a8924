"""A found backward pass: which of its tensors are which of the forward pass's."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from kernel_foundry.domain.admission import NamedTensor, TensorRole, WorkloadAdmission
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.export.winner import Winner, tensors_of
from kernel_foundry.sdk.gradient_source import gradient_of

_WEIGHTS = (TensorRole.PARAMETER, TensorRole.BUFFER)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardPass:
    """Winners of runs whose task is the gradient of a forward pass."""

    winners: tuple[Winner, ...]
    """Those that come first are tried first."""
    grads: tuple[str, ...]
    """What plans call the gradients by results of the forward pass, in order."""
    gradients: tuple[tuple[str, str], ...]
    """Results by their names in plans, each with the input or parameter that it is by."""
    results: tuple[str, ...]
    """Names of the forward pass's results."""

    def of_forward(self, winner: Winner) -> Winner:
        """Return one of the winners with workloads as they are of the forward pass."""
        workloads = tuple(self._of_forward(w) for w in winner.admission.workloads)
        return replace(winner, admission=replace(winner.admission, workloads=workloads))

    def _of_forward(self, workload: WorkloadAdmission) -> WorkloadAdmission:
        results = dict(zip(self.grads, self.results, strict=True))
        inputs = tensors_of(workload, TensorRole.INPUT)
        return replace(
            workload,
            tensors=(
                *(t for t in inputs if t.name not in results),
                *tensors_of(workload, *_WEIGHTS),
                *(
                    replace(t, name=results[t.name], role=TensorRole.OUTPUT)
                    for t in inputs
                    if t.name in results
                ),
            ),
        )


def backward_pass(forward: Winner, winners: Sequence[Winner]) -> BackwardPass:
    """Return the winners of runs as the backward pass of a forward pass.

    Raises:
        InvalidArgumentError: one of them is not its gradient, or nobody can tell which of its
            results is which gradient.
    """
    first = forward.workloads[0]
    results = tensors_of(first, TensorRole.OUTPUT)
    found = [_names(forward, winner) for winner in winners]
    if any(names != found[0] for names in found):
        raise _refused("the runs give gradients of different inputs and parameters")
    if len({winner.record.task.tolerance is None for winner in winners}) > 1:
        raise _refused("some of the runs have a tolerance by hand, which is of another unit")
    grads, gradients = found[0]
    return BackwardPass(
        winners=tuple(winners),
        grads=grads,
        gradients=gradients,
        results=tuple(t.name for t in results),
    )


def _names(forward: Winner, winner: Winner) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Names of the gradients that it takes, and of those that it gives with what they are by."""
    task, own = winner.record.task, forward.record.task
    wanted = gradient_of(task.reference, own.reference)
    if wanted is None:
        raise _refused(
            f"{one_line(task.name)} is not the gradient of {one_line(own.name)}: its task file has"
            " to be the same text, with `backward` in the sidecar"
        )
    if task.check or not task.compare:
        raise _refused(f"{one_line(task.name)} has a check of its own, which no file can ask")
    first = forward.workloads[0]
    inputs = tensors_of(first, TensorRole.INPUT)
    weights = tensors_of(first, *_WEIGHTS)
    results = tensors_of(first, TensorRole.OUTPUT)
    asked = [
        *(t for t in inputs if _is_float(t) and (not wanted or t.name in wanted)),
        *(
            t
            for t in weights
            if t.role is TensorRole.PARAMETER and (not wanted or t.path in wanted)
        ),
    ]
    pairs: list[tuple[str, str]] = []
    for workload in winner.workloads:
        given = tensors_of(workload, TensorRole.INPUT)
        taken = (*given[: len(inputs)], *tensors_of(workload, *_WEIGHTS))
        if [_kind(t) for t in taken] != [_kind(t) for t in (*inputs, *weights)]:
            raise _refused("its inputs and weights have other names or types than forward's")
        grads = given[len(inputs) :]
        if [t.dtype for t in grads] != [t.dtype for t in results]:
            raise _refused("a result of forward has no gradient")
        known = {t.name: (t.shape, t.dtype) for t in taken}
        outputs = tensors_of(workload, TensorRole.OUTPUT)
        for output, by in zip_longest(outputs, asked):
            found = None if output is None else (output.shape, output.dtype)
            if by is None or found != known[by.name]:
                raise _refused(
                    "its results are not the gradients by "
                    f"{', '.join(t.path or t.name for t in asked)}: "
                    "name those that are wanted, as in `backward: [x, weight]`"
                )
        pairs = [(o.name, by.name) for o, by in zip(outputs, asked, strict=True)]
    return tuple(t.name for t in grads), tuple(pairs)


def _kind(tensor: NamedTensor) -> tuple[str, str, str]:
    return tensor.name, tensor.dtype, tensor.path


def _is_float(tensor: NamedTensor) -> bool:
    return tensor.dtype.startswith(("float", "bfloat"))


def _refused(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"no backward pass: {message}", field="backward")

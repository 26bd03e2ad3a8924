"""Work of a reference that its result does not need, found in its exported graph.

A candidate that leaves such work out is right, and its speed-up is partly the reference's doing.
Found from the graph alone (results never used, the same twice, reductions of one element, products
that are only added up) and from its values on two draws (operators that give back what they get,
results that no input changes). A guard against zeros, large values or NaN gives back what it gets
on every ordinary draw and is needed all the same, so what gives back is tried on those.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import fx, nn

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.reference.formats import computable
from evaluator_svc.judge.reference.operators import operator_name
from evaluator_svc.messages.products import PRODUCTS

_SAMPLE_ELEMENTS: Final = 4096
"""Most elements of a result that are kept to be compared between draws, evenly spaced."""

_SAME: Final = 1e-5
"""Difference that counts as none, in units of the larger root mean square."""

_LAYOUT: Final = frozenset({
    "alias", "broadcast_to", "cat", "chunk", "clone", "contiguous", "copy_", "detach", "detach_",
    "expand", "expand_as", "flatten", "getitem", "lift_fresh_copy", "movedim", "permute",
    "reshape", "select", "slice", "split", "squeeze", "stack", "t", "to", "_to_copy", "transpose",
    "type_as", "unbind", "unflatten", "unsqueeze", "view", "view_as", "_unsafe_view", "float",
    "half",
})  # fmt: skip
"""Operators that compute nothing, and mostly cost nothing."""

_CREATION: Final = frozenset({
    "arange", "empty", "empty_like", "eye", "fill", "full", "full_like", "new_empty", "new_full",
    "new_ones", "new_zeros", "ones", "ones_like", "scalar_tensor", "zeros",
    "zeros_like",
})  # fmt: skip
"""Operators that take a shape and no values."""

_RANDOM: Final = frozenset({
    "bernoulli", "dropout", "dropout_", "feature_dropout", "alpha_dropout", "normal", "rand",
    "rand_like", "randint", "randn", "randn_like", "randperm", "rrelu", "uniform",
})  # fmt: skip

_LINEAR_PRODUCTS: Final = PRODUCTS - {"einsum"}
"""Products that a sum of their results can be taken before: einsum may be anything."""

_LINEAR: Final = frozenset({"add", "add_", "sub", "sub_", "neg"})
"""Operators that a sum passes through whatever they take."""

_SCALING: Final = frozenset({"mul", "mul_", "div", "div_"})
"""Operators that a sum passes through when they take a number."""

_SUMS: Final = frozenset({"mean", "sum"})

_NORMALISING: Final = frozenset({
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "log_softmax", "rms_norm",
})  # fmt: skip
"""Operators that give back what is normalised already, but for rounding."""

_OVER_AXES: Final = frozenset({
    "amax", "amin", "argmax", "argmin", "cumsum", "log_softmax", "logsumexp", "max", "mean", "min",
    "prod", "softmax", "std", "sum", "var",
})  # fmt: skip
"""Operators whose second argument is an axis, or several."""

_CONSEQUENCE: Final = "a candidate that leaves it out is right, so leave it out of the reference"


def find_redundancies(
    prepared: PreparedWorkload,
    program: torch.export.ExportedProgram,
    seeds: tuple[int, int],
) -> tuple[str, ...]:
    """Return a sentence for each piece of work that the results of a reference do not need.

    Args:
        prepared: A workload; the smaller, the cheaper.
        program: Its reference as torch.export follows it.
        seeds: Of the two draws that results are compared between.
    """
    sets = [prepared.shared_set(seed) for seed in seeds]
    try:
        nodes, runs = _observe(program, sets, sets[0].state)
        _, starting = _observe(program, sets, _starting_state(prepared, sets[0]))
        constant = _constants(nodes, starting)
        giving = {k: v for k, v in _giving_back(nodes, runs) if k not in constant}
        if giving:
            unusual = [
                run for change in _UNUSUAL for run in _observe_changed(program, sets[0], change)
            ]
            still = dict(_giving_back(nodes, [*runs, *unusual]))
            giving = {k: v for k, v in giving.items() if k in still}
    except (RuntimeError, AssertionError):
        return ()  # the graph holds for the inputs alone that it was exported with
    reasons: dict[str, str] = {}
    for find in (_unused, _repeated, _over_one, _only_summed):
        reasons = dict(find(nodes)) | reasons
    reasons = dict(_independent(nodes, constant, starting[0])) | reasons
    reasons = giving | reasons
    return tuple(reasons[node.name] for node in nodes if node.name in reasons)


def _starting_state(prepared: PreparedWorkload, drawn: InputSet) -> dict[str, torch.Tensor]:
    """Return the weights as the model starts with them, but for zeros, which hide everything.

    Weights of one show what others hide: the mean of what was normalised is a constant.
    """
    return {
        rule.path: drawn.state[rule.path] if rule.zero_deviation else rule.base
        for rule in prepared.rules
    }


@dataclass(slots=True)
class _Run:
    """What was seen of one run, by the names of nodes."""

    given_back: dict[str, str] = field(default_factory=dict)
    """Name of the argument that a node gives back."""
    samples: dict[str, torch.Tensor] = field(default_factory=dict)
    """Some elements of each floating-point result."""
    scales: dict[str, float] = field(default_factory=dict)
    """Root mean square of a result's, or its first argument's, elements: the larger one."""
    follows_inputs: set[str] = field(default_factory=set)
    """Nodes that are computed from an input, whether or not it changes them."""


class _Observer(fx.Interpreter):
    """Runs a graph and looks at every result."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.seen = _Run()

    def run_node(self, n: fx.Node) -> Any:
        """Run a node; arguments that it changes are kept as they were."""
        if n.op != "call_function":
            result = super().run_node(n)
            if n.op == "placeholder":
                self.seen.follows_inputs.add(n.name)
            return result
        arguments = {a.name: self.env[a] for a in n.all_input_nodes}
        if _is_mutable(n):
            arguments = {
                k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in arguments.items()
            }
        result = super().run_node(n)
        follows = any(a.name in self.seen.follows_inputs for a in n.all_input_nodes)
        if follows and _name(n) not in _CREATION:
            self.seen.follows_inputs.add(n.name)
        if isinstance(result, torch.Tensor) and result.is_floating_point():
            self._look(n, result, arguments)
        return result

    def _look(self, n: fx.Node, result: torch.Tensor, arguments: dict[str, Any]) -> None:
        tensors = {
            name: value
            for name, value in arguments.items()
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel()
        }
        for name, value in tensors.items():
            scale = _rms(result) if _name(n) in _NORMALISING else 0.0
            if value.numel() == result.numel() and _is_same(
                value.reshape(result.shape), result, scale
            ):
                self.seen.given_back[n.name] = name
        stride = -(-result.numel() // _SAMPLE_ELEMENTS) or 1
        self.seen.samples[n.name] = result.flatten()[::stride].float().clone()
        first = next(iter(tensors.values()), result)
        self.seen.scales[n.name] = max(_rms(result), _rms(first))


def _observe(
    program: torch.export.ExportedProgram,
    sets: Sequence[InputSet],
    state: Mapping[str, torch.Tensor],
) -> tuple[list[fx.Node], list[_Run]]:
    """Return the operators, and what was seen of them on each set's inputs, all with `state`."""
    runs, nodes = [], []
    for drawn in sets:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch about constants of a gradient's graph
            module = program.module()
        assert isinstance(module, fx.GraphModule)
        _set_state(module, state)
        observer = _Observer(module)
        with torch.no_grad():
            observer.run(*drawn.arguments.values(drawn.inputs))
        runs.append(observer.seen)
        nodes = [node for node in module.graph.nodes if node.op == "call_function"]
    return nodes, runs


def _observe_changed(
    program: torch.export.ExportedProgram,
    drawn: InputSet,
    change: Callable[[torch.Tensor], torch.Tensor],
) -> list[_Run]:
    """Return what was seen on changed inputs and weights."""

    def changed(value: torch.Tensor) -> torch.Tensor:
        return change(value) if value.is_floating_point() else value

    state = {path: changed(value) for path, value in drawn.state.items()}
    inputs = [changed(value) for value in drawn.inputs]
    return _observe(program, [drawn.with_values(inputs, state)], state)[1]


def _with_non_finite(value: torch.Tensor) -> torch.Tensor:
    other = value.clone()
    other.view(-1)[::3] = math.nan
    other.view(-1)[1::3] = math.inf
    return other


_UNUSUAL: Final = (torch.zeros_like, lambda value: -1e3 * value, _with_non_finite)
"""What a guard such as an eps, a clamp or nan_to_num is there for."""


def _set_state(module: nn.Module, state: Mapping[str, torch.Tensor]) -> None:
    """Let a module use the tensors of `state`; buffers are copied, for running changes them."""
    for path, parameter in module.named_parameters():
        parameter.data = state[path]
    for path, buffer in list(module.named_buffers()):
        owner, _, name = path.rpartition(".")
        if path in state:
            module.get_submodule(owner)._buffers[name] = state[path].to(buffer.dtype).clone()


def _unused(nodes: Sequence[fx.Node]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        is_guard = _name(node).startswith(("_assert", "sym_"))
        if not (node.users or is_guard or _is_mutable(node) or _name(node) in _LAYOUT):
            yield node.name, f"the result of {_title(node)} is never used: {_CONSEQUENCE}"


def _repeated(nodes: Sequence[fx.Node]) -> Iterator[tuple[str, str]]:
    changed = {a for node in nodes if _is_mutable(node) for a in node.all_input_nodes}
    first: dict[str, fx.Node] = {}
    for node in nodes:
        name = _name(node)
        if name in _LAYOUT or name in _RANDOM or _is_mutable(node) or not node.all_input_nodes:
            continue
        if changed.intersection(node.all_input_nodes):
            continue
        key = f"{node.target} {node.args} {sorted(node.kwargs.items())}"
        if key in first:
            yield (
                node.name,
                f"{_title(node)} computes what {_title(first[key])} has computed: compute it once",
            )
        first.setdefault(key, node)


def _over_one(nodes: Sequence[fx.Node]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if _name(node) not in _OVER_AXES or len(node.args) < 2:
            continue
        shape = _shape(node.args[0])
        axes = node.args[1] if isinstance(node.args[1], list | tuple) else [node.args[1]]
        if not shape or not axes or not all(type(axis) is int for axis in axes):
            continue
        if all(shape[axis] == 1 for axis in axes if isinstance(axis, int)):
            yield (
                node.name,
                f"{_title(node)} works over axes of size one (shape {shape}): it changes nothing or"
                " makes a constant; choose the axis that was meant, or leave it out",
            )


def _giving_back(nodes: Sequence[fx.Node], runs: Sequence[_Run]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        source = runs[0].given_back.get(node.name)
        is_computed = source is not None and _name(node) not in _LAYOUT
        if is_computed and all(run.given_back.get(node.name) == source for run in runs):
            yield node.name, f"{_title(node)} gives back {source!r} as it is: {_CONSEQUENCE}"


def _constants(nodes: Sequence[fx.Node], runs: Sequence[_Run]) -> set[str]:
    """Return the names of results that are computed from inputs and the same in both runs."""
    constant: set[str] = set()
    for node in nodes:
        first, second = (run.samples.get(node.name) for run in runs[:2])
        if first is None or second is None or node.name not in runs[0].follows_inputs:
            continue
        if first.numel() and _is_same(first, second, runs[0].scales[node.name]):
            constant.add(node.name)
    return constant


def _independent(
    nodes: Sequence[fx.Node], constant: set[str], run: _Run
) -> Iterator[tuple[str, str]]:
    """Yield the first results on each way that no input changes."""
    for node in nodes:
        followed = {a.name for a in node.all_input_nodes if a.name in run.follows_inputs}
        if node.name in constant and not constant.issuperset(followed):
            yield (
                node.name,
                f"{_title(node)} gives the same whatever the inputs are, with the weights that the"
                " model starts with: what it is computed from is hardly needed; choose another"
                " operator or other sizes",
            )


def _only_summed(nodes: Sequence[fx.Node]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if _name(node) not in _LINEAR_PRODUCTS:
            continue
        follower = _sole_user(node)
        while follower is not None and _passes_sum(follower):
            follower = _sole_user(follower)
        if follower is not None and _name(follower) in _SUMS:
            yield (
                node.name,
                f"the result of {_title(node)} is only added up by {_title(follower)}: adding up"
                " an operand first takes a small part of the work; drop the sum, or put a"
                " non-linear operator between them",
            )


def _sole_user(node: fx.Node) -> fx.Node | None:
    return next(iter(node.users)) if len(node.users) == 1 else None


def _passes_sum(node: fx.Node) -> bool:
    name = _name(node)
    if name in _LAYOUT or name in _LINEAR:
        return True
    return name in _SCALING and not isinstance(node.args[1], fx.Node)


def _is_same(one: torch.Tensor, two: torch.Tensor, scale: float) -> bool:
    if one.shape != two.shape:
        return False
    one, two = computable(one), computable(two)
    if bool(((one == two) | (one.isnan() & two.isnan())).all()):
        return True
    return math.isfinite(scale) and bool((one.float() - two.float()).abs().max() <= _SAME * scale)


def _rms(value: torch.Tensor) -> float:
    return float(value.float().square().mean().sqrt()) if value.numel() else 0.0


def _shape(argument: Any) -> tuple[int, ...]:
    value = argument.meta.get("val") if isinstance(argument, fx.Node) else None
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


def _is_mutable(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _name(node: fx.Node) -> str:
    """Return an operator's name without name space and overload."""
    if isinstance(node.target, torch._ops.OpOverload):
        return operator_name(node.target)
    return getattr(node.target, "__name__", str(node.target))


def _title(node: fx.Node) -> str:
    return f"{_name(node)} (node {node.name!r})"

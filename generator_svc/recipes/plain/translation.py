"""From the reference's operator graph to the steps of a plain program, node by node."""

import ast
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from generator_svc.recipes.graph_reader import operator_name
from generator_svc.recipes.plain.constants import CONSTANTS
from generator_svc.recipes.plain.elementwise import ELEMENTWISE
from generator_svc.recipes.plain.languages import KINDS
from generator_svc.recipes.plain.library_calls import called
from generator_svc.recipes.plain.losses import LOSSES
from generator_svc.recipes.plain.movement import MOVEMENT
from generator_svc.recipes.plain.pooling import POOLING
from generator_svc.recipes.plain.products import PRODUCTS
from generator_svc.recipes.plain.program import Program, broadcast
from generator_svc.recipes.plain.reductions import REDUCTIONS
from generator_svc.recipes.plain.sizes import SymbolicSize, found_in, number_from
from generator_svc.recipes.plain.tensors import StoredTensor, Tensor
from generator_svc.recipes.unsupported import RecipeUnsupported
from kernel_foundry.domain.admission import Admission, GraphNode, TensorRole

OPERATORS: Final = {
    **ELEMENTWISE,
    **REDUCTIONS,
    **CONSTANTS,
    **MOVEMENT,
    **PRODUCTS,
    **POOLING,
    **LOSSES,
}
"""By PyTorch's name without "aten." and overload."""

_IGNORED: Final = frozenset(
    {"device", "pin_memory", "layout", "memory_format", "non_blocking", "copy", "requires_grad"}
)
"""Arguments that change no element."""

_VIEWS: Final = frozenset(
    {
        *("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "permute", "t"),
        *("transpose", "swapaxes", "swapdims", "numpy_T", "mT", "movedim", "expand", "expand_as"),
        *("broadcast_to", "broadcast_tensors", "slice", "narrow", "select", "split", "chunk"),
        *("split_with_sizes", "unbind", "getitem", "contiguous", "detach", "alias", "to"),
        *("type_as", "identity", "positive", "dropout", "feature_dropout", "alpha_dropout"),
    }
)
"""Operators whose result may share memory with their first argument."""


@dataclass(frozen=True, slots=True)
class _Node:
    name: str


@dataclass(frozen=True, slots=True)
class _Missing:
    """What could not be translated; only what reads it minds."""

    what: str


class _OperandMissing(RecipeUnsupported):
    """An operand that could not be translated; its message names what and where."""


class Translation:
    """The program of an admitted task.

    Args:
        admission: The task, with its graph in every workload.
        is_fused: See `Program`.
        library_ops: Operators that become library calls, by their names in plans.

    Raises:
        RecipeUnsupported: an operator, a data type or a size that no plain kernel does.
    """

    def __init__(
        self, admission: Admission, *, is_fused: bool, library_ops: Collection[str] = ()
    ) -> None:
        admission = admission.with_graphs
        workloads = admission.workloads
        self.program = Program(len(workloads), is_fused=is_fused)
        self._library_ops = library_ops
        self._graphs = [w.graph for w in workloads]
        if not all(self._graphs):
            raise RecipeUnsupported("what torch.export cannot follow")
        names = [[(n.name, n.op) for n in graph] for graph in self._graphs]
        if any(other != names[0] for other in names):
            raise RecipeUnsupported("a graph that differs between workloads")
        self._values: dict[str, Any] = {}
        self._bases: dict[str, str] = {}
        """Of what may be a view: the tensor whose memory it shares."""
        self._same: dict[str, list[str]] = {}
        """Nodes that are one tensor, by each of them."""
        self._known: list[SymbolicSize] = []
        self._name_tensors(admission)
        self._users = Counter(name for node in self._graphs[0] for name in _names_in(node))
        self._translate(admission)

    def _name_tensors(self, admission: Admission) -> None:
        first = admission.workloads[0].tensors
        for place, tensor in enumerate(first):
            each = [w.tensors[place].shape for w in admission.workloads]
            of = zip(range(len(tensor.shape)), zip(*each, strict=True), strict=True)
            is_weight = tensor.role in (TensorRole.PARAMETER, TensorRole.BUFFER)
            shape = tuple(
                self.program.size(values[0])
                if is_weight and len(set(values)) == 1
                else SymbolicSize(tuple(values), f"{tensor.name}.shape[{axis}]")
                for axis, values in of
            )
            if tensor.role is not TensorRole.OUTPUT:
                self._known += [size for size in shape if not size.is_literal]
            if tensor.dtype in KINDS:
                self._values[tensor.name] = self.program.named(tensor.name, tensor.dtype, shape)
            else:
                self._values[tensor.name] = _Missing(f"{tensor.dtype}, of {tensor.name}")

    def _translate(self, admission: Admission) -> None:
        outputs = [t.name for t in admission.workloads[0].tensors if t.role is TensorRole.OUTPUT]
        for place, node in enumerate(self._graphs[0]):
            if node.op == "output":
                results = list(_names_in(node))
                if len(results) != len(outputs):
                    raise RecipeUnsupported("an output that is not a tensor")
                for result, output in zip(results, outputs, strict=True):
                    self._put(result, output)
            elif node.op == "placeholder":
                self._values.setdefault(node.name, _Missing(f"the constant {node.name}"))
            else:
                self._values[node.name] = self._node(place, node)

    def _put(self, result: str, output: str) -> None:
        """Compute a result into its output."""
        target = self._tensor(_Node(output))
        value = self._tensor(_Node(result))
        assert isinstance(target, StoredTensor)  # a named tensor
        found = StoredTensor(shape=value.shape, kind=target.kind, name=output, dtype=target.dtype)
        self.program.put(value, found)

    def _node(self, place: int, node: GraphNode) -> Any:
        """Return a node's result, or what is missing for it."""
        name = operator_name(node).removeprefix("aten.")
        is_in_place = name.endswith("_") and not name.endswith("__")
        first = next(_names_in(node), "")
        if name in _VIEWS and first:
            self._bases[node.name] = self._bases.get(first, first)
        try:
            found = self._computed(place, node, name.removesuffix("_") if is_in_place else name)
        except _OperandMissing as missing:
            found = _Missing(str(missing))
        except RecipeUnsupported as unsupported:
            found = _Missing(_placed(str(unsupported), node))
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
            # Arguments of a form that the operator's kernel was not written for.
            found = _Missing(f"{operator_name(node)} with these arguments (node {node.name})")
        if is_in_place and first:
            found = self._overwritten(node, first, found)
        return found

    def _computed(self, place: int, node: GraphNode, name: str) -> Any:
        positional, named = self._arguments(place)
        if name == "getitem":
            found = positional[0][positional[1]]
            return _Missing(f"a result of {node.arguments[0][1:]}") if found is None else found
        if name == "broadcast_tensors":
            shape = broadcast([tensor.shape for tensor in positional[0]])
            return tuple(self.program.expand(tensor, shape) for tensor in positional[0])
        operator = OPERATORS.get(name)
        if operator is None:
            raise RecipeUnsupported(operator_name(node))
        found = called(self.program, name, node.dtype, (positional, named), self._library_ops,
                       operator)  # fmt: skip
        if found is None:
            found = operator(self.program, *positional, **named)
        return self._checked(place, node, found) if isinstance(found, Tensor) else found

    def _overwritten(self, node: GraphNode, target: str, found: Any) -> Any:
        """Give later readers of an operator's first argument its new value.

        Where others may see the same memory in another form, nobody may read it any more.
        """
        names = self._same.setdefault(target, [target])
        base = self._bases.get(target, target)
        views = [n for n, of in self._bases.items() if of == base or of in names]
        if views:
            found = _Missing(f"{operator_name(node)} on a part of a tensor")
        for name in (*names, *views, base):
            self._values[name] = found
        names.append(node.name)
        self._same[node.name] = names
        return found

    def _checked(self, place: int, node: GraphNode, found: Tensor) -> Tensor:
        """Return a result as its users read it, of the sizes that PyTorch gave it."""
        shapes = [graph[place].shape for graph in self._graphs]
        own = list(zip(*(size.values for size in found.shape), strict=True)) or [()] * len(shapes)
        if own != shapes:
            raise RecipeUnsupported(f"the sizes of {operator_name(node)}")
        if node.dtype not in KINDS:
            raise RecipeUnsupported(f"{node.dtype}, of {operator_name(node)}")
        found = self.program.cast(found, KINDS[node.dtype])
        return self.program.settle(found, self._users[node.name])

    def _arguments(self, place: int) -> tuple[list[Any], dict[str, Any]]:
        nodes = [graph[place] for graph in self._graphs]
        positional = zip(*(n.arguments for n in nodes), strict=True)
        named = zip(*(n.keywords for n in nodes), strict=True)
        return (
            [self._value([_parsed(text) for text in texts]) for texts in positional],
            {
                k[0].name: self._value([_parsed(keyword.value) for keyword in k])
                for k in named
                if k[0].name not in _IGNORED
            },
        )

    def _value(self, each: list[Any]) -> Any:
        """Return one argument, of which `each` workload has its own."""
        first = each[0]
        if isinstance(first, _Node):
            return self._result(first)
        if isinstance(first, list):
            return [self._value(list(items)) for items in zip(*each, strict=True)]
        if all(value == first for value in each):
            return first
        if all(isinstance(value, int) for value in each):
            return found_in(tuple(each), self._known)
        if all(type(value) in (int, float) for value in each):
            number = number_from(tuple(map(float, each)), self._known)
            return self.program.number(number)
        raise RecipeUnsupported("a constant that depends on the sizes")

    def _result(self, node: _Node) -> Any:
        value = self._values.get(node.name, _Missing(f"the constant {node.name}"))
        if isinstance(value, _Missing):
            raise _OperandMissing(value.what)
        return value

    def _tensor(self, node: _Node) -> Tensor:
        value = self._result(node)
        if not isinstance(value, Tensor):
            raise RecipeUnsupported("an output that is not a tensor")
        return value


def _placed(what: str, node: GraphNode) -> str:
    """What is missing, with its operator and node unless it names the operator itself."""
    operator = operator_name(node)
    return what if operator in what else f"{what}, in {operator} (node {node.name})"


def _names_in(node: GraphNode) -> Iterator[str]:
    """Yield the nodes that are arguments, once for each time."""

    def inside(value: Any) -> Iterator[str]:
        if isinstance(value, _Node):
            yield value.name
        elif isinstance(value, list):
            for item in value:
                yield from inside(item)

    for text in (*node.arguments, *(keyword.value for keyword in node.keywords)):
        yield from inside(_parsed(text))


def _parsed(text: str) -> Any:
    """Return an argument: a node, a Python literal, or a list of them."""
    marked = text.replace("%", "node._")  # a name may start with a digit
    return (
        _literal(ast.parse(marked, mode="eval").body) if "'" not in text else ast.literal_eval(text)
    )


def _literal(tree: ast.expr) -> Any:
    match tree:
        case ast.Attribute(attr=name):
            return _Node(name[1:])
        case ast.List(elts=items):
            return [_literal(item) for item in items]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_literal(inner)
        case ast.Name(id="inf" | "nan" as word):
            return float(word)
        case ast.Constant(value=value):
            return value
    raise RecipeUnsupported(f"an argument {ast.unparse(tree)}")

"""Reads an exported operator graph: arguments back to values, and checks all recipes need."""

import ast
from dataclasses import dataclass
from typing import Any

from generator_svc.recipes.unsupported import RecipeUnsupported
from kernel_foundry.domain.admission import Admission, GraphNode, TensorRole, WorkloadAdmission


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """An argument that is another node's result."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceGraph:
    """The operators of a task that recipes may try."""

    nodes: tuple[GraphNode, ...]
    """Without placeholders and output."""
    shapes: dict[str, tuple[int, ...]]
    """Of every node that is a tensor."""
    inputs: frozenset[str]
    """Names of the tensors that a plan may name."""
    parameters: frozenset[str]
    """Those of them that stay the same between calls: what `prepare` may read."""
    results: tuple[str, ...]
    """Nodes that are the outputs, in order."""
    outputs: tuple[str, ...]
    """Their name-table names: "out" or "out0", …"""
    workload_shapes: tuple[dict[str, tuple[int, ...]], ...]
    """Of every tensor that a plan may name, for each workload: what defaults are chosen for."""


def read_graph(admission: Admission) -> ReferenceGraph:
    """Return the task's operators.

    Raises:
        RecipeUnsupported: no graph, another data type than float32, or a constant that depends
            on the sizes of a workload.
    """
    admission = admission.with_graphs
    first = admission.workloads[0]
    if not first.graph:
        raise RecipeUnsupported("what torch.export cannot follow")
    for tensor in first.tensors:
        if tensor.dtype != "float32" and tensor.role is not TensorRole.BUFFER:
            raise RecipeUnsupported(f"{tensor.name} is {tensor.dtype}; recipes do float32 only")
    _check_same_everywhere(first, admission.workloads[1:])
    (end,) = [n for n in first.graph if n.op == "output"]
    results = tuple(a.name for a in map(parse_argument, end.arguments) if isinstance(a, Reference))
    outputs = tuple(t.name for t in first.tensors if t.role is TensorRole.OUTPUT)
    if len(results) != len(outputs):
        raise RecipeUnsupported("an output that is not a tensor")
    return ReferenceGraph(
        nodes=tuple(n for n in first.graph if n.op not in ("placeholder", "output")),
        shapes={n.name: n.shape for n in first.graph if n.dtype},
        inputs=frozenset(n.name for n in first.graph if n.op == "placeholder"),
        parameters=frozenset(t.name for t in first.tensors if t.role is TensorRole.PARAMETER),
        results=results,
        outputs=outputs,
        workload_shapes=tuple(
            {t.name: t.shape for t in workload.tensors} for workload in admission.workloads
        ),
    )


def parse_argument(text: str) -> Any:
    """Return a `Reference`, or the Python literal that `text` spells."""
    if text.startswith("%"):
        return Reference(name=text[1:])
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        # Lists of nodes, devices, memory formats: recipes that meet one refuse its operator.
        return text


def arguments(node: GraphNode) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and keyword arguments of a node."""
    positional = [parse_argument(a) for a in node.arguments]
    return positional, {k.name: parse_argument(k.value) for k in node.keywords}


def operator_name(node: GraphNode) -> str:
    """Return a node's operator without its overload, such as "aten.group_norm"."""
    return ".".join(node.op.split(".")[:2])


def _check_same_everywhere(first: WorkloadAdmission, others: tuple[WorkloadAdmission, ...]) -> None:
    """A literal that differs between workloads comes from a size and must not be baked in."""
    for other in others:
        for here, there in zip(first.graph, other.graph, strict=False):
            differs = (here.op, here.arguments, here.keywords) != (
                there.op,
                there.arguments,
                there.keywords,
            )
            # Normalised shapes are sizes; the recipes take the row's length at run time.
            if differs and "norm" not in here.op and not here.op.startswith("aten.view"):
                raise RecipeUnsupported(f"{here.op} has a constant that depends on the sizes")

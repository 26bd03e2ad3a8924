"""The reference's operator graph, as recipes and prompts read it.

Exported by torch.export without decomposition, so that a softmax stays a softmax.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import fx, nn
from torch.export.graph_signature import InputKind

from evaluator_svc.judge.reference.name_table import dtype_name
from kernel_foundry.domain.admission import GraphKeyword, GraphNode, NamedTensor, TensorRole
from kernel_foundry.errors import TaskInvalidError

_STATE_KINDS: Final = (InputKind.PARAMETER, InputKind.BUFFER)


def export_graph(
    model: nn.Module, values: Sequence[Any], tensors: Sequence[NamedTensor]
) -> tuple[GraphNode, ...]:
    """Return the operators of `model(*values)` in execution order.

    Raises:
        TaskInvalidError: torch.export cannot follow the reference (no reason to refuse it).
    """
    return graph_of(export_program(model, values), tensors)


def graph_of(
    program: torch.export.ExportedProgram, tensors: Sequence[NamedTensor]
) -> tuple[GraphNode, ...]:
    """Return the operators of an exported reference in execution order.

    Raises:
        TaskInvalidError: its sizes depend on values.
    """
    names = _node_names(program, tensors)
    with _exporting():  # sizes that depend on values show here
        return tuple(_node(node, names) for node in program.graph.nodes)


def operands(node: GraphNode) -> list[str]:
    """Return the names of the nodes that `node` reads, in the order of its arguments."""
    texts = (*node.arguments, *(keyword.value for keyword in node.keywords))
    return [part.strip("[] ,")[1:] for text in texts for part in text.split() if "%" in part]


def export_program(model: nn.Module, values: Sequence[Any]) -> torch.export.ExportedProgram:
    """Return `model(*values)` as torch.export follows it.

    Raises:
        TaskInvalidError: it cannot (no reason to refuse the task).
    """
    with _exporting(), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(model, tuple(values))
    # What gradients are taken of, or a branch: its inputs may be constants there.
    if any(node.op == "get_attr" for node in program.graph.nodes):
        raise TaskInvalidError("torch.export: a part of the reference is a graph of its own")
    return program


@contextmanager
def _exporting() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the exporter passes on whatever the reference raises
        first = str(error).strip().partition("\n")[0]
        raise TaskInvalidError(f"torch.export: {type(error).__name__}: {first}") from error


def _node_names(
    program: torch.export.ExportedProgram, tensors: Sequence[NamedTensor]
) -> dict[str, str]:
    """Return the name to print for each node: name-table names for placeholders."""
    by_path = {tensor.path: tensor.name for tensor in tensors if tensor.path}
    inputs = iter([tensor.name for tensor in tensors if tensor.role is TensorRole.INPUT])
    names: dict[str, str] = {}
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    for spec in program.graph_signature.input_specs:
        name = getattr(spec.arg, "name", "")
        if spec.kind in _STATE_KINDS and spec.target in by_path:
            names[name] = by_path[spec.target]
        elif spec.kind is InputKind.USER_INPUT and isinstance(values.get(name), torch.Tensor):
            names[name] = next(inputs, name)
    taken = set(names.values())
    for node in program.graph.nodes:
        if node.name not in names:
            names[node.name] = f"{node.name}_op" if node.name in taken else node.name
    return names


def _node(node: fx.Node, names: Mapping[str, str]) -> GraphNode:
    value = node.meta.get("val")
    tensor = value if isinstance(value, torch.Tensor) else None
    return GraphNode(
        name=names[node.name],
        op=_op_name(node),
        arguments=tuple(_spell(argument, names) for argument in _arguments(node)),
        keywords=tuple(
            GraphKeyword(name=name, value=_spell(argument, names))
            for name, argument in node.kwargs.items()
        ),
        dtype=dtype_name(tensor.dtype) if tensor is not None else "",
        shape=tuple(int(size) for size in tensor.shape) if tensor is not None else (),
    )


def _op_name(node: fx.Node) -> str:
    if node.op != "call_function":
        return node.op
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target)
    return getattr(node.target, "__name__", str(node.target))


def _arguments(node: fx.Node) -> Sequence[Any]:
    """Return positional arguments; those of the output node without the outer tuple."""
    if node.op == "output" and node.args and isinstance(node.args[0], list | tuple):
        return node.args[0]
    return node.args


def _spell(argument: Any, names: Mapping[str, str]) -> str:
    if isinstance(argument, fx.Node):
        return f"%{names.get(argument.name, argument.name)}"
    if isinstance(argument, list | tuple):
        return f"[{', '.join(_spell(item, names) for item in argument)}]"
    if argument is None or isinstance(argument, bool | int | float | str):
        return repr(argument)
    return repr(str(argument))

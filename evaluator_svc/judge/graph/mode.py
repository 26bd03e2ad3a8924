"""Whether a reference computes the same in training and in evaluation mode."""

from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any, Final

import torch
from torch import nn

from evaluator_svc.judge.graph.graph import export_graph
from kernel_foundry.domain.admission import GraphNode, NamedTensor
from kernel_foundry.errors import TaskInvalidError

_MODE: Final = "training"


def ignores_mode(
    model: nn.Module,
    values: Sequence[Any],
    tensors: Sequence[NamedTensor],
    graph: Sequence[GraphNode],
) -> bool:
    """Return whether no part's code asks for the mode, and both modes give the same operators.

    Args:
        model: The reference; it is in the other mode when this returns.
        values: What it is called with.
        tensors: Names of its tensors.
        graph: Its operators in the mode that it is given in; empty when they are not known.
    """
    if not graph or any(_asks_for_mode(part) for part in model.modules()):
        return False
    try:
        return export_graph(model.train(not model.training), values, tensors) == tuple(graph)
    except TaskInvalidError:
        return False


def _asks_for_mode(module: nn.Module) -> bool:
    """Whether code of a module's class names the mode, or cannot be read."""
    if isinstance(module, torch.jit.ScriptModule) or "forward" in vars(module):
        return True
    kinds = type(module).__mro__
    own = [kind for kind in kinds if kind not in (nn.Module, object)]
    if any("train" in vars(kind) or "eval" in vars(kind) for kind in own):
        return True
    return any(_MODE in (*code.co_names, *code.co_consts) for kind in own for code in _codes(kind))


def _codes(kind: type) -> Iterator[CodeType]:
    """All code of a class: of methods, properties, and functions in them."""
    functions: list[Any] = []
    for value in vars(kind).values():
        if isinstance(value, property):
            functions += [value.fget, value.fset, value.fdel]
        else:
            functions.append(getattr(value, "__func__", value))
    waiting = [f.__code__ for f in functions if isinstance(f, FunctionType)]
    while waiting:
        code = waiting.pop()
        yield code
        waiting += [const for const in code.co_consts if isinstance(const, CodeType)]

"""FLOPs of a reference: those of its products, and all others.

Matrix products and convolutions are counted by torch, all else from the graph with the usual rough
weights.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch

from evaluator_svc.judge.graph.graph import operands
from evaluator_svc.messages.products import PRODUCTS
from kernel_foundry.domain.admission import GraphNode

_FREE: Final = frozenset({
    "view", "reshape", "_unsafe_view", "permute", "transpose", "t", "expand", "expand_as", "slice",
    "select", "squeeze", "unsqueeze", "flatten", "cat", "stack", "clone", "contiguous", "detach",
    "alias", "to", "_to_copy", "zeros", "ones", "full", "empty", "arange", "split", "chunk",
    "zeros_like", "ones_like", "full_like", "pad", "constant_pad_nd", "copy_", "getitem", "tril",
    "triu", "index", "embedding", "gather", "roll", "repeat", "lift_fresh_copy", "type_as",
})  # fmt: skip
"""Operators that move or name data and compute nothing."""

_WEIGHT: Final[Mapping[str, int]] = {
    "softmax": 5, "log_softmax": 5, "gelu": 8, "silu": 4, "mish": 6, "tanh": 4, "sigmoid": 4,
    "exp": 2, "erf": 6, "layer_norm": 7, "group_norm": 7, "instance_norm": 7, "batch_norm": 7,
    "rms_norm": 4, "native_layer_norm": 7, "native_group_norm": 7, "logsumexp": 4, "var": 3,
    "std": 3, "hardswish": 4, "hardsigmoid": 3, "elu": 4, "selu": 4, "softplus": 4,
}  # fmt: skip
"""Operations for each element; 1 for what is not listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Floating-point operations of one call."""

    product_flops: int
    """Of matrix products, convolutions, attention and recurrent layers."""
    other_flops: int
    product_dtype: str
    """Of the narrowest operands among the products; "float32" where that is not known."""

    @property
    def flops(self) -> int:
        """All of them."""
        return self.product_flops + self.other_flops


def count_cost(product_flops: Mapping[str, int], graph: Sequence[GraphNode]) -> Cost:
    """Return what one call computes; without a graph matrix products alone.

    Args:
        product_flops: What torch counted, by the names of operators.
        graph: The operators.
    """
    counted = sum(flops for name, flops in product_flops.items() if "attention" not in name)
    shapes = {node.name: node.shape for node in graph}
    fused = sum(_fused_flops(node, shapes) for node in graph)
    return Cost(
        product_flops=int(counted) + fused,
        other_flops=sum(_other_flops(node, shapes) for node in graph),
        product_dtype=_product_dtype(graph),
    )


def _product_dtype(graph: Sequence[GraphNode]) -> str:
    dtypes = {node.name: node.dtype for node in graph}
    found = {
        dtypes[operand]
        for node in graph
        if _operator(node) in _WITH_FLOPS
        for operand in operands(node)[:1]
        if dtypes.get(operand)
    }
    return min(found, key=lambda dtype: (getattr(torch, dtype).itemsize, dtype), default="float32")


def _operator(node: GraphNode) -> str:
    """Return the name of an ATen operator, without its overload; "" for other nodes."""
    parts = node.op.split(".")
    return parts[1].rstrip("_") if parts[0] == "aten" else ""


def _fused_flops(node: GraphNode, shapes: Mapping[str, tuple[int, ...]]) -> int:
    count = _FUSED.get(_operator(node))
    return count([shapes.get(operand, ()) for operand in operands(node)]) if count else 0


def _other_flops(node: GraphNode, shapes: Mapping[str, tuple[int, ...]]) -> int:
    name = _operator(node)
    if not name or name in _FREE or name in _WITH_FLOPS:
        return 0
    # A reduction works on what it reads, anything else on what it makes.
    read = [shapes.get(operand, ()) for operand in operands(node)[:1]]
    elements = max(math.prod(shape) for shape in (node.shape, *read))
    return _WEIGHT.get(name, 1) * elements


def _attention_flops(shapes: Sequence[tuple[int, ...]]) -> int:
    """Two matrix products: `(…, queries, width)` with keys, then with values."""
    query, key = shapes[0], shapes[1]
    return 4 * math.prod(query) * key[-2]


def _recurrent_flops(shapes: Sequence[tuple[int, ...]]) -> int:
    """Every weight matrix once for each step of each sequence."""
    sequences, weights = shapes[0], [shape for shape in shapes if len(shape) == 2]
    return 2 * math.prod(sequences[:-1]) * sum(math.prod(shape) for shape in weights)


_FUSED: Final[Mapping[str, Callable[[Sequence[tuple[int, ...]]], int]]] = {
    "scaled_dot_product_attention": _attention_flops,
    "lstm": _recurrent_flops,
    "gru": _recurrent_flops,
}
"""Operators that torch's counter misses on some devices."""

_WITH_FLOPS: Final = PRODUCTS.union(_FUSED, ["_scaled_mm"])

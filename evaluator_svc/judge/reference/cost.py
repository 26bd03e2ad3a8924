"""FLOPs and least memory traffic of a reference: the two sides of its roofline.

Matrix products and convolutions are counted by torch, all else from the graph with the usual
rough weights. Knows nothing of devices.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from torch.utils.flop_counter import FlopCounterMode

from evaluator_svc.judge.draws.input_set import InputSet
from evaluator_svc.judge.draws.layout import tensor_bytes
from kernel_foundry.domain.admission import GraphNode, NamedTensor, TensorRole

_COUNTED_BY_TORCH: Final = (
    "linear", "matmul", "mm", "addmm", "bmm", "baddbmm", "einsum", "conv1d", "conv2d", "conv3d",
    "convolution", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
)  # fmt: skip

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


def count_flops(input_set: InputSet, graph: Sequence[GraphNode]) -> int:
    """Return floating-point operations of one call; without a graph matrix products alone."""
    with FlopCounterMode(display=False) as counter:
        input_set.run()
    by_name = {
        str(packet): flops for packet, flops in counter.get_flop_counts().get("Global", {}).items()
    }
    products = sum(flops for name, flops in by_name.items() if "attention" not in name)
    shapes = {node.name: node.shape for node in graph}
    return int(products) + sum(_node_flops(node, shapes) for node in graph)


def count_bytes(tensors: Sequence[NamedTensor], graph: Sequence[GraphNode]) -> int:
    """Return bytes of every tensor that is used: inputs read once, outputs written once."""
    used = {name for node in graph for name in _operands(node)}
    return sum(
        tensor_bytes(tensor)
        for tensor in tensors
        if tensor.role is TensorRole.OUTPUT or not graph or tensor.name in used
    )


def _node_flops(node: GraphNode, shapes: Mapping[str, tuple[int, ...]]) -> int:
    parts = node.op.split(".")
    name = parts[1].rstrip("_") if parts[0] == "aten" else ""
    operands = [shapes.get(operand, ()) for operand in _operands(node)]
    if name in _FUSED:
        return _FUSED[name](operands)
    if not name or name in _FREE or name in _COUNTED_BY_TORCH:
        return 0
    # A reduction works on what it reads, anything else on what it makes.
    elements = max(math.prod(shape) for shape in (node.shape, *operands[:1]))
    return _WEIGHT.get(name, 1) * elements


def _attention_flops(operands: Sequence[tuple[int, ...]]) -> int:
    """Two matrix products: `(…, queries, width)` with keys, then with values."""
    query, key = operands[0], operands[1]
    return 4 * math.prod(query) * key[-2]


def _recurrent_flops(operands: Sequence[tuple[int, ...]]) -> int:
    """Every weight matrix once for each step of each sequence."""
    sequences, weights = operands[0], [shape for shape in operands if len(shape) == 2]
    return 2 * math.prod(sequences[:-1]) * sum(math.prod(shape) for shape in weights)


_FUSED: Final[Mapping[str, Callable[[Sequence[tuple[int, ...]]], int]]] = {
    "scaled_dot_product_attention": _attention_flops,
    "lstm": _recurrent_flops,
    "gru": _recurrent_flops,
}
"""Operators that torch's counter misses on some devices."""


def _operands(node: GraphNode) -> list[str]:
    texts = (*node.arguments, *(keyword.value for keyword in node.keywords))
    return [part.strip("[] ,")[1:] for t in texts for part in t.split() if "%" in part]

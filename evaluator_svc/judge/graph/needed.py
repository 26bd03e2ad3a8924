"""How many elements of each node of a reference's graph its outputs need for certain.

A lower bound, so that no honest kernel is faster than what follows from it: where a node's own need
is not clear (masks, indices, windows), less is counted rather than more.
"""

import ast
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from evaluator_svc.judge.graph.graph import operands
from kernel_foundry.domain.admission import GraphNode

_MOVING: Final = frozenset({
    "view", "reshape", "_unsafe_view", "permute", "transpose", "t", "flatten", "squeeze",
    "unsqueeze", "alias", "detach", "narrow", "pad", "constant_pad_nd", "clone", "contiguous",
    "to", "_to_copy",
})  # fmt: skip
"""Operators that read one element of their first operand for each that they make, at most."""

_INDEXED: Final = frozenset({
    "index", "index_select", "gather", "embedding", "take", "take_along_dim",
})  # fmt: skip
"""Operators that read what indices name, which may be one element again and again."""

_MASKED: Final[Mapping[str, int]] = {"where": 0, "masked_fill": 1, "masked_scatter": 1}
"""Operators of which a mask decides what is read, with the mask's position among the operands."""

_PARTS: Final = frozenset({"split", "split_with_sizes", "chunk", "unbind", "tensor_split"})
"""Operators that make several tensors of one."""

_SHAPE_ONLY: Final = frozenset({
    "empty_like", "full_like", "new_empty", "new_full", "new_ones", "new_zeros", "ones_like",
    "rand_like", "randn_like", "zeros_like",
})  # fmt: skip
"""Operators that read nothing: they ask an operand for its shape."""

_REPLACING: Final = frozenset({
    "copy", "fill", "zero", "index_put", "index_copy", "index_fill", "scatter",
})  # fmt: skip
"""Operators that put other values in the place of their first operand's, or of a part of them."""

_POOLING: Final = ("avg_pool", "max_pool", "lp_pool")
_CONVOLUTION: Final = frozenset({"conv1d", "conv2d", "conv3d"})


def needed_elements(graph: Sequence[GraphNode]) -> Mapping[str, int]:
    """Return for each node at least how many of its elements the results need; 0 for dead ones."""
    nodes = {node.name: node for node in graph}
    overwritten = _overwritten(graph, nodes)
    needed: defaultdict[str, int] = defaultdict(int)
    parts: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for node in reversed(graph):
        if node.op == "output":
            needed |= {name: _size(nodes[name]) for name in operands(node) if name in nodes}
            continue
        taken = needed[node.name] - overwritten[node.name]
        if taken <= 0:
            continue
        for position, name in enumerate(operands(node)):
            if name not in nodes:
                continue
            source = nodes[name]
            count = _count(node, position, taken, source, nodes)
            if _is_part(node, source) and position == 0:
                pieces = parts[name]
                pieces[_piece(node)] = max(pieces.get(_piece(node), 0), count)
                count = _together(pieces, source)
            needed[name] = max(needed[name], count)
    return needed


def _overwritten(
    graph: Sequence[GraphNode], nodes: Mapping[str, GraphNode]
) -> defaultdict[str, int]:
    """Return for each node at most how many of its elements are written over in place later.

    What is written to a view replaces elements of all that the view may be one of, and the graph
    shows no edge from there to the results.
    """
    overwritten: defaultdict[str, int] = defaultdict(int)
    for node in graph:
        targets = _out(node)
        if _operator(node) in _REPLACING and f"{_operator(node)}_" in node.op:
            targets += operands(node)[:1]
        for target in targets:
            written = nodes.get(target)
            size = _size(written) if written else 0
            while written:
                overwritten[written.name] += size
                sources = operands(written)[:1] if _operator(written) != "clone" else []
                written = nodes.get(sources[0]) if sources else None
    return overwritten


def _out(node: GraphNode) -> list[str]:
    """Return the names of the tensors that a node was given for its results."""
    keywords = [keyword for keyword in node.keywords if keyword.name == "out"]
    return operands(replace(node, arguments=(), keywords=tuple(keywords)))


def _size(node: GraphNode) -> int:
    """Return a tensor's elements; 1 for what is none, such as the parts of a split."""
    return math.prod(node.shape)


def _operator(node: GraphNode) -> str:
    """Return an ATen operator's name without overload, any other node's whole name."""
    names = node.op.split(".")
    return names[1].rstrip("_") if names[0] == "aten" else node.op


def _count(
    node: GraphNode,
    position: int,
    taken: int,
    source: GraphNode,
    nodes: Mapping[str, GraphNode],
) -> int:
    """Return how many elements of `source` it takes to make `taken` of `node`'s."""
    name, whole = _operator(node), _size(source)
    if name in _SHAPE_ONLY or source.name in _out(node):
        return 0
    if name == "getitem":
        return taken if _operator(source) in _PARTS else 1
    if name in _MASKED and position != _MASKED[name]:
        return 0
    if position == 0:
        if name in _INDEXED or name in _REPLACING:
            return 0
        if name in _MOVING or name in ("slice", "select") or name in _PARTS:
            return min(taken, whole)
        if name in ("tril", "triu"):
            return min(taken, _kept(node))
        if name.startswith(_POOLING):
            return min(taken * _window(node), whole)
    if name in ("cat", "stack"):
        return max(taken - (_size(node) - whole), 0)
    if name == "mul" and _masks(node, position, nodes):
        return 0
    if not node.dtype:
        return whole
    share = taken / max(_size(node), 1)
    if name in _CONVOLUTION and position == 0:
        filters = nodes.get(operands(node)[1])
        taps = math.prod(filters.shape[2:]) if filters is not None else whole
        positions = math.prod(node.shape[2:])
        return int(share * min(math.prod(source.shape[:2]) * positions * taps, whole))
    return int(share * whole)


def _masks(node: GraphNode, position: int, nodes: Mapping[str, GraphNode]) -> bool:
    """Return whether the other factor of a product is made of truth values, and so may be zero."""
    others = [name for at, name in enumerate(operands(node)) if at != position and name in nodes]
    return any(_is_mask(nodes[name], nodes) for name in others)


def _is_mask(node: GraphNode, nodes: Mapping[str, GraphNode]) -> bool:
    if node.dtype == "bool":
        return True
    sources = operands(node)[:1]
    is_moved = _operator(node) in _MOVING or _operator(node) in ("type_as", "float", "expand")
    return is_moved and bool(sources) and sources[0] in nodes and _is_mask(nodes[sources[0]], nodes)


def _kept(node: GraphNode) -> int:
    """Return how many elements `tril` or `triu` leaves."""
    *batch, rows, columns = node.shape
    diagonal = _numbers(node, 1, "diagonal")[0]
    below = sum(min(max(row + diagonal + 1, 0), columns) for row in range(rows))
    if _operator(node) == "tril":
        return math.prod(batch) * below
    strictly_below = sum(min(max(row + diagonal, 0), columns) for row in range(rows))
    return math.prod(batch) * (rows * columns - strictly_below)


def _window(node: GraphNode) -> int:
    """Return the elements of a pooling's window."""
    kernel = _numbers(node, 1, "kernel_size")
    dimensions = next((int(c) for c in _operator(node) if c.isdigit()), 1)
    return math.prod(kernel * dimensions if len(kernel) == 1 else kernel)


def _numbers(node: GraphNode, position: int, keyword: str) -> list[int]:
    """Return an argument that is a number or a list of them; [0] where there is none."""
    texts = [k.value for k in node.keywords if k.name == keyword]
    texts += node.arguments[position : position + 1]
    if not texts or "%" in texts[0]:
        return [0]
    value = ast.literal_eval(texts[0])
    return [int(one) for one in value] if isinstance(value, list) else [int(value)]


def _is_part(node: GraphNode, source: GraphNode) -> bool:
    """Return whether a node takes a piece out of its source that its arguments name."""
    name = _operator(node)
    return name in ("slice", "select") or (name == "getitem" and _operator(source) in _PARTS)


def _piece(node: GraphNode) -> str:
    """Return what tells the pieces of a tensor apart: dimension, start and end, or the index."""
    return " ".join((_operator(node), *node.arguments[1:]))


def _together(pieces: Mapping[str, int], source: GraphNode) -> int:
    """Return at least how many elements several pieces of a tensor have together.

    Of equal pieces one counts, and so of slices that overlap.
    """
    disjoint: defaultdict[str, int] = defaultdict(int)
    ends: defaultdict[int, int] = defaultdict(int)
    """Of the slices counted so far, by dimension."""
    for piece, count in sorted(pieces.items(), key=lambda item: _first(item[0], source)):
        kind, *arguments = piece.split(" ")
        if kind == "getitem":
            disjoint[kind] += count
        elif kind == "select":
            disjoint[f"select {arguments[0]}"] += count
        else:
            dimension, start, end = _slice(arguments, source)
            rest = _size(source) // max(source.shape[dimension], 1)
            is_whole = count == (end - start) * rest
            if is_whole and start >= ends[dimension]:
                disjoint[f"slice {dimension}"] += count
                ends[dimension] = end
            else:
                disjoint[f"piece {piece}"] = count
    most = max(disjoint.values())
    return min(most, _size(source)) if source.dtype else most


def _first(piece: str, source: GraphNode) -> int:
    """Return where a slice begins, 0 for other pieces."""
    kind, *arguments = piece.split(" ")
    return _slice(arguments, source)[1] if kind == "slice" else 0


def _slice(arguments: Sequence[str], source: GraphNode) -> tuple[int, int, int]:
    """Return dimension, start and end of a slice, each from 0; an empty one where it has a step."""
    given = [None if text == "None" else int(text) for text in arguments]
    dimension, start, end, step = (given + [None] * 4)[:4]
    dimension = (dimension or 0) % len(source.shape)
    size = source.shape[dimension]
    if step not in (None, 1):
        return dimension, 0, 0
    first, last, _ = slice(start, end).indices(size)
    return dimension, first, max(last, first)

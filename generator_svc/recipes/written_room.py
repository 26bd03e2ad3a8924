"""Graphs of references that write a result into an empty tensor, as if they returned it."""

import re
from collections import Counter
from dataclasses import replace
from typing import Final

from kernel_foundry.domain.admission import Admission, GraphNode

_NODE: Final = re.compile(r"%(\w+)")
_EMPTY: Final = ("aten.empty.memory_format", "aten.empty_like.default")
_WRITE: Final = "aten.copy_.default"


def without_room(admission: Admission) -> Admission:
    """Return the admission with results in place of empty tensors that they alone are written to.

    `out = torch.empty_like(x)` and `out[...] = y` is y, where nothing else uses either.
    """
    return replace(
        admission,
        workloads=tuple(replace(w, graph=_without_room(w.graph)) for w in admission.workloads),
    )


def _without_room(graph: tuple[GraphNode, ...]) -> tuple[GraphNode, ...]:
    nodes = {node.name: node for node in graph}
    texts = [text for node in graph for text in _texts(node)]
    uses = Counter(name for text in texts for name in _NODE.findall(text))
    stands_for: dict[str, str] = {}
    left_out: set[str] = set()
    for node in graph:
        if node.op != _WRITE:
            continue
        room, written = (nodes[text[1:]] for text in node.arguments[:2])
        if (
            room.op in _EMPTY
            and uses[room.name] == uses[written.name] == 1
            and (room.shape, room.dtype) == (written.shape, written.dtype)
            and written.op != "placeholder"
        ):
            stands_for[node.name] = stands_for.get(written.name, written.name)
            left_out |= {room.name, node.name}

    def named(text: str) -> str:
        return _NODE.sub(lambda found: f"%{stands_for.get(found[1], found[1])}", text)

    return tuple(
        replace(
            node,
            arguments=tuple(map(named, node.arguments)),
            keywords=tuple(replace(k, value=named(k.value)) for k in node.keywords),
        )
        for node in graph
        if node.name not in left_out
    )


def _texts(node: GraphNode) -> tuple[str, ...]:
    return (*node.arguments, *(keyword.value for keyword in node.keywords))

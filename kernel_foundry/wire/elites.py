"""Elites to and from messages, each converted once.

A search is shown the same few hundred elites again and again, and each has some hundred small
parts. Whoever sends or receives selections keeps one of these.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import replace
from typing import Final, Generic, TypeVar

from kernel_foundry.common.v1 import selection_pb2
from kernel_foundry.domain.archive import Elite, Selection
from kernel_foundry.wire.message import from_message, to_message

KEPT: Final = 512
"""Elites kept for each direction; full grids of four islands have 256."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class EliteMessages:
    """Two bounded caches; used by one event loop."""

    def __init__(self) -> None:
        # An elite is kept beside its message, so that its id is nobody else's.
        self._sent = _Newest[int, tuple[Elite, selection_pb2.Elite]]()
        self._received = _Newest[bytes, Elite]()

    def elite_to_message(self, elite: Elite) -> selection_pb2.Elite:
        """Return the message of `elite`; it is not to be changed."""
        found = self._sent.find(id(elite))
        if found is None:
            found = (elite, to_message(elite, selection_pb2.Elite))
            self._sent.keep(id(elite), found)
        return found[1]

    def elite_from_message(self, message: selection_pb2.Elite, path: str) -> Elite:
        """Return the elite that `message` describes; raises as `from_message`."""
        content = message.SerializeToString()
        elite = self._received.find(content)
        if elite is None:
            elite = from_message(Elite, message, path)
            self._received.keep(content, elite)
        return elite

    def selection_to_message(self, selection: Selection) -> selection_pb2.Selection:
        """Return the message of `selection`."""
        rest = replace(selection, parent=None, inspirations=())
        message = to_message(rest, selection_pb2.Selection)
        if selection.parent is not None:
            message.parent.CopyFrom(self.elite_to_message(selection.parent))
        message.inspirations.extend(map(self.elite_to_message, selection.inspirations))
        return message

    def selection_from_message(self, message: selection_pb2.Selection, path: str) -> Selection:
        """Return the selection that `message` describes, which is emptied of its elites."""
        parent = None
        if message.HasField("parent"):
            parent = self.elite_from_message(message.parent, f"{path}.parent")
        inspirations = tuple(
            self.elite_from_message(inspiration, f"{path}.inspirations[{index}]")
            for index, inspiration in enumerate(message.inspirations)
        )
        message.ClearField("parent")
        message.ClearField("inspirations")
        rest = from_message(Selection, message, path)
        return replace(rest, parent=parent, inspirations=inspirations)


class _Newest(Generic[K, V]):
    def __init__(self) -> None:
        self._values: OrderedDict[K, V] = OrderedDict()

    def find(self, key: K) -> V | None:
        """Return the value of `key`, which now is the one used last, or None."""
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def keep(self, key: K, value: V) -> None:
        """Keep a value; the one not used for longest makes room."""
        self._values[key] = value
        while len(self._values) > KEPT:
            self._values.popitem(last=False)

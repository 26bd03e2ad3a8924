"""Elites as messages, built once: a search sends the same few hundred again and again.

A selection shows up to three of them, each of some ten kilobytes and a hundred small parts.
"""

from collections import OrderedDict
from typing import Final

from kernel_foundry.common.v1 import selection_pb2
from kernel_foundry.domain.archive import Elite
from kernel_foundry.wire.message import to_message

KEPT: Final = 512
"""As many as `archive_svc.texts` keeps."""


class EliteMessages:
    """A bounded cache of messages; used by one event loop."""

    def __init__(self) -> None:
        # An elite is kept beside its message, so that its id is nobody else's.
        self._built: OrderedDict[int, tuple[Elite, selection_pb2.Elite]] = OrderedDict()

    def of(self, elite: Elite) -> selection_pb2.Elite:
        """Return the message of `elite`; not to be changed."""
        key = id(elite)
        if key not in self._built:
            self._built[key] = (elite, to_message(elite, selection_pb2.Elite))
            while len(self._built) > KEPT:
                self._built.popitem(last=False)
        self._built.move_to_end(key)
        return self._built[key][1]

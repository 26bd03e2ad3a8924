"""Weights as a plan's `prepare` laid them out, until they change."""

import contextlib
import itertools
import threading
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import torch

from kernel_foundry.sdk.export.runtime.streams import is_captured, join, moment_of

_layout_numbers: Final = itertools.count(1)
_in_graphs: Final[dict[int, "Layout"]] = {}
"""Layouts that graphs read, by their numbers, as long as the weights are there."""


class Layout(NamedTuple):
    """What was made of weights."""

    number: int
    """Which layout of this process."""
    weights: tuple[Any, ...]
    """Weak references."""
    versions: tuple[int, ...]
    """Of the weights, as torch counts their changes."""
    addresses: tuple[int, ...]
    """Of the weights."""
    memory: list[Any]
    """Of the weights: what `.data` puts in its place lies elsewhere as long as this is held."""
    made: list[torch.Tensor]
    places: list[int]
    """Addresses of what was made."""
    moment: Any
    """After which the layout is complete."""

    def is_ready(self) -> bool:
        """Let what follows wait for the layout; False where a graph needs one of its own."""
        if self.moment is None:
            return True
        if not is_captured():
            join(self.moment, self.made)
            return True
        if _promise.complete is None or self.number not in _promise.complete:
            return False
        if self.number not in _in_graphs:
            _in_graphs[self.number] = self
            for weight in self.weights[:1]:  # there may be none, and then it stays
                weakref.finalize(weight(), _in_graphs.pop, self.number).atexit = False
        return True


class _Promise(threading.local):
    """A thread's, that weights do not change."""

    complete: set[int] | None = None
    """Numbers of layouts that are complete, so that a graph may read them; None: there is no
    promise."""


_promise: Final = _Promise()


@contextlib.contextmanager
def promised(layouts: Iterable[Layout]) -> Iterator[None]:
    """Let graphs that this thread captures below read layouts, those and what is made below."""
    before, _promise.complete = _promise.complete, set()
    try:
        for layout in layouts:
            _complete(layout)
        yield
    finally:
        _promise.complete = before


def _complete(layout: Layout) -> None:
    """Wait for a layout where there is a promise: what is captured can wait for nothing outside."""
    if _promise.complete is not None and layout.moment is not None:
        layout.moment.event.synchronize()
        _promise.complete.add(layout.number)


class Layouts:
    """Layouts of weights, as long as these are the same tensors of the same version."""

    def __init__(self) -> None:
        self.kept: dict[tuple[int, ...], Layout] = {}
        """By the weights' `id`."""

    def of(self, weights: list[torch.Tensor], addresses: list[int]) -> Layout | None:
        """Return the layout of these weights as they are now; None where it is to be made."""
        layout = self.kept.get(tuple(map(id, weights)))
        if layout is None or layout.addresses != tuple(addresses):
            return None
        for reference, version, tensor in zip(
            layout.weights, layout.versions, weights, strict=True
        ):
            if reference() is not tensor or version != tensor._version:
                return None
        return layout if layout.is_ready() else None

    def keep(self, weights: list[torch.Tensor], made: list[torch.Tensor]) -> Layout:
        """Return what was made of weights as a layout; remember it until one of them is gone."""
        is_versioned = not _is_unversioned(weights, made[0])
        key = tuple(map(id, weights))

        def drop(gone: Any) -> None:
            layout = self.kept.get(key)
            if layout is not None and any(known is gone for known in layout.weights):
                self.kept.pop(key, None)

        layout = Layout(
            number=next(_layout_numbers),
            weights=tuple(weakref.ref(t, drop) for t in weights) if is_versioned else (),
            versions=tuple(t._version for t in weights) if is_versioned else (),
            addresses=tuple(t.data_ptr() for t in weights),
            memory=[t.untyped_storage() for t in weights],
            made=made,
            places=[t.data_ptr() for t in made],
            moment=moment_of(made[0]) if is_versioned else None,
        )
        if is_versioned:
            self.kept[key] = layout
            _complete(layout)
        return layout

    def forget(self) -> None:
        """Lay all weights out again at their next use."""
        self.kept.clear()


def _is_unversioned(weights: list[torch.Tensor], made: torch.Tensor) -> bool:
    """Whether nobody can tell later if the weights have changed.

    A graph that is captured now runs again when they have.
    """
    for tensor in weights:
        if tensor.is_inference():
            return True
    return made.is_cuda and is_captured()

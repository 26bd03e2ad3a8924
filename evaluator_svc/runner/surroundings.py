"""What lies around tensors in an allocation: pages that kernels cannot reach, bytes that must stay.

Where the host's pages can be closed, those without a tensor are, and those of inputs can only be
read. Of what is left, every byte that belongs to no tensor is a guard: written before each call
that counts, and looked at afterwards.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evaluator_svc.messages.placement import PAGE_BYTES
from evaluator_svc.runner.faults import CandidateFaultError, fault
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind

_Span = tuple[int, int]
"""Begin and end, as offsets."""

Range = tuple[int, int, int]
"""Address, bytes and the byte that all of them hold, as native code takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A tensor in an allocation."""

    name: str
    start: int
    size_bytes: int
    is_read_only: bool = False
    """Kernels do not write it."""

    @property
    def span(self) -> _Span:
        """Its bytes."""
        return self.start, self.start + self.size_bytes

    @property
    def pages(self) -> _Span:
        """The pages that it lies in."""
        begin, end = self.span
        return begin // PAGE_BYTES * PAGE_BYTES, -(-end // PAGE_BYTES) * PAGE_BYTES


class Surroundings:
    """All bytes of one allocation that belong to no tensor.

    Args:
        device: Native device; on host memory it closes pages.
        address: Of the allocation.
        size_bytes: All of it that a kernel could write to.
        places: The tensors.
        byte: What guards hold.
    """

    def __init__(
        self, device: Any, *, address: int, size_bytes: int, places: Iterable[Place], byte: int
    ) -> None:
        self._device = device
        self._zones: Any = None
        ordered = sorted((p for p in places if p.size_bytes), key=lambda place: place.start)
        guards = list(_gaps(ordered, size_bytes))
        if device.is_host_memory:
            closed, readable = list(_closed(ordered, size_bytes)), list(_readable(ordered))
            guards = [
                (part, name)
                for span, name in guards
                for part in _without(span, [s for s, _ in (*closed, *readable)])
            ]
            self._zones = device.watch(
                [
                    (address + begin, end - begin, is_readable, name)
                    for zones, is_readable in ((closed, False), (readable, True))
                    for (begin, end), name in zones
                ]
            )
        self.guards: tuple[Range, ...] = tuple(
            (address + begin, end - begin, byte) for (begin, end), _ in guards
        )
        self._names = tuple(name for _, name in guards)

    def write(self) -> None:
        """Enqueue what gives every guard its byte again."""
        self._device.fill_all(self.guards)

    def check(self) -> None:
        """See that no guard was written; waits.

        Raises:
            CandidateFaultError: one was.
        """
        index = self._device.find_other(self.guards) if self.guards else None
        if index is not None:
            raise _stray(self._names[index])

    def close(self) -> None:
        """Open the pages again, before the allocation is given back."""
        if self._zones is not None:
            self._zones.close()


def check_trespass(device: Any) -> None:
    """See that no kernel touched what is closed to it.

    Raises:
        CandidateFaultError: one did; what it did was let pass, so that this can be told.
    """
    found = device.first_trespass
    if found is None:
        return
    if found.is_hidden:
        raise fault(
            EvaluationOutcome.WRONG_RESULT if found.is_write else EvaluationOutcome.CRASHED,
            FindingKind.STRAY_WRITE if found.is_write else FindingKind.ILLEGAL_ACCESS,
            f"a kernel of prepare touched {found.name}, which is not there while it runs",
            hint="let prepare read its parameters and write what it hands to launch, no more",
        )
    if found.is_readable:
        raise fault(
            EvaluationOutcome.WRONG_RESULT,
            FindingKind.INPUT_MODIFIED,
            f"a kernel wrote to {found.name}, which must stay as it is",
            hint="Declare inputs `const` and write to `out` or to scratch from `empty(…)` only.",
        )
    if found.is_write:
        raise _stray(found.name)
    raise fault(
        EvaluationOutcome.CRASHED,
        FindingKind.ILLEGAL_ACCESS,
        f"a kernel read beyond the end of {found.name}, or before its beginning",
        hint="check every index of a load against the tensor's size, above all with vectors",
    )


def _stray(name: str) -> CandidateFaultError:
    return fault(
        EvaluationOutcome.WRONG_RESULT,
        FindingKind.STRAY_WRITE,
        f"a kernel wrote beyond the end of {name}, or before its beginning",
        hint="check every index of a store against the tensor's size, above all with vectors",
    )


def _gaps(ordered: Sequence[Place], size_bytes: int) -> Iterator[tuple[_Span, str]]:
    """Yield what no tensor covers, with the name of the tensor before it, or of the first."""
    end, name = 0, ordered[0].name if ordered else "the memory"
    for place in ordered:
        if place.start > end:
            yield (end, place.start), name
        end, name = max(end, place.span[1]), place.name
    if size_bytes > end:
        yield (end, size_bytes), name


def _closed(ordered: Sequence[Place], size_bytes: int) -> Iterator[tuple[_Span, str]]:
    """Yield the pages without a tensor."""
    for (begin, end), name in _gaps(ordered, size_bytes):
        first, last = -(-begin // PAGE_BYTES) * PAGE_BYTES, end // PAGE_BYTES * PAGE_BYTES
        if first < last:
            yield (first, last), name


def _readable(ordered: Sequence[Place]) -> Iterator[tuple[_Span, str]]:
    """Yield the pages of tensors that are read only, without those that others share."""
    others = [place.pages for place in ordered if not place.is_read_only]
    for place in ordered:
        if place.is_read_only:
            for part in _without(place.pages, others):
                others.append(part)
                yield part, place.name


def _without(span: _Span, others: Iterable[_Span]) -> list[_Span]:
    parts = [span]
    for begin, end in others:
        cut = [((a, min(b, begin)), (max(a, end), b)) for a, b in parts]
        parts = [(a, b) for pair in cut for a, b in pair if a < b]
    return parts

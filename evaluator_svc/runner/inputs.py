"""One workload's inputs in a runner, and where its outputs go: mapped once for all configurations.

The judge's buffers, the sets that are timed, and inputs of unusual values among them. What runs on
them is in `loaded_workload.py`.
"""

from collections.abc import Iterator
from typing import Any

from evaluator_svc.messages.draw import Draw
from evaluator_svc.processes.channel import close_descriptors
from evaluator_svc.runner.covered import CoveredRange
from evaluator_svc.runner.faults import memory_faults
from evaluator_svc.runner.guest_inputs import GuestInputs
from evaluator_svc.runner.input_pool import TimedSets, make_pool
from evaluator_svc.runner.shared_sets import SharedSets


class WorkloadInputs:
    """The inputs of one workload.

    Args:
        device: Native device.
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        self._shared: SharedSets | None = None
        self._pool: TimedSets | None = None
        self._pool_sizes: tuple[int, int] | None = None
        self._guests: GuestInputs | None = None

    def open(self, draw: Draw, descriptors: tuple[int, ...]) -> SharedSets:
        """Return a draw's buffers; they take the place of another draw's."""
        if self._shared is not None and self._shared.draw == draw:
            close_descriptors(descriptors)
            return self._shared
        self.close()
        self._shared = SharedSets(draw, descriptors, self._device)
        return self._shared

    def fill_pool(self, *, wanted_bytes: int, limit_bytes: int) -> TimedSets:
        """Return the sets that are timed, made from the opened buffers when first asked for.

        Raises:
            CandidateFaultError: there is no memory for them.
        """
        sizes = (wanted_bytes, limit_bytes)
        if self._pool is None or self._pool_sizes != sizes:
            assert self._shared is not None, "the buffers come with the first run"
            with memory_faults("memory for the sets that are timed"):
                self._pool = make_pool(
                    self._device, self._shared, wanted_bytes=wanted_bytes, limit_bytes=limit_bytes
                )
            self._pool_sizes = sizes
        return self._pool

    @property
    def pool(self) -> TimedSets:
        """The sets that are timed."""
        assert self._pool is not None, "times are taken on a filled pool"
        return self._pool

    def open_guests(self, draw: Draw | None, descriptors: tuple[int, ...]) -> GuestInputs | None:
        """Return the inputs of another draw for calls among the timed ones; None without one.

        Raises:
            CandidateFaultError: there is no memory for them.
        """
        if self._guests is not None and self._guests.draw == draw:
            close_descriptors(descriptors)
            return self._guests
        self._close_guests()
        if draw is not None:
            with memory_faults("memory for inputs of unusual values among the timed ones"):
                self._guests = GuestInputs(self._device, draw, descriptors)
        return self._guests

    def covered(self) -> Iterator[CoveredRange]:
        """Yield all inputs and outputs that there are."""
        # The sets that are timed name the judge's buffers, too.
        for each in (self._guests, self._pool or self._shared):
            if each is not None:
                yield from each.covered()

    def close(self) -> None:
        """Forget all of them."""
        self._close_guests()
        self._pool = None
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.close()

    def _close_guests(self) -> None:
        guests, self._guests = self._guests, None
        if guests is not None:
            guests.close()

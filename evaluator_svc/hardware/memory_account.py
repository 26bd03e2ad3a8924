"""One account of a device's memory: whoever works on the device leases what it will hold.

First come, first served: whoever cannot have its memory yet waits, and no later request goes before
it. Only a lease that exists may grow first (`MemoryLease.grow`). A lease has a size from the start;
nothing is ever promised twice. How much an evaluation needs is in `memory_needs.py`.
"""

import threading
from collections import deque
from collections.abc import Sequence
from typing import Self

from kernel_foundry.errors import DeviceMemoryError


class MemoryAccount:
    """The memory of one device that evaluations and admissions share.

    Args:
        capacity_bytes: All that may be leased at one time.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self._changed = threading.Condition()
        self._used_bytes = 0
        self._waiting: deque[object] = deque()

    @property
    def free_bytes(self) -> int:
        """What nobody has leased."""
        return self.capacity_bytes - self._used_bytes

    def lease(self, *choices: int) -> "MemoryLease":
        """Return a lease on one of several sizes: the first that is free when it is one's turn.

        Args:
            choices: Sizes in bytes, largest first; waits until the last one, which is the
                least, is free.

        Raises:
            DeviceMemoryError: the least is more than there ever is.
        """
        if choices[-1] > self.capacity_bytes:
            raise DeviceMemoryError(
                f"{choices[-1] / 1e9:.1f} GB of device memory are needed, and"
                f" {self.capacity_bytes / 1e9:.1f} GB can be had",
                needed_bytes=str(choices[-1]),
                capacity_bytes=str(self.capacity_bytes),
            )
        return MemoryLease(self, self._take(choices))

    def lease_rest(self, least_bytes: int) -> "MemoryLease":
        """Return a lease on all that is free when it is one's turn, and at least `least_bytes`."""
        lease = self.lease(min(least_bytes, self.capacity_bytes))
        lease.grow_by_rest()
        return lease

    def _take(self, choices: Sequence[int]) -> int:
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                self._changed.wait_for(
                    lambda: self._waiting[0] is ticket and choices[-1] <= self.free_bytes
                )
                size = next(choice for choice in choices if choice <= self.free_bytes)
                self._used_bytes += size
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
        return size

    def _add(self, size_bytes: int) -> bool:
        """Change what is leased; returns False, and changes nothing, where there is too little."""
        with self._changed:
            if size_bytes > self.free_bytes:
                return False
            self._used_bytes += size_bytes
            self._changed.notify_all()
            return True

    def _add_rest(self) -> int:
        with self._changed:
            rest = self.free_bytes
            self._used_bytes += rest
            return rest


class MemoryLease:
    """Memory that is held until it is given back, at the end of a `with` at the latest."""

    def __init__(self, account: MemoryAccount, size_bytes: int) -> None:
        self._account = account
        self.size_bytes = size_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def grow(self, size_bytes: int) -> bool:
        """Add to it if that is free, before all who wait for it, who may wait for this one's end.

        Returns:
            False where it is not; whoever needs it gives everything back and leases anew.
        """
        is_free = self._account._add(size_bytes)
        if is_free:
            self.size_bytes += size_bytes
        return is_free

    def grow_by_rest(self) -> None:
        """Add all that is free."""
        self.size_bytes += self._account._add_rest()

    def give_back(self) -> None:
        """Let others have it; more than once does no harm."""
        size, self.size_bytes = self.size_bytes, 0
        self._account._add(-size)

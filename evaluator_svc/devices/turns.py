"""Whose call is next on a device: users take turns, the one who was served least lately first.

A turn is held until its work has ended, also where the caller has left.
"""

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

from kernel_foundry.caller import Caller

_HALF_LIFE_S: Final = 600.0
"""After which half of what a user was given is forgotten."""
_NEGLIGIBLE_S: Final = 0.01


@dataclass(slots=True, eq=False)
class Turn:
    """One call on a device."""

    device: str
    who: Caller
    places: int
    """Calls that the device takes at the same time."""
    number: int
    begun: Future[None] = field(default_factory=Future)
    """Done when it is its turn; cancelled by a caller who leaves before."""
    began_s: float = 0.0


class DeviceTurns:
    """The queues of all devices of an evaluator; every method may be called from any thread.

    Args:
        clock: In seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._waiting: list[Turn] = []
        self._running: list[Turn] = []
        self._served_s: dict[str, float] = {}
        """Time on devices by user, faded."""
        self._faded_s = clock()

    def ask(self, device: str, who: Caller, places: int) -> Turn:
        """Return a turn that is waited for by its `begun`; whoever asks has to `end` it.

        Args:
            device: Id of the device.
            who: Whose call it is; known by name, within that user's `most_at_once`.
            places: Calls that the device takes at the same time.
        """
        turn = Turn(device=device, who=who, places=places, number=next(self._numbers))
        with self._lock:
            self._waiting.append(turn)
            begun = self._begin()
        _tell(begun)
        return turn

    def end(self, turn: Turn) -> None:
        """Free the place of a turn, whether it had begun or not."""
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                self._running.remove(turn)
                self._fade()
                took_s = self._clock() - turn.began_s
                user = turn.who.name
                self._served_s[user] = self._served_s.get(user, 0.0) + took_s
            begun = self._begin()
        _tell(begun)

    def _begin(self) -> list[Turn]:
        """Give free places to those whose turn it is; return them."""
        begun = []
        while ready := [turn for turn in self._waiting if self._has_place(turn)]:
            self._fade()
            turn = min(ready, key=self._rank)
            self._waiting.remove(turn)
            turn.began_s = self._clock()
            self._running.append(turn)
            begun.append(turn)
        return begun

    def _has_place(self, turn: Turn) -> bool:
        most, user = turn.who.most_at_once, turn.who.name
        if most is not None and sum(other.who.name == user for other in self._running) >= most:
            return False
        return sum(other.device == turn.device for other in self._running) < turn.places

    def _rank(self, turn: Turn) -> tuple[int, float, int, int]:
        """The smallest is next: by priority, share of its user, calls under way, and age."""
        user, now_s = turn.who.name, self._clock()
        running = [other for other in self._running if other.who.name == user]
        share_s = self._served_s.get(user, 0.0) + sum(now_s - other.began_s for other in running)
        return (-turn.who.priority, share_s, len(running), turn.number)

    def _fade(self) -> None:
        now_s = self._clock()
        factor = 0.5 ** ((now_s - self._faded_s) / _HALF_LIFE_S)
        self._faded_s = now_s
        faded = {user: served_s * factor for user, served_s in self._served_s.items()}
        self._served_s = {user: s for user, s in faded.items() if s > _NEGLIGIBLE_S}


def _tell(begun: list[Turn]) -> None:
    for turn in begun:
        if turn.begun.set_running_or_notify_cancel():  # else its caller has left, and ends it
            turn.begun.set_result(None)

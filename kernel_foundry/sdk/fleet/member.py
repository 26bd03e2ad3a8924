"""One evaluator of a fleet: whether it answers, which devices it has, how busy they are."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from kernel_foundry.domain.device import Capabilities, DeviceSpec
from kernel_foundry.domain.device_class import device_class, ways_to_ask
from kernel_foundry.errors import KernelFoundryError, ServiceUnavailableError
from kernel_foundry.ports import Evaluator
from kernel_foundry.sdk.fleet.membership import ANYWHERE, DeviceFilter, Entry

_ANSWER_S: Final = 10.0
"""Time limit of a capabilities call, except for the first one, which may measure peaks."""
_SILENT_AFTER: Final = 3
"""Answers in a row that do not come until calls in flight are given up."""


class MemberState(StrEnum):
    """Whether a member gets work."""

    STARTING = "starting"
    """It was not heard from yet."""
    SERVING = "serving"
    AWAY = "away"
    """It does not answer, or says that it cannot work."""
    DRAINING = "draining"
    """It finishes what it has and gets nothing more."""


@dataclass(slots=True, eq=False)
class FleetDevice:
    """A device of a member, with what the fleet knows of its load."""

    member: "Member"
    own_id: str
    """By which its evaluator knows it."""
    spec: DeviceSpec
    """With the fleet's id and the clock policy of the member's entry."""
    class_name: str
    ways: tuple[str, ...]
    """All that a request may call it."""
    in_flight: int = 0
    """Calls of this fleet."""
    others: int = 0
    """Calls of others, as the evaluator last reported."""
    tasks: frozenset[str] = frozenset()
    """Digests of tasks that were admitted there."""

    @property
    def load(self) -> int:
        """Calls that use the device or wait for it."""
        return self.in_flight + self.others

    def begin(self) -> None:
        """Count one call of this fleet more."""
        self.in_flight += 1
        self.member.in_flight += 1
        self.member.idle.clear()

    def end(self) -> None:
        """Count one call of this fleet less."""
        self.in_flight -= 1
        self.member.in_flight -= 1
        if not self.member.in_flight:
            self.member.idle.set()


class Member:
    """One evaluator; belongs to one event loop.

    Args:
        entry: As its user names it.
        evaluator: Reaches it.
        changed: Called when devices came or went.
        where: Which of its devices are used.
    """

    def __init__(
        self,
        entry: Entry,
        evaluator: Evaluator,
        changed: Callable[[], None],
        where: DeviceFilter = ANYWHERE,
    ) -> None:
        self.entry = entry
        self.evaluator = evaluator
        self.capabilities: Capabilities | None = None
        """As last reported; None: it never answered."""
        self.devices: tuple[FleetDevice, ...] = ()
        self.reason = ""
        """Why it is away."""
        self.in_flight = 0
        """Calls of this fleet."""
        self.idle = asyncio.Event()
        """Set while there are none."""
        self.idle.set()
        self.tried = asyncio.Event()
        """Set once it answered or failed to."""
        self.silent = asyncio.Event()
        """Set while it is reached and does not answer."""
        self.doubted = asyncio.Event()
        """Set when it should be asked soon."""
        self.excluded: tuple[str, ...] = ()
        """Its devices that do not meet the fleet's conditions, with the first that each misses."""
        self._where = where
        self._changed = changed
        self._is_away = False
        self._unanswered = 0
        self._heard_s = float("-inf")
        self._asking: asyncio.Task[bool] | None = None

    @property
    def name(self) -> str:
        """What its devices have behind "@"."""
        return self.entry.name

    @property
    def state(self) -> MemberState:
        """Whether it gets work."""
        if self._is_away:
            return MemberState.AWAY
        if self.capabilities is None:
            return MemberState.STARTING
        return MemberState.DRAINING if self.entry.drain else MemberState.SERVING

    def renamed(self, entry: Entry, where: DeviceFilter) -> None:
        """Take up what a fleet file says of it now."""
        if (entry, where) != (self.entry, self._where):
            self.entry, self._where = entry, where
            if self.capabilities is not None:
                self._take(self.capabilities, {})
            self._changed()

    async def ask(self) -> bool:
        """Ask for its capabilities; return whether it answered. Never raises for a member."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        return await asyncio.shield(self._asking)

    async def heard_within(self, seconds: float) -> bool:
        """Return whether it answered within the last `seconds`, or answers now."""
        age_s = asyncio.get_running_loop().time() - self._heard_s
        return True if age_s <= seconds and not self._is_away else await self.ask()

    def heard(self) -> None:
        """Note that it answered a call."""
        self._heard_s = asyncio.get_running_loop().time()

    def lost(self, error: KernelFoundryError) -> None:
        """Note that it could not be reached, or cannot work now."""
        self.reason = error.message
        self.doubted.set()
        if not self._is_away:
            self._is_away = True
            self._changed()

    async def close(self) -> None:
        """Close the connection."""
        if self._asking is not None:
            self._asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._asking
        await self.evaluator.close()

    async def _ask(self) -> bool:
        before = {device.own_id: device.in_flight for device in self.devices}
        # The first answer may take the time to measure devices.
        limit_s = None if self.capabilities is None else _ANSWER_S
        try:
            async with asyncio.timeout(limit_s):
                capabilities = await self.evaluator.capabilities()
        except TimeoutError:
            self._unanswered += 1
            if self._unanswered >= _SILENT_AFTER:
                self.silent.set()
                self.lost(
                    ServiceUnavailableError(
                        f"{self.entry.address}: no answer within {_ANSWER_S:g} s,"
                        f" {self._unanswered} times",
                        target=self.entry.address,
                    )
                )
            return False
        except KernelFoundryError as error:
            self.lost(error)
            return False
        finally:
            self.tried.set()
        self._unanswered = 0
        self.silent.clear()
        self.heard()
        self._take(capabilities, before)
        return True

    def _take(self, capabilities: Capabilities, before: dict[str, int]) -> None:
        """Take up what it says, so that a device which is as it was stays the same object.

        Args:
            capabilities: What it says.
            before: Calls of this fleet in flight when it was asked, by own id.
        """
        known = {device.own_id: device for device in self.devices}
        pending = {load.device: load.pending for load in capabilities.loads}
        devices, excluded = [], []
        for told in capabilities.devices:
            spec = replace(
                told,
                id=f"{told.id}@{self.name}",
                clock_policy=self.entry.clock_policy or told.clock_policy,
            )
            unmet = self._where.unmet(self.entry, spec)
            if unmet:
                excluded.append(f"{told.id}: {unmet}")
                continue
            name = device_class(spec)
            device = known.get(told.id)
            if device is None or device.class_name != name or device.spec.id != spec.id:
                ways = ways_to_ask(spec)
                device = FleetDevice(
                    member=self, own_id=told.id, spec=spec, class_name=name, ways=ways
                )
            device.spec = spec
            if told.id in pending:
                device.others = max(pending[told.id] - before.get(told.id, 0), 0)
            devices.append(device)
        has_changed = self._is_away or self.capabilities is None or tuple(devices) != self.devices
        self._is_away = False
        self.capabilities = capabilities
        self.devices = tuple(devices)
        self.excluded = tuple(excluded)
        if has_changed:
            self._changed()

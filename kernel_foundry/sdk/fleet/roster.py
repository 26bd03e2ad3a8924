"""Who is in a fleet now: follows its source, asks every member, closes those that leave."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.ports import Evaluator
from kernel_foundry.sdk.fleet.change import FleetChange
from kernel_foundry.sdk.fleet.member import Member, MemberState
from kernel_foundry.sdk.fleet.membership import DeviceFilter, Entry, Membership, Source
from kernel_foundry.sdk.fleet.router import Router

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """How long a fleet waits, in seconds."""

    patience_s: float = 60.0
    """For a device of the right class to come back."""
    busy_patience_s: float = 600.0
    """For room in the queues of devices."""
    watch_s: float = 5.0
    """Between two questions to an evaluator that answers; also how often its file is looked at."""
    first_pause_s: float = 0.25
    """After which one that is away is asked again; doubled up to `watch_s`."""
    fresh_s: float = 1.0
    """An evaluator not heard from for so long is asked before a candidate is sent to it: if it is
    lost later, the candidate was there."""
    start_s: float = 10.0
    """How long evaluators may take to be heard from once one of them was."""


class Roster:
    """The members of a fleet; made and used in one event loop.

    Args:
        source: Which evaluators.
        connect: From an address to its evaluator, which is closed here.
        options: How long is waited.

    Raises:
        InvalidArgumentError: the source cannot be read.
    """

    def __init__(
        self, source: Source, connect: Callable[[str], Evaluator], options: FleetOptions
    ) -> None:
        self._source = source
        self._connect = connect
        self._options = options
        self._membership = source.read()
        self._members: dict[str, Member] = {}
        """By address."""
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._keeper: asyncio.Task[None] | None = None
        self._first_answers: asyncio.Future[None] | None = None
        self._router = Router()
        self._is_stale = True
        """Devices came or went since the router took them up."""
        self._away: frozenset[str] = frozenset()
        """Addresses of members that are away."""
        self._listeners: list[Callable[[FleetChange], None]] = []
        self.changed = asyncio.Event()
        """Set, and replaced, when devices come or go."""

    @property
    def members(self) -> tuple[Member, ...]:
        """All that the source names now."""
        return tuple(self._members.values())

    def router(self) -> Router:
        """Return the router with the devices that there are now."""
        if self._is_stale:
            self._is_stale = False
            self._router.take(self._members.values())
        return self._router

    async def started(self) -> None:
        """Return once members were heard from; at first use it asks all of them."""
        if self._first_answers is None:
            self._apply(self._membership)
            self._keeper = asyncio.create_task(self._keep())
            self._first_answers = asyncio.ensure_future(self._hear())
        await asyncio.shield(self._first_answers)

    @contextlib.contextmanager
    def telling(self, listener: Callable[[FleetChange], None]) -> Iterator[None]:
        """Tell a listener of each member that is away, goes away or comes back meanwhile."""
        for member in self.members:
            if member.state is MemberState.AWAY:
                listener(self._change(member))
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    async def close(self) -> None:
        """Close every connection; evaluators elsewhere go on."""
        tasks = [*self._watches.values(), *self._leaving, self._keeper, self._first_answers]
        for task in tasks:
            if task is not None:
                task.cancel()
        await asyncio.gather(*(t for t in tasks if t is not None), return_exceptions=True)
        for member in self._members.values():
            await member.close()
        self._members.clear()

    async def _hear(self) -> None:
        """Wait for one answer, and a little for the others."""
        tried = [asyncio.create_task(member.tried.wait()) for member in self._members.values()]
        _, waiting = await asyncio.wait(tried, return_when=asyncio.FIRST_COMPLETED)
        if waiting:
            await asyncio.wait(waiting, timeout=self._options.start_s)
        for task in waiting:
            task.cancel()

    def _apply(self, membership: Membership) -> None:
        """Take up who belongs to the fleet."""
        self._membership = membership
        entries = {entry.address: entry for entry in membership.entries}
        for address in [a for a in self._members if a not in entries]:
            self._watches.pop(address).cancel()
            leaving = asyncio.create_task(self._leave(self._members.pop(address)))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
        for address, entry in entries.items():
            if address in self._members:
                self._members[address].renamed(entry, membership.where)
            else:
                self._join(entry, membership.where)
        self._tell_change()

    def _join(self, entry: Entry, where: DeviceFilter) -> None:
        member = Member(entry, self._connect(entry.address), self._tell_change, where)
        self._members[entry.address] = member
        self._watches[entry.address] = asyncio.create_task(self._watch(member))

    async def _leave(self, member: Member) -> None:
        """Close a member that was removed, once its calls are answered."""
        await member.idle.wait()
        await member.close()

    def _tell_change(self) -> None:
        self._is_stale = True
        waited_for, self.changed = self.changed, asyncio.Event()
        waited_for.set()
        self._tell_listeners()

    def _tell_listeners(self) -> None:
        before = self._away
        self._away = frozenset(
            address for address, member in self._members.items() if member.state is MemberState.AWAY
        )
        for address in sorted(self._away ^ before):
            member = self._members.get(address)
            if member is None:  # it belongs to the fleet no more
                continue
            for listener in self._listeners:
                listener(self._change(member))

    def _change(self, member: Member) -> FleetChange:
        is_away = member.state is MemberState.AWAY
        return FleetChange(
            evaluator=member.name,
            is_away=is_away,
            reason=member.reason if is_away else "",
            there=len(self._members) - len(self._away),
            total=len(self._members),
        )

    async def _keep(self) -> None:
        """Follow the source as long as the fleet is open."""
        while True:
            await asyncio.sleep(min(1.0, self._options.watch_s))
            if self._source.has_changed():
                try:
                    self._apply(self._source.read())
                except InvalidArgumentError as error:
                    _log.warning("the fleet stays as it was: %s", error.message)

    async def _watch(self, member: Member) -> None:
        """Ask a member again and again, sooner while it is away."""
        pause_s = self._options.first_pause_s
        while True:
            member.doubted.clear()
            if await member.ask():
                pause_s, wait_s = self._options.first_pause_s, self._options.watch_s
            else:
                wait_s, pause_s = pause_s, min(2 * pause_s, self._options.watch_s)
                member.doubted.clear()  # set by this very answer
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await member.doubted.wait()

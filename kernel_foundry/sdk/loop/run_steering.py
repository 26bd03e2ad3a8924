"""Applies steering to a run while a loop works on it (`kernel_foundry.domain.steering`)."""

import asyncio
from typing import Final

from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.steering import SteeringAction, SteeringEvent, SteeringState
from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.ports import Archive
from kernel_foundry.sdk.loop.budget import StopCause
from kernel_foundry.sdk.loop.budget_meter import BudgetMeter
from kernel_foundry.sdk.loop.progress import Listener

_POLL_S: Final = 1.0
"""How often a loop that waits for a model or a device looks for new steering."""


class RunSteering:
    """The steering of one run: read before each proposal, and once a second meanwhile.

    It acts on pause, resume, stop and injected candidates, and has the hint, which sweeps heed;
    what concerns selections is for the archive.

    Args:
        archive: Has the events.
        run: Name of the run.
        meter: Is paused and stopped.
        listener: Told of what is asked after `begin`.
    """

    def __init__(self, archive: Archive, run: str, meter: BudgetMeter, listener: Listener) -> None:
        self._archive = archive
        self._run = run
        self._meter = meter
        self._listener = listener
        self._state = SteeringState()
        self._candidates: asyncio.Queue[KernelSource] = asyncio.Queue()
        self._may_go_on = asyncio.Event()
        self.stopped: Final = asyncio.Event()

    @property
    def hint(self) -> str:
        """The words for the next proposals; "" for none."""
        return self._state.hint

    async def begin(self) -> None:
        """Apply earlier actions; the listener is called only if the run is paused."""
        pause: SteeringEvent | None = None
        while events := await self._archive.steering(self._run, after=self._state.sequence):
            for event in events:
                self._take(event)
                is_pause = event.steering.action is SteeringAction.PAUSE
                pause = event if is_pause else pause
        self._apply()
        if self._state.is_paused and pause is not None:
            self._listener(pause)

    async def read(self) -> None:
        """Take up what was asked since."""
        while events := await self._archive.steering(self._run, after=self._state.sequence):
            for event in events:
                if event.sequence > self._state.sequence:  # else another call took it up meanwhile
                    self._take(event)
                    self._listener(event)
        self._apply()

    async def follow(self) -> None:
        """Read on until cancelled."""
        while True:
            await asyncio.sleep(_POLL_S)
            try:
                await self.read()
            except KernelFoundryError:
                continue  # a short outage is harmless; a lasting one shows at the next write

    async def until_unpaused(self) -> None:
        """Return once the run is not paused, or is stopped."""
        await self._may_go_on.wait()

    async def next_candidate(self) -> KernelSource:
        """Wait for a candidate to judge and return it; none comes while the run is paused."""
        source = await self._candidates.get()
        await self.until_unpaused()
        return source

    def _take(self, event: SteeringEvent) -> None:
        self._state.take(event)
        if event.steering.source is not None:
            self._candidates.put_nowait(event.steering.source)

    def _apply(self) -> None:
        if self._state.is_stopped:
            self._meter.stop(StopCause.STOPPED)
            self.stopped.set()
        if self._state.is_paused and not self._state.is_stopped:
            self._meter.pause()
            self._may_go_on.clear()
        else:
            self._meter.go_on()
            self._may_go_on.set()

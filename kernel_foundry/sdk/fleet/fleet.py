"""Several evaluators behind the `Evaluator` port: callers see one, whose devices come and go.

A call goes to the least busy device of its task's class (`router.py`). When an evaluator is lost
the call is repeated on another one of the class, with its request id; the answer that comes back
first is the only one. `member.py` knows who answers.
"""

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.device import Capabilities
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.evaluation import Evaluation, Setting
from kernel_foundry.domain.foreign import ForeignRequest
from kernel_foundry.domain.plain import to_json
from kernel_foundry.domain.probe import Probe
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.sweep import ConfigurationResult, SweepRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import (
    BackendUnavailableError,
    DeviceBusyError,
    DeviceDriverError,
    InvalidArgumentError,
    KernelFoundryError,
    MalformedAnswerError,
    ProcessLostError,
    ServiceUnavailableError,
    ShuttingDownError,
    VerdictMismatchError,
)
from kernel_foundry.ports import Evaluator
from kernel_foundry.sdk.fleet.capabilities import fleet_capabilities
from kernel_foundry.sdk.fleet.change import FleetChange
from kernel_foundry.sdk.fleet.host import FleetHost, host_of
from kernel_foundry.sdk.fleet.losses import Losses
from kernel_foundry.sdk.fleet.member import FleetDevice, Member, MemberState
from kernel_foundry.sdk.fleet.membership import Source
from kernel_foundry.sdk.fleet.roster import FleetOptions, Roster
from kernel_foundry.sdk.fleet.router import DeviceQuery

T = TypeVar("T")

_log = logging.getLogger(__name__)

_ELSEWHERE: Final = (
    BackendUnavailableError,
    DeviceDriverError,
    MalformedAnswerError,
    ProcessLostError,
    VerdictMismatchError,
)
"""A device failed, or its evaluator is none of ours; another may do."""
_REMEMBERED_ROUTES: Final = 4096
_SHOWN: Final = 8
"""Devices, and evaluators, that a message names."""


@dataclass(slots=True)
class _Tries:
    """What became of one call so far."""

    candidate: str = ""
    """Digest of the candidate that it sends; "": none."""
    key: str = ""
    """Digest of the request; "" without an id."""
    failed: dict[FleetDevice, KernelFoundryError] = field(default_factory=dict)
    busy: set[FleetDevice] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    """Names of members that were lost or did not answer meanwhile."""


class Fleet:
    """Implements `kernel_foundry.ports.Evaluator`; made and used in one event loop.

    Every method may also raise `ServiceUnavailableError`: no evaluator with the device answers.

    Args:
        source: Which evaluators.
        connect: From an address to its evaluator, which the fleet closes.
        options: How long it waits.

    Raises:
        InvalidArgumentError: the source cannot be read.
    """

    def __init__(
        self,
        source: Source,
        connect: Callable[[str], Evaluator],
        options: FleetOptions = FleetOptions(),  # noqa: B008  frozen, a plain value
    ) -> None:
        self._options = options
        self._roster = Roster(source, connect, options)
        self._losses = Losses()
        self._routes: OrderedDict[str, FleetDevice] = OrderedDict()
        """Device that a request with an id went to last: the evaluator there knows the answer."""

    async def capabilities(self) -> Capabilities:
        """Return the devices that take work, with ids such as "cuda:0@gpuhost:50051"."""
        await self._roster.started()
        return fleet_capabilities(self._roster.members, self._roster.router().devices)

    async def hosts(self) -> tuple[FleetHost, ...]:
        """Return every evaluator of the fleet, whether it gets work or not."""
        await self._roster.started()
        return tuple(host_of(member) for member in self._roster.members)

    async def admit(self, task: Task, device: str = "") -> Admission:
        """Admit a task on a device of the class that it stays on."""

        async def work(chosen: FleetDevice) -> Admission:
            admission = await chosen.member.evaluator.admit(task, chosen.own_id)
            seen = replace(
                admission.device, id=chosen.spec.id, clock_policy=chosen.spec.clock_policy
            )
            return replace(admission, device=seen)

        return await self._on_device(DeviceQuery(device=device, task=task.digest), work, _Tries())

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate; `Evaluation.device` names the evaluator, too."""
        needs_device = not (request.build_only and request.architecture)
        wanted = (
            DeviceQuery(
                device=request.device,
                language=request.source.language,
                task=request.task.digest,
            )
            if needs_device
            else DeviceQuery()
        )

        async def work(chosen: FleetDevice) -> Evaluation:
            asked = replace(request, device=chosen.own_id) if needs_device else request
            evaluation = await chosen.member.evaluator.evaluate(asked)
            judged_on = f"{evaluation.device}@{chosen.member.name}" if needs_device else ""
            return replace(evaluation, device=judged_on or evaluation.device)

        tries = _Tries(candidate=request.source.digest, key=_key(request, request.request_id))
        try:
            return await self._on_device(wanted, work, tries)
        except _QuarantinedError:
            return self._losses.verdict(request)

    async def evaluate_foreign(self, request: ForeignRequest) -> Evaluation:
        """Judge a foreign kernel; `Evaluation.device` names the evaluator, too."""

        async def work(chosen: FleetDevice) -> Evaluation:
            asked = replace(request, device=chosen.own_id)
            evaluation = await chosen.member.evaluator.evaluate_foreign(asked)
            return replace(evaluation, device=f"{evaluation.device}@{chosen.member.name}")

        wanted = DeviceQuery(device=request.device, task=request.task.digest)
        try:
            return await self._on_device(wanted, work, _Tries(candidate=request.source.digest))
        except _QuarantinedError:
            return self._losses.verdict(request)

    async def sweep(self, request: SweepRequest) -> AsyncGenerator[ConfigurationResult, None]:
        """Try every configuration on one device; on another one if that is lost."""
        wanted = DeviceQuery(
            device=request.device, language=request.source.language, task=request.task.digest
        )
        tries = _Tries(candidate=request.source.digest, key=_key(request, request.request_id))
        told: set[tuple[Setting, ...]] = set()
        while not self._losses.is_quarantined(request.source.digest):
            device = await self._reserved(wanted, tries)
            asked = replace(request, device=device.own_id)
            try:
                async with aclosing(device.member.evaluator.sweep(asked)) as results:
                    while True:
                        result = await _unless_silent(device.member, anext(results))
                        device.member.heard()
                        if result.configuration not in told:
                            told.add(result.configuration)
                            yield result
            except StopAsyncIteration:
                return
            except KernelFoundryError as error:
                self._after(device, error, wanted, tries)
            finally:
                device.end()
        yield self._losses.swept(request.source.digest)

    async def probe(self, device: str = "") -> tuple[Probe, ...]:
        """Try what must work on the host of one device."""

        async def work(chosen: FleetDevice) -> tuple[Probe, ...]:
            return await chosen.member.evaluator.probe(chosen.own_id)

        return await self._on_device(DeviceQuery(device=device), work, _Tries())

    @contextlib.contextmanager
    def telling(self, listener: Callable[[FleetChange], None]) -> Iterator[None]:
        """Tell a listener of each evaluator that is away, goes away or comes back meanwhile."""
        with self._roster.telling(listener):
            yield

    async def close(self) -> None:
        """Close every connection; evaluators elsewhere go on."""
        await self._roster.close()

    async def _on_device(
        self, wanted: DeviceQuery, work: Callable[[FleetDevice], Awaitable[T]], tries: _Tries
    ) -> T:
        """Return what `work` gives on a device, on another one if the first is lost.

        Raises:
            _QuarantinedError: the candidate was lost with too many evaluators.
        """
        while True:
            if tries.candidate and self._losses.is_quarantined(tries.candidate):
                raise _QuarantinedError
            device = await self._reserved(wanted, tries)
            try:
                result = await _unless_silent(device.member, work(device))
            except KernelFoundryError as error:
                self._after(device, error, wanted, tries)
            else:
                device.member.heard()
                device.tasks |= {wanted.task}
                return result
            finally:
                device.end()

    async def _reserved(self, wanted: DeviceQuery, tries: _Tries) -> FleetDevice:
        """Return the device for a call, which counts as one in flight there from now on.

        Raises:
            BackendUnavailableError: no evaluator has such a device.
            ServiceUnavailableError: none of those that have it answers.
            DeviceBusyError: their queues stay full.
        """
        await self._roster.started()
        clock = asyncio.get_running_loop().time
        began_s = clock()
        while True:
            changed = self._roster.changed
            device = self._chosen(wanted, tries)
            if device is not None:
                device.begin()
                is_there = not tries.candidate or await device.member.heard_within(
                    self._options.fresh_s
                )
                if is_there and device in device.member.devices:
                    self._remember_route(tries.key, device)
                    return device
                device.end()
                if not is_there:
                    tries.lost.add(device.member.name)
                continue
            waited_s = clock() - began_s
            if tries.busy:
                if waited_s > self._options.busy_patience_s:
                    raise DeviceBusyError(f"every device {wanted.shown} has its queue full")
                tries.busy.clear()
                await asyncio.sleep(self._options.first_pause_s)
                continue
            if tries.failed:
                raise next(reversed(tries.failed.values()))
            if waited_s >= self._options.patience_s or not self._may_come(wanted):
                raise self._unavailable(wanted)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._options.patience_s - waited_s):
                    await changed.wait()

    def _chosen(self, wanted: DeviceQuery, tries: _Tries) -> FleetDevice | None:
        avoid = tries.busy | tries.failed.keys()
        route = self._routes.get(tries.key)
        if route is not None and route not in avoid and route.member.name not in tries.lost:
            takes_calls = route.member.state in (MemberState.SERVING, MemberState.DRAINING)
            if takes_calls and route in route.member.devices:
                return route
        return self._roster.router().choose(wanted, avoid=avoid, shun=tries.lost)

    def _remember_route(self, key: str, device: FleetDevice) -> None:
        if key:
            self._routes.pop(key, None)
            self._routes[key] = device
            while len(self._routes) > _REMEMBERED_ROUTES:
                self._routes.popitem(last=False)

    def _after(
        self, device: FleetDevice, error: KernelFoundryError, wanted: DeviceQuery, tries: _Tries
    ) -> None:
        """Note what a call failed of, if another device may do; else raise it."""
        member = device.member
        if isinstance(error, DeviceBusyError):
            tries.busy.add(device)
        elif isinstance(error, ServiceUnavailableError | ShuttingDownError):
            _log.info("evaluator %s was lost: %s", member.name, error.message)
            member.lost(error)
            tries.lost.add(member.name)
            if tries.candidate and isinstance(error, ServiceUnavailableError):
                self._losses.note(tries.candidate, member.name)
        elif isinstance(error, _ELSEWHERE):
            tries.failed[device] = error
            member.doubted.set()
        else:
            raise error

    def _may_come(self, wanted: DeviceQuery) -> bool:
        """Whether a device as wanted is away, or may be one of an evaluator not heard from."""
        unheard = any(m.capabilities is None for m in self._roster.members)
        return unheard or self._roster.router().is_known(wanted)

    def _unavailable(self, wanted: DeviceQuery) -> KernelFoundryError:
        router = self._roster.router()
        there = ", ".join(dict.fromkeys(d.spec.id for d in router.devices[:_SHOWN])) or "none"
        away = "; ".join(
            f"{m.name} is {m.state}{f' ({m.reason})' if m.reason else ''}"
            for m in self._roster.members[:_SHOWN]
            if m.state is not MemberState.SERVING
        )
        known = f"devices that answer: {there}" + (f"; {away}" if away else "")
        if self._may_come(wanted):
            task_class = router.class_of(wanted)
            kept = f", of class {task_class} as the task was judged before" if task_class else ""
            return ServiceUnavailableError(
                f"no evaluator with a device {wanted.shown}{kept} answers within"
                f" {self._options.patience_s:g} s; {known}",
                target=wanted.device,
            )
        return BackendUnavailableError(
            f"there is no device {wanted.shown} in the fleet; {known}", device=wanted.device
        )


async def hosts_of(evaluator: Evaluator) -> tuple[FleetHost, ...]:
    """Return the evaluators of a fleet.

    Raises:
        InvalidArgumentError: it is a single one.
    """
    if not isinstance(evaluator, Fleet):
        raise InvalidArgumentError(
            "this is a single evaluator: a comma makes a fleet (gpu1:50051,), and so does a fleet"
            " file",
            field="evaluator",
        )
    return await evaluator.hosts()


class _QuarantinedError(Exception):
    """The candidate of a call was lost with too many evaluators."""


async def _unless_silent(member: Member, work: Awaitable[T]) -> T:
    """Return what `work` gives.

    Raises:
        ServiceUnavailableError: its evaluator stopped answering.
    """
    call = asyncio.ensure_future(work)
    silence = asyncio.ensure_future(member.silent.wait())
    try:
        await asyncio.wait({call, silence}, return_when=asyncio.FIRST_COMPLETED)
        if not call.done():
            raise ServiceUnavailableError(member.reason, target=member.entry.address)
        return call.result()
    finally:
        silence.cancel()
        if not call.done():
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError, KernelFoundryError):
                await call


def _key(request: EvaluationRequest | SweepRequest, request_id: str) -> str:
    return content_digest(to_json(request)) if request_id else ""

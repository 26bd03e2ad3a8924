"""Finds the three services: in this process (`local/`), in child processes, or at an address.

Nothing else knows which kind it has.
"""

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.ports import Archive, Evaluator, Experience, Generator
from kernel_foundry.scratch import remove_leftovers, scratch_folder
from kernel_foundry.sdk.fleet.fleet import Fleet
from kernel_foundry.sdk.fleet.lone_evaluator import LoneEvaluator
from kernel_foundry.sdk.fleet.membership import fleet_source
from kernel_foundry.sdk.local.archive import local_archive
from kernel_foundry.sdk.local.evaluator import local_evaluator
from kernel_foundry.sdk.local.generator import local_generator

if TYPE_CHECKING:
    from kernel_foundry.rpc.connection import CallOptions

LOCAL = "local"
"""Target of a service that runs in this process."""

SPAWN = "spawn"
"""Target of a service that runs in a process of its own, started and ended with this one."""

_ALL: Final = "/*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Where each service is: `local`, `spawn`, `unix:/path` or `host:port`."""

    evaluator: str = LOCAL
    """Or several: `host:port,host:port`, the path of a fleet file (`sdk/fleet`), or `host:port/*`,
    all applications of an ingress."""
    archive: str = LOCAL
    generator: str = LOCAL
    store: str = ""
    """Store URL of a local or spawned archive; empty: the default one."""
    unsafe_no_sandbox: bool = False
    """Of a local or spawned evaluator."""

    @classmethod
    def at(cls, address: str) -> Self:
        """Return the targets of a gateway, which has all three at one address.

        Args:
            address: `host:port`, or `host:port/application` for one application's evaluators.

        Raises:
            InvalidArgumentError: it is none.
        """
        gateway, _, application = address.partition("/")
        host, _, port = gateway.rpartition(":")
        if not host or not port.isdigit():
            raise InvalidArgumentError(
                f"{address!r}: expected HOST:PORT or HOST:PORT/APPLICATION of a gateway", field="at"
            )
        return cls(evaluator=f"{gateway}/{application or '*'}", archive=gateway, generator=gateway)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The three ports."""

    evaluator: Evaluator
    archive: Archive
    generator: Generator


class Directory:
    """Opens each service once, at its first use, and closes all of them at the end."""

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._stack = contextlib.AsyncExitStack()
        remove_leftovers()
        self._evaluator: Evaluator | None = None
        self._opening = asyncio.Lock()
        """Two that ask at once get the same evaluator: to find it takes a call."""
        self._archive: Archive | None = None
        self._generating: tuple[Generator, Experience] | None = None

    async def close(self) -> None:
        """Close what was opened and end what was spawned."""
        await self._stack.aclose()

    async def services(self) -> Services:
        """Open all three."""
        return Services(
            evaluator=await self.evaluator(),
            archive=await self.archive(),
            generator=await self.generator(),
        )

    async def evaluator(self) -> Evaluator:
        """Return the evaluator.

        Raises:
            IsolationUnavailableError: nothing isolates candidates here and no flag allows that.
            ServiceUnavailableError: a spawned one did not start.
            InvalidArgumentError: what should name a fleet does not.
            KernelFoundryError: an ingress does not tell its applications.
        """
        async with self._opening:
            if self._evaluator is None:
                self._evaluator = await self._found_evaluator()
                self._stack.push_async_callback(self._evaluator.close)
            return self._evaluator

    async def _found_evaluator(self) -> Evaluator:
        target = await _with_applications(self._targets.evaluator)
        source = fleet_source(target)
        if source is not None:
            return Fleet(source, self._member)
        if target == LOCAL:
            return local_evaluator(self._targets.unsafe_no_sandbox)
        from kernel_foundry.rpc.evaluator import RemoteEvaluator

        address = await self._address("evaluator", target)
        patient = RemoteEvaluator(address, _options(target))
        return LoneEvaluator(target, patient, self._member(address))

    def _member(self, address: str) -> Evaluator:
        """One evaluator whose caller tries again itself."""
        if address == LOCAL:
            return local_evaluator(self._targets.unsafe_no_sandbox)
        from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
        from kernel_foundry.rpc.evaluator import RemoteEvaluator

        return RemoteEvaluator(address, CallOptions(retry=RetryPolicy(attempts=1)))

    async def archive(self) -> Archive:
        """Return the archive; raises StoreUnavailableError or CorruptArchiveError as it does."""
        if self._archive is None:
            target = self._targets.archive
            if target == LOCAL:
                self._archive = local_archive(self._targets.store)
            else:
                from kernel_foundry.rpc.archive import RemoteArchive

                address = await self._address("archive", target)
                self._archive = RemoteArchive(address, _options(target))
            self._stack.push_async_callback(self._archive.close)
        return self._archive

    async def generator(self) -> Generator:
        """Return the generator."""
        return (await self._generator_side())[0]

    async def experience(self) -> Experience:
        """Return the library of lessons, which lives with the generator."""
        return (await self._generator_side())[1]

    async def _generator_side(self) -> tuple[Generator, Experience]:
        if self._generating is None:
            target = self._targets.generator
            if target == LOCAL:
                self._generating = local_generator()
            else:
                from kernel_foundry.rpc.experience import RemoteExperience
                from kernel_foundry.rpc.generator import RemoteGenerator

                address = await self._address("generator", target)
                options = _options(target)
                self._generating = (
                    RemoteGenerator(address, options),
                    RemoteExperience(address, options),
                )
            for side in self._generating:
                self._stack.push_async_callback(side.close)
        return self._generating

    async def _address(self, service: str, target: str) -> str:
        if target != SPAWN:
            return target
        from kernel_foundry.sdk.spawned_service import SpawnedService

        folder = Path(self._stack.enter_context(scratch_folder(service)))
        spawned = SpawnedService(service, folder, self._arguments(service))
        self._stack.push_async_callback(spawned.close)
        return await spawned.start()

    def _arguments(self, service: str) -> list[str]:
        if service == "archive" and self._targets.store:
            return ["--store", self._targets.store]
        if service == "evaluator" and self._targets.unsafe_no_sandbox:
            return ["--unsafe-no-sandbox"]
        return []


async def _with_applications(target: str) -> str:
    """Return a target with the applications of an ingress in the place of `/*`."""
    address = target.removesuffix(_ALL)
    if address == target:
        return target
    from kernel_foundry.rpc.applications import applications

    names = await applications(address)
    return ",".join(f"{address}/{name}" for name in names) or address


def _options(target: str) -> "CallOptions":
    from kernel_foundry.rpc.connection import DEFAULT_OPTIONS
    from kernel_foundry.sdk.spawned_service import PATIENT

    return PATIENT if target == SPAWN else DEFAULT_OPTIONS

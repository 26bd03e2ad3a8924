"""Finds the three services: in this process, in child processes, or at an address.

The only file that imports the services themselves; nothing else knows which kind it has.
"""

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.exchange import Exchange
from kernel_foundry.domain.language import Language
from kernel_foundry.exported_form import FormReport, FormRequest
from kernel_foundry.paths import exchanges_dir, generator_store_url, prompts_dir, store_url
from kernel_foundry.ports import Archive, Evaluator, Experience, Generator
from kernel_foundry.scratch import remove_leftovers, scratch_folder
from kernel_foundry.sdk.fleet.fleet import Fleet
from kernel_foundry.sdk.fleet.membership import fleet_source

if TYPE_CHECKING:
    from archive_svc.run.replay import RunReplay as RunReplay  # noqa: PLC0414  sdk.replay has it from here
    from archive_svc.run.run_file import RunCopy
    from generator_svc.recorded_replies import (
        RecordedReplies as RecordedReplies,  # noqa: PLC0414  sdk.replay has it from here
    )
    from kernel_foundry.rpc.connection import CallOptions

LOCAL = "local"
"""Target of a service that runs in this process."""

SPAWN = "spawn"
"""Target of a service that runs in a process of its own, started and ended with this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Where each service is: `local`, `spawn`, `unix:/path` or `host:port`."""

    evaluator: str = LOCAL
    """Or several: `host:port,host:port`, or the path of a fleet file (`sdk/fleet`)."""
    archive: str = LOCAL
    generator: str = LOCAL
    store: str = ""
    """Store URL of a local or spawned archive; empty: the default one."""
    unsafe_no_sandbox: bool = False
    """Of a local or spawned evaluator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The three ports."""

    evaluator: Evaluator
    archive: Archive
    generator: Generator


class Directory:
    """Opens each service once, at its first use, and closes all of them at the end.

    Args:
        targets: Where the services are.
    """

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._stack = contextlib.AsyncExitStack()
        remove_leftovers()
        self._evaluator: Evaluator | None = None
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
        """
        if self._evaluator is None:
            target = self._targets.evaluator
            source = fleet_source(target)
            if source is not None:
                self._evaluator = Fleet(source, self._member)
            elif target == LOCAL:
                self._evaluator = _local_evaluator(self._targets.unsafe_no_sandbox)
            else:
                from kernel_foundry.rpc.evaluator import RemoteEvaluator

                address = await self._address("evaluator", target)
                self._evaluator = RemoteEvaluator(address, _options(target))
            self._stack.push_async_callback(self._evaluator.close)
        return self._evaluator

    def _member(self, address: str) -> Evaluator:
        """One evaluator of a fleet, which tries again elsewhere itself."""
        if address == LOCAL:
            return _local_evaluator(self._targets.unsafe_no_sandbox)
        from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
        from kernel_foundry.rpc.evaluator import RemoteEvaluator

        return RemoteEvaluator(address, CallOptions(retry=RetryPolicy(attempts=1)))

    async def archive(self) -> Archive:
        """Return the archive; raises StoreUnavailableError or CorruptArchiveError as it does."""
        if self._archive is None:
            target = self._targets.archive
            if target == LOCAL:
                from archive_svc.archive import LocalArchive

                self._archive = LocalArchive(self._targets.store or store_url())
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
                self._generating = _local_generator()
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


def export_run(store: str, run: str, path: Path) -> "RunCopy":
    """Write a run ("" for the newest) of the store at a URL ("" for the default) to a file.

    Raises:
        As `archive_svc.run.run_file.export_run`.
    """
    from archive_svc.run.run_file import export_run as export

    return export(store or store_url(), run, path)


def import_run(store: str, path: Path, *, name: str = "") -> "RunCopy":
    """Take a run from a file into the store at a URL ("" for the default).

    Raises:
        As `archive_svc.run.run_file.import_run`.
    """
    from archive_svc.run.run_file import import_run as take_in

    return take_in(store or store_url(), path, name=name)


def replay_into(store: str, run: str, into: str) -> "RunReplay":
    """Return a run ("" for the newest) of one store, to be made again in another; close it.

    Raises:
        As `archive_svc.run.replay.RunReplay`.
    """
    from archive_svc.run.replay import RunReplay

    return RunReplay(store, run, into)


def recorded_replies(language: Language, exchanges: Iterable[Exchange]) -> "RecordedReplies":
    """Return what makes proposals of a run's recorded exchanges again."""
    from generator_svc.recorded_replies import RecordedReplies

    return RecordedReplies(language, exchanges)


def try_exported_form(request: FormRequest) -> FormReport:
    """Run an exported file against its own reference, in a fresh locked process on this machine.

    Raises:
        ProcessLostError: the process died or did not end.
    """
    from evaluator_svc.exported_form.start import try_exported_form as try_form
    from evaluator_svc.settings import EvaluatorSettings

    return try_form(request, EvaluatorSettings.from_environment(os.environ))


def traffic_bound_ns(
    peaks: Peaks, *, cache_bytes: int, read_bytes: int, written_bytes: int
) -> float:
    """Return what moving these bytes takes at least on a device with these peaks."""
    from evaluator_svc.judge.graph.traffic import Traffic
    from evaluator_svc.judge.graph.traffic import traffic_bound_ns as bound_ns

    traffic = Traffic(read_bytes=read_bytes, written_bytes=written_bytes)
    return bound_ns(traffic, cache_bytes=cache_bytes, peaks=peaks)


def own_public_key() -> str:
    """Return the public key that this machine's evaluator signs with, in hexadecimal; "" for none.

    Raises:
        InvalidArgumentError: what is kept there is no key.
    """
    from evaluator_svc.settings import EvaluatorSettings
    from evaluator_svc.signing import own_public_key as kept

    return kept(EvaluatorSettings.from_environment(os.environ).signing_key)


def _local_generator() -> tuple[Generator, Experience]:
    from generator_svc.assembly import assemble

    parts = assemble(
        store_url=generator_store_url(), exchanges=exchanges_dir(), prompts=prompts_dir()
    )
    return parts.generator, parts.experience


def _local_evaluator(unsafe_no_sandbox: bool) -> Evaluator:
    from evaluator_svc.evaluator import LocalEvaluator
    from evaluator_svc.settings import EvaluatorSettings

    settings = EvaluatorSettings.from_environment(os.environ)
    if unsafe_no_sandbox:
        settings = replace(settings, unsafe_no_sandbox=True)
    return LocalEvaluator(settings)


def _options(target: str) -> "CallOptions":
    from kernel_foundry.rpc.connection import DEFAULT_OPTIONS
    from kernel_foundry.sdk.spawned_service import PATIENT

    return PATIENT if target == SPAWN else DEFAULT_OPTIONS

"""All devices of an evaluator: found at first use, chosen by id or kind, set aside when broken."""

import threading
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from evaluator_svc.cache.disk_cache import make_private
from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.messages.locked import Ready
from evaluator_svc.processes.build_pools import BuildPools
from evaluator_svc.processes.forking import RUNNER
from evaluator_svc.processes.judge_starter import JudgeStarter
from evaluator_svc.processes.locked_starter import LockedStarter
from evaluator_svc.settings import EvaluatorSettings
from evaluator_svc.signing import Signer
from kernel_foundry.domain.device import Availability, IsolationReport
from kernel_foundry.domain.language import Language
from kernel_foundry.errors import BackendUnavailableError, DeviceBusyError

_FAILURES_UNTIL_SET_ASIDE: Final = 3
"""In a row, of our own processes on one device; a candidate's failures do not count."""


class DeviceSites:
    """The devices; every method may be called from any thread."""

    def __init__(
        self,
        settings: EvaluatorSettings,
        starter: LockedStarter,
        judges: JudgeStarter,
        signer: Signer,
    ) -> None:
        self._settings = settings
        self._starter = starter
        self._judges = judges
        self._signer = signer
        self._probing = threading.Lock()
        self._choosing = threading.Lock()
        self._sites: dict[str, DeviceSite] | None = None
        self._availability: list[Availability] = []
        self._failures: dict[str, int] = {}
        self._set_aside: dict[str, str] = {}
        self.pools = BuildPools(settings, starter)

    def working(self) -> tuple[DeviceSite, ...]:
        """Return the devices that are not set aside."""
        return tuple(s for s in self._opened().values() if s.spec.id not in self._set_aside)

    def availability(self) -> tuple[Availability, ...]:
        """Return usable devices, and why others cannot be used, including those set aside."""
        self._opened()
        broken = [
            Availability(kind=device, available=False, reason=reason)
            for device, reason in self._set_aside.items()
        ]
        return (*self._availability, *broken)

    def isolation(self) -> tuple[IsolationReport, ...]:
        """Return the locks on each kind of process that meets candidates here."""
        kinds = dict.fromkeys(site.kind for site in self.working())
        # Without any device: what a runner that found none said.
        kinds = kinds or dict.fromkeys(self._settings.device_kinds)
        return tuple(report for kind in kinds for report in self._starter.reports(kind))

    @contextmanager
    def reserved(
        self,
        device: str,
        language: Language | None,
        avoid: Collection[str] = (),
        *,
        user: str = "",
    ) -> Iterator[DeviceSite]:
        """Choose a device and count the body as work that waits for it.

        Args:
            device: An id such as "cuda:1", a kind such as "cuda" for its least busy device, or ""
                for the least busy of the first kind that speaks `language`.
            language: Of the candidate; None when any will do.
            avoid: Ids of devices to leave out, such as those that failed this call before; one that
                matches must remain.
            user: Whose call it is; each user has a queue of that length.

        Raises:
            BackendUnavailableError: there is none, or it is set aside; says why.
            DeviceBusyError: too many calls wait for it.
        """
        candidates = [s for s in self._matching(device, language) if s.spec.id not in avoid]
        with self._choosing:
            site = min(candidates, key=lambda s: s.pending)
            room = self._settings.parallel_evaluations + self._settings.queue_limit
            waiting = site.pending_of[user]
            if waiting >= room:
                raise DeviceBusyError(
                    f"{waiting} calls wait for {site.spec.id} already: try again later, or "
                    f"raise KERNEL_FOUNDRY_QUEUE_LIMIT (now {self._settings.queue_limit})",
                    pending=str(waiting),
                )
            site.pending += 1
            site.pending_of[user] += 1
        try:
            yield site
        finally:
            with self._choosing:
                site.pending -= 1
                site.pending_of[user] -= 1

    def has_others(self, device: str, language: Language | None, tried: Collection[str]) -> bool:
        """Return whether a device beside those tried would do."""
        try:
            return any(s.spec.id not in tried for s in self._matching(device, language))
        except BackendUnavailableError:
            return False

    def succeeded(self, site: DeviceSite) -> None:
        """Note that our processes on this device work."""
        self._failures.pop(site.spec.id, None)

    def failed(self, site: DeviceSite, error: Exception) -> None:
        """Note a failure of our own on this device; after a few in a row it is set aside."""
        count = self._failures.get(site.spec.id, 0) + 1
        self._failures[site.spec.id] = count
        if count >= _FAILURES_UNTIL_SET_ASIDE:
            self._set_aside[site.spec.id] = f"set aside after {count} failures in a row: {error}"

    def close(self) -> None:
        """Wait for running evaluations, then end every process of every device, also half-started.

        No judge starts on any of them any more.
        """
        sites = tuple((self._sites or {}).values())
        for site in sites:
            site.threads.shutdown()
        self._judges.close()
        for site in sites:
            site.close()
        self.pools.close()
        self._starter.close()

    def _matching(self, device: str, language: Language | None) -> list[DeviceSite]:
        working = self.working()
        if ":" in device:
            found = [s for s in working if s.spec.id == device]
        elif device:
            found = _alike([s for s in working if s.kind == device])
        else:
            found = _alike([s for s in working if language in (None, s.spec.language)])
        if not found:
            raise self._unavailable(device, language)
        return found

    def _unavailable(self, device: str, language: Language | None) -> BackendUnavailableError:
        wanted = repr(device) if device else f"for {language.value}" if language else "at all"
        known = ", ".join(s.spec.id for s in self.working()) or "none"
        kind = device.partition(":")[0] or (language.value if language else "")
        reasons = {
            a.kind: a.reason
            for a in self.availability()
            if a.reason and kind in ("", a.kind.partition(":")[0])
        }
        message = f"there is no device {wanted} here; there is {known}"
        if reasons:
            # A loader gives one reason for each place where it looked.
            first = "; ".join(f"{kind}: {r.partition(';')[0]}" for kind, r in reasons.items())
            message += f" ({first}). `kfoundry devices --verbose` has all reasons"
        whole = "; ".join(f"{kind}: {reason}" for kind, reason in reasons.items())
        return BackendUnavailableError(message, device=device, reasons=whole)

    def _opened(self) -> dict[str, DeviceSite]:
        with self._probing:
            if self._sites is None:
                make_private(self._settings.cache_dir)
                self._availability = []
                found = [site for kind in self._settings.device_kinds for site in self._probe(kind)]
                self._sites = {site.spec.id: site for site in found}
            return self._sites

    def _probe(self, kind: str) -> list[DeviceSite]:
        """Ask a runner for the first device of a kind; the others are opened side by side."""
        first = self._ready(kind, 0)
        if first.device is not None:
            self._judges.warm_up()
        with ThreadPoolExecutor(max_workers=1) as threads:
            inspector = threads.submit(self.pools.try_inspector, kind)
            builder = self._builder(kind, first)
            inspector.result()
        reason = first.unavailable or ("" if builder is None else builder.unavailable)
        self._availability.append(Availability(kind=kind, available=not reason, reason=reason))
        if reason or builder is None:
            return []
        others = range(1, first.device_count)
        with ThreadPoolExecutor(max_workers=max(len(others), 1)) as threads:
            readies = [first, *threads.map(lambda index: self._ready(kind, index), others)]
        for index, ready in enumerate(readies):
            if ready.device is None:
                reason = ready.unavailable
                self._availability.append(
                    Availability(kind=f"{kind}:{index}", available=False, reason=reason)
                )
        version = builder.compiler_version
        return [self._open(ready, version) for ready in readies if ready.device is not None]

    def _ready(self, kind: str, index: int) -> Ready:
        process, ready = self._starter.start(
            RUNNER, kind=kind, index=index, counts_devices=index == 0
        )
        process.kill()
        return ready

    def _builder(self, kind: str, runner: Ready) -> Ready | None:
        """Return the report of a builder for a runner's device."""
        if runner.device is None:
            return None
        return self.pools.describe(kind, 0, runner.device.architecture if kind == "cuda" else "")

    def _open(self, ready: Ready, compiler_version: str) -> DeviceSite:
        return DeviceSite(
            ready,
            compiler_version=compiler_version,
            settings=self._settings,
            starter=self._starter,
            judges=self._judges,
            signer=self._signer,
            pools=self.pools,
        )


def _alike(sites: list[DeviceSite]) -> list[DeviceSite]:
    """The first device and its equals: times on others would not compare."""
    return [s for s in sites if _model(s) == _model(sites[0])]


def _model(site: DeviceSite) -> tuple[str, str, str]:
    return (site.kind, site.spec.name, site.spec.architecture)

"""Object code in memory and on disk with what was found in it; failed builds too.

Keyed by source, options, compiler and the code of ours that reads objects.
"""

import hashlib
import importlib.util
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from evaluator_svc.cache.disk_cache import DiskCache
from evaluator_svc.languages import backend_of
from evaluator_svc.messages.builder import TranslationUnit
from evaluator_svc.messages.object_report import ObjectReport
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.finding import Finding
from kernel_foundry.domain.plain import PlainError, from_json, to_json
from kernel_foundry.errors import PackageMissingError

_MEMORY_BYTES: Final = 64 << 20
"""Of one cache: about a thousand objects of usual size, a run's whole population."""
_ENTRY_BYTES: Final = 2 << 10
"""What an entry takes beside its content, its report included."""
_READERS: Final = ("behaviour", "cubin", "diagnosis", "inspector", "policy", "ptx", "spirv")
"""Packages that decide what is said of an object, or of a build that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltUnit:
    """What a build gave."""

    code: bytes
    """Object code; empty when the build failed."""
    assembly: bytes
    """PTX; empty where object code is its own assembly (SPIR-V)."""
    log: str
    build_ns: float
    """Time of the build, whenever it was."""
    findings: tuple[Finding, ...] = ()
    """Why the build failed; empty when it did not."""
    is_meant: bool = True
    """False: a `static_assert` failed."""
    report: ObjectReport | None = None
    """What an inspector found in it; None: none has read it."""

    @property
    def succeeded(self) -> bool:
        """True when there is object code."""
        return bool(self.code)

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, about."""
        return len(self.code) + len(self.assembly) + len(self.log) + _ENTRY_BYTES


def object_key(unit: TranslationUnit, device: DeviceSpec, compiler_version: str) -> str:
    """Return the digest of source (macros included), options, compiler and architecture.

    Of our own part in it, too: its headers and options are in the native module, and what is
    said of an object follows from the code that reads it.
    """
    return content_digest(
        _native_digest(),
        _readers_digest(),
        unit.source,
        "\0".join(unit.options),
        "\0".join(unit.kernels),
        device.id.partition(":")[0],
        device.architecture,
        # SPIR-V is built by the device's own driver, cubins by a compiler that knows no driver.
        device.driver_version if backend_of(device.language).depends_on_driver else "",
        compiler_version,
    )


@cache
def _native_digest() -> str:
    """Return the digest of the native module and of its headers; it is not loaded for that."""
    package = importlib.util.find_spec("kernel_foundry_native")
    assert package is not None
    assert package.submodule_search_locations is not None
    folders = [Path(folder) for folder in package.submodule_search_locations]
    (module,) = (path for folder in folders for path in folder.glob("_core*.so"))
    digest = hashlib.sha256(module.read_bytes())
    for header in sorted(path for folder in folders for path in folder.glob("include/*/kf/*.hpp")):
        named = "/".join(header.parts[-3:])
        digest.update(named.encode() + b"\0" + header.read_bytes())
    return digest.hexdigest()


@cache
def _readers_digest() -> str:
    """Return the digest of the code that reads objects; it is not loaded for that."""
    digest = hashlib.sha256()
    for name in _READERS:
        files = sorted((Path(__file__).parents[1] / name).rglob("*.py"))
        if not files:
            raise PackageMissingError(
                f"evaluator_svc/{name} has no code, though it decides what is said of objects:"
                " install Kernel Foundry again",
                package=f"evaluator_svc.{name}",
            )
        for path in files:
            digest.update(path.read_bytes())
    return digest.hexdigest()


class ObjectCache:
    """Built units by `object_key`; those used last are found without reading a file.

    Args:
        folder: Where they lie.
        secret: Returns the key that they are authenticated by.
        memory_bytes: Most that the units in memory may take.
    """

    def __init__(
        self, folder: Path, secret: Callable[[], bytes], memory_bytes: int = _MEMORY_BYTES
    ) -> None:
        self._entries = DiskCache(folder, secret)
        self._recent = _RecentUnits(memory_bytes)

    def get(self, key: str) -> BuiltUnit | None:
        """Return the unit built before, or None."""
        unit = self._recent.get(key) or self._read(key)
        if unit is not None:
            self._recent.put(key, unit)
        return unit

    def put(self, key: str, unit: BuiltUnit) -> None:
        """Remember `unit`."""
        head = _Head(
            code_bytes=len(unit.code),
            log=unit.log,
            build_ns=unit.build_ns,
            findings=unit.findings,
            is_meant=unit.is_meant,
            report=unit.report,
        )
        self._entries.put(key, b"\n".join((to_json(head).encode(), unit.code + unit.assembly)))
        self._recent.put(key, unit)

    def _read(self, key: str) -> BuiltUnit | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        text, _, body = entry.partition(b"\n")
        try:
            head = from_json(_Head, text)
        except PlainError:
            return None
        return BuiltUnit(
            code=body[: head.code_bytes],
            assembly=body[head.code_bytes :],
            log=head.log,
            build_ns=head.build_ns,
            findings=head.findings,
            is_meant=head.is_meant,
            report=head.report,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """First line of an entry, before object code and assembly; fields as of `BuiltUnit`."""

    code_bytes: int
    log: str
    build_ns: float
    findings: tuple[Finding, ...]
    is_meant: bool
    report: ObjectReport | None


class _RecentUnits:
    """The units used last, as many as fit; builds in several threads share them."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held_bytes = 0
        self._units: OrderedDict[str, BuiltUnit] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> BuiltUnit | None:
        """Return the unit, or None when it is not held."""
        with self._lock:
            return self._units.get(key)

    def put(self, key: str, unit: BuiltUnit) -> None:
        """Hold `unit` as the one used last; the longest unused ones make room."""
        if unit.size_bytes > self._most_bytes:
            return
        with self._lock:
            before = self._units.pop(key, None)
            self._held_bytes += unit.size_bytes - (before.size_bytes if before else 0)
            self._units[key] = unit
            while self._held_bytes > self._most_bytes:
                _, oldest = self._units.popitem(last=False)
                self._held_bytes -= oldest.size_bytes

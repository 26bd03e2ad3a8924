"""Object code on disk, by everything that decides it; failed builds are remembered too.

Knows nothing of how objects are built.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from evaluator_svc.disk_cache import DiskCache
from evaluator_svc.messages import TranslationUnit
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.language import Language


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

    @property
    def succeeded(self) -> bool:
        """True when there is object code."""
        return bool(self.code)


def object_key(unit: TranslationUnit, device: DeviceSpec, compiler_version: str) -> str:
    """Return the digest of source (macros included), options, compiler and architecture."""
    return content_digest(
        unit.source,
        "\0".join(unit.options),
        "\0".join(unit.kernels),
        device.id.partition(":")[0],
        device.architecture,
        # SPIR-V is built by the device's own driver, cubins by a compiler that knows no driver.
        "" if device.language is Language.CUDA else device.driver_version,
        compiler_version,
    )


class ObjectCache:
    """Built units by `object_key`.

    Args:
        folder: Where they lie.
    """

    def __init__(self, folder: Path) -> None:
        self._entries = DiskCache(folder)

    def get(self, key: str) -> BuiltUnit | None:
        """Return the unit built before, or None."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        head, _, body = entry.partition(b"\n")
        try:
            facts = json.loads(head)
            size = int(facts["code_bytes"])
            return BuiltUnit(
                code=body[:size],
                assembly=body[size:],
                log=str(facts["log"]),
                build_ns=float(facts["build_ns"]),
            )
        except (ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, unit: BuiltUnit) -> None:
        """Remember `unit`."""
        facts = {"log": unit.log, "build_ns": unit.build_ns, "code_bytes": len(unit.code)}
        head = json.dumps(facts).encode()
        self._entries.put(key, b"\n".join((head, unit.code + unit.assembly)))

"""Where candidates are built for an architecture that no device here has.

The limits of an architecture stand in its vendor's tables.
"""

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from evaluator_svc.cache.disk_cache import make_private
from evaluator_svc.cache.object_cache import ObjectCache
from evaluator_svc.processes.build_pools import BuildPools
from evaluator_svc.processes.judge_client import JudgeClient
from evaluator_svc.processes.judge_starter import JudgeStarter
from evaluator_svc.settings import EvaluatorSettings
from evaluator_svc.signing import Signer
from kernel_foundry.domain.device import DeviceSpec, IsolationReport, UnitLimits
from kernel_foundry.domain.language import Language
from kernel_foundry.errors import BackendUnavailableError, InvalidArgumentError

_KIB: Final = 1 << 10
_REGISTERS: Final = 64 * _KIB

_CUDA_UNITS: Final = {
    "sm_75": (64, 64, 1024, 16),
    "sm_80": (163, 164, 2048, 32),
    "sm_86": (99, 100, 1536, 16),
    "sm_87": (163, 164, 1536, 16),
    "sm_89": (99, 100, 1536, 24),
    "sm_90": (227, 228, 2048, 32),
    "sm_100": (227, 228, 2048, 32),
    "sm_103": (227, 228, 2048, 32),
    "sm_120": (99, 100, 1536, 24),
}
"""KiB of shared memory of a block and of a multiprocessor, its threads, its blocks.

Source: CUDA C++ Programming Guide, technical specifications for each compute capability.
"""

_ASSUMED_UNITS: Final = 128
"""Value of `device.compute_units` in plans; devices of one architecture differ in it."""
_ASSUMED_MEMORY: Final = 16 << 30

_HOST: Final = DeviceSpec(
    id="null:0",
    language=Language.SYCL,
    name="no device",
    vendor="",
    architecture="",
    driver_version="",
    compute_units=1,
    sub_group_size=1,
    max_block=1,
    shared_bytes=0,
    memory_bytes=0,
    cache_bytes=0,
)
"""The judge of builds only describes tasks, on the host."""


class BuildSite:
    """All that builds for one architecture have in common.

    Args:
        spec: What is known of devices of the architecture.
        compiler_version: Of the builders.
        isolation: Of the builders.
        settings: The evaluator's settings.
        pools: Ready builders and inspectors of all targets.
        judge: Describes tasks.
        signer: Holds the key of the caches.
    """

    def __init__(
        self,
        spec: DeviceSpec,
        *,
        compiler_version: str,
        isolation: IsolationReport,
        settings: EvaluatorSettings,
        pools: BuildPools,
        judge: JudgeClient,
        signer: Signer,
    ) -> None:
        self.spec = spec
        self.kind = spec.language.value
        self.compiler_version = compiler_version
        self.isolation = isolation
        self.settings = settings
        self.builders = pools.builders_of_architecture(self.kind, spec.architecture)
        self.inspectors = pools.inspectors_of_kind(self.kind)
        self.judge = judge
        self.objects = ObjectCache(settings.cache_dir / "objects", signer.cache_key)

    def building(self) -> AbstractContextManager[None]:
        """Return what a build holds: nothing, since no device is timed."""
        return nullcontext()


class BuildSites:
    """The build sites of an evaluator, made when first asked for.

    Args:
        settings: The evaluator's settings.
        judges: Starts the judge.
        pools: Ready builders and inspectors of all targets.
        signer: Holds the key of the caches.
    """

    def __init__(
        self,
        settings: EvaluatorSettings,
        judges: JudgeStarter,
        pools: BuildPools,
        signer: Signer,
    ) -> None:
        self._settings = settings
        self._judges = judges
        self._pools = pools
        self._signer = signer
        self._lock = threading.Lock()
        self._sites: dict[str, BuildSite] = {}
        self._judge: JudgeClient | None = None

    def site(self, language: Language, architecture: str) -> BuildSite:
        """Return the site of an architecture.

        Raises:
            InvalidArgumentError: builds without a device are for CUDA, and for known
                architectures.
            BackendUnavailableError: no compiler here builds for it.
        """
        if language is not Language.CUDA:
            raise InvalidArgumentError(
                "an architecture is for CUDA; SYCL object code is built for the device at hand",
                field="architecture",
            )
        with self._lock:
            if architecture not in self._sites:
                self._sites[architecture] = self._open(architecture)
            site = self._sites[architecture]
            site.judge = self._running_judge()  # a reference may have ended the one before
            return site

    def close(self) -> None:
        """End the judge; builders and inspectors are others'."""
        with self._lock:
            if self._judge is not None:
                self._judge.close()

    def _open(self, architecture: str) -> BuildSite:
        spec = _spec(architecture)
        make_private(self._settings.cache_dir)
        ready = self._pools.describe(Language.CUDA.value, 0, architecture)
        if ready.unavailable:
            raise BackendUnavailableError(ready.unavailable, device=spec.id)
        return BuildSite(
            spec,
            compiler_version=ready.compiler_version,
            isolation=ready.isolation,
            settings=self._settings,
            pools=self._pools,
            judge=self._running_judge(),
            signer=self._signer,
        )

    def _running_judge(self) -> JudgeClient:
        if self._judge is None or not self._judge.is_running:
            self._judge = self._judges.start(_HOST)
        return self._judge


def _spec(architecture: str) -> DeviceSpec:
    limits = _CUDA_UNITS.get(architecture)
    if limits is None:
        known = ", ".join(_CUDA_UNITS)
        raise InvalidArgumentError(
            f"no architecture {architecture!r}; known are {known}", field="architecture"
        )
    block_kib, unit_kib, work_items, groups = limits
    return DeviceSpec(
        id=f"cuda:{architecture}",
        language=Language.CUDA,
        name=f"any device of {architecture}",
        vendor="NVIDIA",
        architecture=architecture,
        driver_version="",
        compute_units=_ASSUMED_UNITS,
        sub_group_size=32,
        max_block=1024,
        shared_bytes=block_kib * _KIB,
        memory_bytes=_ASSUMED_MEMORY,
        cache_bytes=0,
        unit_limits=UnitLimits(
            registers=_REGISTERS,
            shared_bytes=unit_kib * _KIB,
            work_items=work_items,
            groups=groups,
        ),
    )

"""Evaluators of a fleet under test, which can be lost, held and asked what they did."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.device import Capabilities, DeviceSpec
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.foreign import ForeignRequest
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.sweep import ConfigurationResult, SweepRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import KernelFoundryError, ServiceUnavailableError
from kernel_foundry.sdk.fleet.fleet import Fleet
from kernel_foundry.sdk.fleet.membership import FixedSource, Source
from kernel_foundry.sdk.fleet.roster import FleetOptions
from kernel_foundry.testing.evaluator import FakeEvaluator

QUICK = FleetOptions(
    patience_s=5.0, busy_patience_s=5.0, watch_s=0.02, first_pause_s=0.01, fresh_s=0.0
)
HURRIED = replace(QUICK, patience_s=0.05)
TASK = Task(name="t", reference="class Model: ...", workloads=(Workload(name="default"),))


def device(model: str = "fast", **facts: str | int) -> DeviceSpec:
    spec = DeviceSpec(
        id="null:0",
        language=Language.SYCL,
        name=model,
        vendor="none",
        architecture="none",
        driver_version="1.0",
        compute_units=1,
        sub_group_size=16,
        max_block=1024,
        shared_bytes=65536,
        memory_bytes=1 << 30,
        cache_bytes=1 << 20,
    )
    return replace(spec, **facts)  # type: ignore[arg-type]  # of the types that fields have


def source(plan: str = "nothing") -> KernelSource:
    """A candidate; each text is another."""
    return KernelSource(language=Language.SYCL, device_code="", plan=plan)


def request(
    plan: str = "nothing", *, device: str = "null", request_id: str = "", task: Task = TASK
) -> EvaluationRequest:
    """A request to judge a candidate."""
    return EvaluationRequest(
        task=task, device=device, source=source(plan), request_id=request_id or f"id of {plan}"
    )


class Host:
    """An evaluator that notes what it judged, and may be lost.

    Args:
        spec: Its device.
    """

    def __init__(self, spec: DeviceSpec | None = None) -> None:
        self.spec = spec or device()
        self.judged: list[EvaluationRequest] = []
        self.away: KernelFoundryError | None = None
        """What every call fails with; None: it answers."""
        self.opened = asyncio.Event()
        """Unset it to hold evaluations."""
        self.opened.set()
        self.deadly: set[str] = set()
        """Plans of candidates that take it down."""
        self.is_closed = False

    @property
    def plans(self) -> list[str]:
        """Plans of the candidates that it judged, in order."""
        return [r.source.plan for r in self.judged]

    def lose(self) -> None:
        """Be lost: calls in flight fail as well."""
        self.away = ServiceUnavailableError("connection refused")
        self.opened.set()

    def come_back(self) -> None:
        """Answer again."""
        self.away = None

    async def capabilities(self) -> Capabilities:
        self._check()
        return await self._fake().capabilities()

    async def admit(self, task: Task, device: str = "") -> Admission:
        self._check()
        return await self._fake().admit(task, device)

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        self._check()
        self.judged.append(request)
        if request.source.plan in self.deadly:
            self.lose()
        await self.opened.wait()
        self._check()
        return await self._fake().evaluate(request)

    async def evaluate_foreign(self, request: ForeignRequest) -> Evaluation:
        """Judge a foreign kernel."""
        self._check()
        return await self._fake().evaluate_foreign(request)

    async def sweep(self, request: SweepRequest) -> AsyncGenerator[ConfigurationResult, None]:
        """Try every configuration; one that is lost ends after the first."""
        self._check()
        async for result in self._fake().sweep(request):
            yield result
            if request.source.plan in self.deadly:
                self.lose()
            self._check()

    async def probe(self, device: str = "") -> tuple[()]:
        """Try nothing."""
        return ()

    async def close(self) -> None:
        self.is_closed = True

    def _check(self) -> None:
        if self.away is not None:
            raise self.away

    def _fake(self) -> FakeEvaluator:
        return FakeEvaluator(device=self.spec)


def fleet_of(
    hosts: dict[str, Host], options: FleetOptions = QUICK, source: Source | None = None
) -> Fleet:
    return Fleet(source or FixedSource(tuple(hosts)), lambda address: hosts[address], options)

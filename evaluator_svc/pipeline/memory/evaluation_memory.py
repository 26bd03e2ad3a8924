"""The device memory of one evaluation: leased before anything is drawn, given back when all is."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.hardware.memory_account import MemoryLease
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.runner import BoundWorkload
from evaluator_svc.pipeline.memory.memory_plan import MemoryPlan, memory_plans, own_bytes
from evaluator_svc.processes.judge_client import JudgeClient
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.evaluation import EvaluationOutcome, Fact
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity

_TOLD_WAIT_SECONDS: Final = 0.05


class MoreMemoryError(Exception):
    """A candidate's plan asks for memory that is not free beside what the evaluation holds.

    Args:
        own_bytes: What the plan asks for.
    """

    def __init__(self, own_bytes: int) -> None:
        super().__init__(f"{own_bytes} bytes of a plan's own memory")
        self.own_bytes = own_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWish:
    """The known memory needs of an evaluation before it begins."""

    own_bytes: int = 0
    """Bytes that the candidate's plan allocates, if known."""
    is_alone: bool = False
    """Whether nobody else may hold anything meanwhile."""


class EvaluationMemory:
    """The device memory that one evaluation holds."""

    def __init__(self, site: DeviceSite, admission: Admission, wish: MemoryWish) -> None:
        self._account = site.memory
        self._plans = memory_plans(admission, site)
        self._wish = wish
        self._plan = self._plans[0]
        self._lease: MemoryLease | None = None
        self._waited_s = 0.0
        self._own_bytes = 0

    @property
    def plan(self) -> MemoryPlan:
        """How the workloads are judged; known once memory was taken."""
        return self._plan

    def take(self) -> None:
        """Wait until there is memory for one of the ways to judge the task.

        Raises:
            DeviceMemoryError: there never is.
        """
        started = time.monotonic()
        wish = self._wish
        if wish.is_alone:
            self._plan = self._plans[-1]
            self._lease = self._account.lease(
                max(self._account.capacity_bytes, self._plan.needed_bytes)
            )
        else:
            sizes = [plan.needed_bytes + wish.own_bytes for plan in self._plans]
            self._lease = self._account.lease(*sizes)
            self._plan = self._plans[sizes.index(self._lease.size_bytes)]
        self._waited_s = time.monotonic() - started

    def reserve(self, bound: Iterable[BoundWorkload]) -> CandidateFailure | None:
        """Add what the candidate's plan asks for; return its failure where there never is so much.

        Raises:
            MoreMemoryError: it is not free at present.
        """
        assert self._lease is not None, "memory is taken before a plan is bound"
        self._own_bytes = own = own_bytes(bound, self._plan)
        least, capacity = self._plans[-1].needed_bytes, self._account.capacity_bytes
        if least + own > capacity:
            return _too_much(own, least, capacity)
        missing = self._plan.needed_bytes + own - self._lease.size_bytes
        if missing > 0 and not self._lease.grow(missing):
            raise MoreMemoryError(own)
        return None

    def facts(
        self, judge: JudgeClient, draws: Iterable[int], *, pool_bytes: int
    ) -> tuple[Fact, ...]:
        """Return the memory that was held, as facts for evidence.

        Args:
            judge: Who holds the draws.
            draws: Their handles.
            pool_bytes: Of the runner's private sets.
        """
        held = [judge.memory_held(draw) for draw in draws]
        figures = {
            "shared buffers": sum(draw.shared_bytes for draw in held),
            "judge's tensors at most": max((draw.peak_bytes for draw in held), default=0),
            "timed sets": pool_bytes,
            "plan's own": self._own_bytes,
        }
        text = ", ".join(f"{name} {size / 1e9:.2f} GB" for name, size in figures.items() if size)
        names = ", ".join(sorted(self._plan.lean))
        facts = [Fact(name="device memory", value=text or "next to nothing")]
        if names:
            facts.append(Fact(name="judged seed by seed for want of memory", value=names))
        if self._waited_s > _TOLD_WAIT_SECONDS:
            waited = f"{self._waited_s:.2f} s"
            facts.append(Fact(name="waited for device memory", value=waited))
        return tuple(facts)

    def give_back(self) -> None:
        """Let others have it; more than once does no harm."""
        if self._lease is not None:
            self._lease.give_back()


def _too_much(own: int, least: int, capacity: int) -> CandidateFailure:
    finding = Finding(
        kind=FindingKind.MEMORY_LIMIT,
        severity=Severity.ERROR,
        message=(
            f"the plan asks for {own / 1e9:.1f} GB of its own, and {(capacity - least) / 1e9:.1f}"
            " GB are left beside the tensors"
        ),
        evidence=(Figure(name="asked_bytes", value=float(own)),),
        hint="ask for less scratch; work in parts that reuse it",
    )
    return CandidateFailure(outcome=EvaluationOutcome.PLAN_ERROR, findings=(finding,))

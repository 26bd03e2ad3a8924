"""The loop of a run on fakes, but for what a test is about."""

from typing import Any

from kernel_foundry.domain.archive import Run
from kernel_foundry.domain.request import EvaluationLimits, Proposal, ProposalRequest
from kernel_foundry.ports import Archive
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.loop.evolution import Evolution
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator


def evolution_of(run: Run, archive: Archive, budget: Budget, **fields: Any) -> Evolution:
    """Return the loop of `run`; it judges one candidate at a time, and two are in flight."""
    given = {
        "evaluator": FakeEvaluator(),
        "generator": FakeGenerator(),
        "limits": EvaluationLimits(),
        "in_flight": 2,
        "judging": 1,
        "listener": lambda _event: None,
    }
    return Evolution(run=run, archive=archive, budget=budget, **(given | fields))


class RequestLog(FakeGenerator):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[ProposalRequest] = []

    async def propose(self, request: ProposalRequest) -> Proposal:
        self.requests.append(request)
        return await super().propose(request)

"""One evaluator elsewhere: waited for when it is lost, and lost with a candidate twice at most."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from evaluator_svc.service import evaluator_service
from kernel_foundry.domain.device import Capabilities
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.sweep import SweepRequest
from kernel_foundry.errors import DeviceBusyError, ServiceUnavailableError
from kernel_foundry.rpc.server import running
from kernel_foundry.sdk.fleet.lone_evaluator import LoneEvaluator
from kernel_foundry.sdk.services import Directory, Targets
from tests.sdk.fleet.hosts import TASK, Host, request, source

PLAN = "def launch(x, out):\n    k[1, 1](x, out)\n"


class Restarting(Host):
    """A host that is started again whenever it is lost."""

    def __init__(self, *deadly: str) -> None:
        super().__init__()
        self.deadly.update(deadly)
        self.restarts = 0
        self.restarted: Callable[[], None] = lambda: None

    async def capabilities(self) -> Capabilities:
        if self.away is not None:
            self.restarts += 1
            self.come_back()
            self.restarted()
        return await super().capabilities()


def asked(plan: str = "nothing", request_id: str = "") -> EvaluationRequest:
    return request(plan, device="null:0", request_id=request_id)


def lone(host: Host, patience_s: float = 5.0) -> LoneEvaluator:
    return LoneEvaluator("gpu1:1", host, host, patience_s)


@pytest.fixture(params=["direct", "served"])
async def deadly_host(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[Restarting, object]]:
    """A host that "deadly" takes down, and what reaches it: by a target, too."""
    host = Restarting("deadly")
    if request.param == "direct":
        yield host, lone(host)
        return
    async with running([evaluator_service(host)], f"unix:{tmp_path}/s") as target:
        directory = Directory(Targets(evaluator=target))
        yield host, await directory.evaluator()
        await directory.close()


async def test_a_candidate_that_takes_the_only_host_down_twice_is_quarantined(
    deadly_host: tuple[Restarting, LoneEvaluator],
) -> None:
    """It is an outcome; others are judged, and it is never sent again."""
    host, evaluator = deadly_host
    evaluation = await evaluator.evaluate(asked("deadly"))
    assert evaluation.outcome is EvaluationOutcome.CRASHED
    assert [f.kind for f in evaluation.findings] == [FindingKind.HOST_LOST]
    assert (await evaluator.evaluate(asked("harmless"))).passed
    again = await evaluator.evaluate(asked("deadly", request_id="another"))
    assert again.outcome is EvaluationOutcome.CRASHED
    sweep = SweepRequest(task=TASK, device="", source=source("deadly"))
    (swept,) = [result async for result in evaluator.sweep(sweep)]
    assert swept.findings[0].kind is FindingKind.HOST_LOST
    assert host.plans == ["deadly", "deadly", "harmless"]


async def test_a_host_that_is_lost_once_is_waited_for() -> None:
    """Its repeat is sent when it answers again, and not before."""
    host = Restarting()
    evaluator = lone(host)
    host.deadly.add("unlucky")
    host.restarted = host.deadly.clear
    assert (await evaluator.evaluate(asked("unlucky"))).passed
    assert (host.plans, host.restarts) == (["unlucky", "unlucky"], 1)


async def test_a_host_found_away_says_nothing_about_a_candidate() -> None:
    """And its error comes at once: nobody was told that it was there."""
    host = Host()
    evaluator = lone(host)
    host.lose()
    for _ in range(3):
        with pytest.raises(ServiceUnavailableError, match="refused"):
            await evaluator.evaluate(asked())
    assert host.judged == []
    host.come_back()
    assert (await evaluator.evaluate(asked())).passed


async def test_losses_of_calls_that_may_not_be_repeated_count_too() -> None:
    """Sweeps, here, which end with the loss."""
    host = Restarting(PLAN)
    evaluator = lone(host)
    sweep = SweepRequest(task=TASK, device="", source=source(PLAN))

    async def swept() -> list[EvaluationOutcome]:
        return [result.outcome async for result in evaluator.sweep(sweep)]

    with pytest.raises(ServiceUnavailableError):
        await swept()
    assert (await swept())[-1] is EvaluationOutcome.CRASHED
    assert (await evaluator.evaluate(asked(PLAN))).outcome is EvaluationOutcome.CRASHED
    assert host.judged == []


async def test_a_full_queue_is_tried_again() -> None:
    host = Host()
    answers = [DeviceBusyError("full"), DeviceBusyError("full")]
    judge = host.evaluate

    async def busy_at_first(asked_for: EvaluationRequest) -> Evaluation:
        if answers:
            raise answers.pop()
        return await judge(asked_for)

    host.evaluate = busy_at_first  # type: ignore[assignment, method-assign]
    assert (await lone(host).evaluate(asked())).passed
    assert answers == []

"""What every evaluator promises: the fake and the real one, each behind a UNIX socket too."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator

import pytest

from evaluator_svc.service import evaluator_service
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import BackendUnavailableError, TaskInvalidError
from kernel_foundry.ports import Evaluator
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.testing.evaluator import FakeEvaluator

LOG_LIMIT_CHARS = 64 * 1024


@pytest.fixture(params=["fake"])
async def evaluator(request: pytest.FixtureRequest, reach) -> AsyncIterator[Evaluator]:
    """Each implementation, reached each way."""
    async with reach(FakeEvaluator(), evaluator_service, RemoteEvaluator) as reached:
        yield reached


async def _device(evaluator: Evaluator) -> DeviceSpec:
    return (await evaluator.capabilities()).devices[0]


async def test_capabilities_name_devices_and_isolation(evaluator: Evaluator) -> None:
    """There is a device, its kind is available, and isolation is reported."""
    capabilities = await evaluator.capabilities()
    kinds = {device.id.partition(":")[0] for device in capabilities.devices}
    assert kinds == {a.kind for a in capabilities.availability if a.available}
    assert all(a.reason for a in capabilities.availability if not a.available)
    assert capabilities.isolation.mechanisms or capabilities.isolation.missing


async def test_admission_is_of_the_task_and_device(evaluator: Evaluator, task: Task) -> None:
    """The first device is the default; every workload is there."""
    device = await _device(evaluator)
    admission = await evaluator.admit(task)
    assert admission.admitted, admission.refusals
    assert (admission.task, admission.device.id) == (task.digest, device.id)
    assert [w.workload for w in admission.workloads] == [w.name for w in task.workloads]
    assert all(w.baselines for w in admission.workloads if not w.held_out)
    assert (await evaluator.admit(task, device.id)).workloads == admission.workloads


async def test_file_without_model_is_no_task(evaluator: Evaluator) -> None:
    """A task that is wrong is an error, not a verdict."""
    task = Task(name="empty", reference="x = 1\n", workloads=(Workload(name="default"),))
    with pytest.raises(TaskInvalidError, match="Model"):
        await evaluator.admit(task)
    with pytest.raises(TaskInvalidError, match="Model"):
        await evaluator.evaluate(EvaluationRequest(task=task, device="", text="any"))


async def test_unknown_device_is_unavailable(evaluator: Evaluator, task: Task) -> None:
    """The error names what was asked for."""
    with pytest.raises(BackendUnavailableError, match="nothing:7"):
        await evaluator.admit(task, "nothing:7")
    request = EvaluationRequest(task=task, device="nothing:7", text="any")
    with pytest.raises(BackendUnavailableError, match="nothing:7"):
        await evaluator.evaluate(request)


@pytest.mark.parametrize(
    "text", ["", "no blocks at all", "```python\npass\n```", "\x00ü😀\n" * 1000]
)
async def test_text_without_candidate_is_a_verdict(
    evaluator: Evaluator, task: Task, text: str
) -> None:
    """Whatever a model replies is data."""
    device = await _device(evaluator)
    evaluation = await evaluator.evaluate(EvaluationRequest(task=task, device="", text=text))
    assert evaluation.outcome is EvaluationOutcome.EXTRACTION_FAILED
    assert (evaluation.candidate, evaluation.task, evaluation.device) == (
        content_digest(text),
        task.digest,
        device.id,
    )
    assert evaluation.findings
    assert evaluation.fitness == 0


async def test_requests_are_judged_at_once(evaluator: Evaluator, task: Task) -> None:
    """Sixteen candidates at once get sixteen verdicts of their own."""
    await evaluator.admit(task)
    texts = [f"reply {number}" for number in range(16)]
    request = EvaluationRequest(task=task, device="", text="")
    verdicts = await asyncio.gather(
        *(evaluator.evaluate(dataclasses.replace(request, text=text)) for text in texts)
    )
    assert [v.candidate for v in verdicts] == [content_digest(text) for text in texts]


async def test_cancelled_evaluation_leaves_the_evaluator_usable(
    evaluator: Evaluator, task: Task
) -> None:
    """A caller that goes away takes nothing with it."""
    request = EvaluationRequest(task=task, device="", text="reply")
    call = asyncio.create_task(evaluator.evaluate(request))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await evaluator.evaluate(request)).outcome is EvaluationOutcome.EXTRACTION_FAILED

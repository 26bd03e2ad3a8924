"""What every evaluator promises: the fake, the real one, two as a fleet, one behind Ray Serve.

By a gateway, too, before the fake and before Ray Serve.

Those that are no client themselves behind a UNIX socket too.
"""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from evaluator_svc.service import evaluator_service
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import EvaluationOutcome, Setting
from kernel_foundry.domain.plain import to_json
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.sweep import Configuration, SweepRequest, Validity
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import BackendUnavailableError, TaskInvalidError
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.ports import Evaluator
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.sdk.fleet.fleet import Fleet
from kernel_foundry.sdk.fleet.membership import FixedSource
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.contract.conftest import SOCKET, each_way, reach
from tests.rpc.gateway import by_gateway, gateway_before
from tests.shared_evaluator import Shared

LOG_LIMIT_CHARS = 64 * 1024

# Fits `task`: out = 2 x + 1.
CANDIDATE = """\
```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void twice(const float* x, float* out, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = 2.0f * x[i] + 1.0f;
}
```
```python
def launch(x, out):
    twice[cdiv(x.numel(), 64), 64](x, out, x.numel())
```
"""

SOURCE = split(CANDIDATE)


def fleet_of_two(evaluator: Evaluator) -> Fleet:
    """A fleet whose members are one evaluator, twice."""
    return Fleet(FixedSource(("a:1", "b:1")), lambda _address: Shared(evaluator))


@pytest.fixture(
    params=[
        *each_way("fake", "null", "fleet"),
        *(pytest.param(name, marks=pytest.mark.sycl) for name in each_way("sycl")),
        "gateway",
        pytest.param("ray", marks=pytest.mark.ray),
        pytest.param("ray by gateway", marks=pytest.mark.ray),
    ]
)
async def evaluator(
    request: pytest.FixtureRequest, tmp_path: Path, local_evaluator: Callable[[str], Evaluator]
) -> AsyncIterator[Evaluator]:
    implementation: Evaluator = FakeEvaluator()
    kind = request.param.removesuffix(SOCKET)
    async with AsyncExitStack() as stack:
        if kind == "fleet":
            implementation = fleet_of_two(local_evaluator("null"))
        elif kind == "gateway":
            implementation = await stack.enter_async_context(
                by_gateway(implementation, evaluator_service, RemoteEvaluator)
            )
        elif kind.startswith("ray"):
            address = request.getfixturevalue("ray_address")
            if kind == "ray by gateway":
                address = await stack.enter_async_context(gateway_before(address))
            implementation = RemoteEvaluator(f"{address}/null")
        elif kind != "fake":
            implementation = Shared(local_evaluator(kind))
        yield await stack.enter_async_context(
            reach(request.param, tmp_path, implementation, evaluator_service, RemoteEvaluator)
        )


async def _device(evaluator: Evaluator) -> DeviceSpec:
    return (await evaluator.capabilities()).devices[0]


async def test_capabilities_name_devices_and_isolation(evaluator: Evaluator) -> None:
    capabilities = await evaluator.capabilities()
    kinds = {device.kind for device in capabilities.devices}
    assert kinds == {a.kind for a in capabilities.availability if a.available}
    assert all(a.reason for a in capabilities.availability if not a.available)
    assert capabilities.isolation.mechanisms or capabilities.isolation.missing


async def test_admission_is_of_the_task_and_device(evaluator: Evaluator, task: Task) -> None:
    """The first device is the default; every workload is there."""
    device = await _device(evaluator)
    admission = await evaluator.admit(task)
    assert admission.admitted, admission.refusals
    assert (admission.task, admission.device.id) == (task.digest, device.id)
    named = admission.without_generated.workloads
    assert [w.workload for w in named] == [w.name for w in task.workloads]
    assert all(w.baselines for w in admission.workloads if not w.held_out)
    assert (await evaluator.admit(task, device.id)).workloads == admission.workloads


async def test_file_without_model_is_no_task(evaluator: Evaluator) -> None:
    """A task that is wrong is an error, not a verdict."""
    task = Task(name="empty", reference="x = 1\n", workloads=(Workload(name="default"),))
    with pytest.raises(TaskInvalidError, match="Model"):
        await evaluator.admit(task)
    with pytest.raises(TaskInvalidError, match="Model"):
        await evaluator.evaluate(EvaluationRequest(task=task, device="", source=SOURCE))


async def test_unknown_device_is_unavailable(evaluator: Evaluator, task: Task) -> None:
    """The error names what was asked for."""
    with pytest.raises(BackendUnavailableError, match="nothing:7"):
        await evaluator.admit(task, "nothing:7")
    request = EvaluationRequest(task=task, device="nothing:7", source=SOURCE)
    with pytest.raises(BackendUnavailableError, match="nothing:7"):
        await evaluator.evaluate(request)


async def test_requests_are_judged_at_once(evaluator: Evaluator, task: Task) -> None:
    """Six candidates at once, more than are judged together, get six verdicts of their own."""
    await evaluator.admit(task)
    sources = [dataclasses.replace(SOURCE, plan=f"plan {number}") for number in range(6)]
    verdicts = await asyncio.gather(
        *(
            evaluator.evaluate(EvaluationRequest(task=task, device="", source=source))
            for source in sources
        )
    )
    assert [v.candidate for v in verdicts] == [source.digest for source in sources]


async def test_cancelled_evaluation_leaves_the_evaluator_usable(
    evaluator: Evaluator, task: Task
) -> None:
    """A caller that goes away takes nothing with it."""
    request = EvaluationRequest(task=task, device="", source=SOURCE)
    call = asyncio.create_task(evaluator.evaluate(request))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await evaluator.evaluate(request)).candidate == SOURCE.digest


async def test_a_cancelled_call_can_be_repeated(evaluator: Evaluator, task: Task) -> None:
    """Also one with an id, which an evaluator may still have when its repeat comes."""
    request = EvaluationRequest(task=task, device="", source=SOURCE, request_id="repeated")
    for _ in range(2):
        call = asyncio.create_task(evaluator.evaluate(request))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    first, second = await evaluator.evaluate(request), await evaluator.evaluate(request)
    assert first.candidate == SOURCE.digest
    assert to_json(first) == to_json(second)  # an error that is NaN equals itself as text


async def test_candidate_verdict_is_whole(evaluator: Evaluator, task: Task) -> None:
    """A verdict names what was judged and says how it went on every workload."""
    device = await _device(evaluator)
    request = EvaluationRequest(task=task, device="", source=SOURCE, request_id="whole")
    evaluation = await evaluator.evaluate(request)
    if device.id.startswith("null:"):  # kernels leave its buffers as they are
        assert evaluation.outcome is EvaluationOutcome.WRONG_RESULT
    else:
        assert evaluation.outcome is EvaluationOutcome.PASSED, evaluation.findings
        assert evaluation.speedup is not None
        assert evaluation.fitness > 0.2
    assert (evaluation.task, evaluation.device) == (task.digest, device.id)
    assert evaluation.compile is not None
    names = [w.workload for w in evaluation.workloads]
    assert names[: len(task.workloads)] == [w.name for w in task.workloads]
    # As text: an error that is NaN equals itself there.
    assert to_json(await evaluator.evaluate(request)) == to_json(evaluation)


TUNED = CANDIDATE.replace(
    "```python\n", '```python\nTUNE = {"WG": [64, 16, 32]}\nWHERE = ["WG != 16"]\n'
).replace("64), 64]", "WG), WG]")


async def test_sweep_streams_every_configuration_that_is_meant(
    evaluator: Evaluator, task: Task
) -> None:
    """One result for each, in whatever order; the same request id gives the same ones."""
    request = SweepRequest(task=task, device="", source=split(TUNED), request_id="sweep")
    results = [result async for result in evaluator.sweep(request)]
    assert {r.configuration for r in results} == {
        (Setting(name="WG", value=value),) for value in ("64", "32")
    }
    assert all(r.total == 2 for r in results)
    is_null = (await _device(evaluator)).id.startswith("null:")  # its kernels do nothing
    expected = Validity.CORRECTNESS if is_null else Validity.CORRECT
    assert {r.validity for r in results} == {expected}
    assert all(bool(r.timings) is not is_null for r in results)
    assert {r.configuration async for r in evaluator.sweep(request)} == {
        r.configuration for r in results
    }


async def test_sweep_is_cut_to_what_was_asked_first(evaluator: Evaluator, task: Task) -> None:
    """The default, then the order given."""
    wanted = Configuration(settings=(Setting(name="WG", value="32"),))
    text = TUNED.replace("[64, 16, 32]", "[64, 16, 8, 32]")
    request = SweepRequest(
        task=task, device="", source=split(text), order=(wanted,), max_configurations=2
    )
    results = [result async for result in evaluator.sweep(request)]
    assert {r.configuration[0].value for r in results} == {"64", "32"}


async def test_sweep_of_no_task_is_an_error(evaluator: Evaluator) -> None:
    """A stream fails with the same errors as a call."""
    task = Task(name="empty", reference="x = 1\n", workloads=(Workload(name="default"),))
    with pytest.raises(TaskInvalidError, match="Model"):
        _ = [r async for r in evaluator.sweep(SweepRequest(task=task, device="", source=SOURCE))]


@pytest.mark.sycl
async def test_compiler_log_is_bounded(
    tmp_path: Path, local_evaluator: Callable[[str], Evaluator], task: Task
) -> None:
    """A candidate that makes the compiler talk for ever costs 64 KiB of log."""
    noise = f'template <int N> void f() {{ static_assert(N < 0, "{"x" * 4000}"); }}\n'
    noise += "void g() {" + "".join(f"f<{number}>();" for number in range(19)) + "}"
    text = CANDIDATE.replace("```sycl\n", f"```sycl\n{noise}\n")
    shared = Shared(local_evaluator("sycl"))
    async with reach(SOCKET, tmp_path, shared, evaluator_service, RemoteEvaluator) as evaluator:
        evaluation = await evaluator.evaluate(
            EvaluationRequest(task=task, device="", source=split(text))
        )
    assert evaluation.compile is not None
    assert 0 < len(evaluation.compile.log) <= LOG_LIMIT_CHARS

"""A fleet: spread by load, kept to one class, repeated elsewhere when a host is lost."""

import asyncio
from collections.abc import Callable

import pytest

from kernel_foundry.domain.device_class import device_class
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.sweep import SweepRequest
from kernel_foundry.errors import (
    BackendUnavailableError,
    DeviceBusyError,
    DeviceMemoryError,
    ProcessLostError,
    ServiceUnavailableError,
    ShuttingDownError,
)
from kernel_foundry.sdk.fleet import member
from kernel_foundry.sdk.fleet.change import FleetChange
from tests.sdk.fleet.hosts import HURRIED, TASK, Host, device, fleet_of, request, source

FAST, SLOW = device("fast"), device("slow")


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(280):
        while not condition():  # noqa: ASYNC110  of a host, which has no events for it
            await asyncio.sleep(0.005)


async def test_calls_are_spread_by_load() -> None:
    """Six candidates at once on three hosts are two on each."""
    hosts = {f"{name}:1": Host() for name in "abc"}
    fleet = fleet_of(hosts)
    for host in hosts.values():
        host.opened.clear()
    calls = [asyncio.create_task(fleet.evaluate(request(f"plan {n}"))) for n in range(6)]
    await _until(lambda: sum(len(h.judged) for h in hosts.values()) == 6)
    assert [len(h.judged) for h in hosts.values()] == [2, 2, 2]
    loads = {load.device: load.pending for load in (await fleet.capabilities()).loads}
    assert loads == {"null:0@a:1": 2, "null:0@b:1": 2, "null:0@c:1": 2}
    for host in hosts.values():
        host.opened.set()
    verdicts = await asyncio.gather(*calls)
    assert {v.device for v in verdicts} == set(loads)
    await fleet.close()
    assert all(h.is_closed for h in hosts.values())


async def test_a_task_stays_on_its_class() -> None:
    """Of two classes one is taken, and waited for when its hosts are away."""
    hosts = {"a:1": Host(SLOW), "b:1": Host(FAST), "c:1": Host(FAST)}
    fleet = fleet_of(hosts, HURRIED)
    admission = await fleet.admit(TASK, "null")
    assert device_class(admission.device) == device_class(FAST)
    hosts["b:1"].lose()
    hosts["c:1"].lose()
    with pytest.raises(ServiceUnavailableError, match=device_class(FAST)):
        await fleet.evaluate(request())
    assert hosts["a:1"].judged == []
    other = await fleet.evaluate(request("asked for", device=device_class(SLOW)))
    assert other.device == "null:0@a:1"
    hosts["c:1"].come_back()
    assert (await fleet.evaluate(request("later"))).device == "null:0@c:1"
    await fleet.close()


async def test_a_call_of_a_lost_host_is_repeated_elsewhere_with_its_id() -> None:
    hosts = {"a:1": Host(), "b:1": Host()}
    fleet = fleet_of(hosts)
    hosts["a:1"].opened.clear()
    call = asyncio.create_task(fleet.evaluate(request("hard", request_id="one")))
    await _until(lambda: hosts["a:1"].plans == ["hard"])
    hosts["a:1"].lose()
    assert (await call).device == "null:0@b:1"
    assert [r.request_id for r in hosts["b:1"].judged] == ["one"]
    hosts["a:1"].come_back()
    await fleet.evaluate(request("hard", request_id="one"))
    assert hosts["b:1"].plans == ["hard", "hard"], "whoever gave the verdict knows it"
    await fleet.close()


async def test_a_candidate_that_takes_two_hosts_down_is_quarantined() -> None:
    """It is an outcome; others are judged, and it is never sent again."""
    hosts = {f"{name}:1": Host() for name in "abc"}
    for host in hosts.values():
        host.deadly.add("deadly")
    fleet = fleet_of(hosts)
    evaluation = await fleet.evaluate(request("deadly"))
    assert evaluation.outcome is EvaluationOutcome.CRASHED
    assert [f.kind for f in evaluation.findings] == [FindingKind.HOST_LOST]
    assert "a:1, b:1" in evaluation.findings[0].message
    assert (await fleet.evaluate(request("harmless"))).passed
    again = await fleet.evaluate(request("deadly", request_id="another"))
    assert again.outcome is EvaluationOutcome.CRASHED
    assert hosts["c:1"].plans == ["harmless"]
    await fleet.close()


async def test_a_host_found_away_says_nothing_about_a_candidate() -> None:
    """Only a candidate that was there when the host was lost is blamed."""
    hosts = {f"{name}:1": Host() for name in "abc"}
    fleet = fleet_of(hosts)
    await fleet.capabilities()
    hosts["a:1"].lose()
    hosts["b:1"].lose()
    evaluation = await fleet.evaluate(request())
    assert (evaluation.outcome, evaluation.device) == (EvaluationOutcome.PASSED, "null:0@c:1")
    await fleet.close()


@pytest.mark.parametrize(
    "failure",
    [
        DeviceBusyError("full"),
        ProcessLostError("a judge died"),
        ShuttingDownError("draining"),
        BackendUnavailableError("set aside"),
    ],
)
async def test_what_one_host_cannot_do_now_another_does(failure: Exception) -> None:
    """A full queue, a lost process and a host that stops are no verdicts."""
    hosts = {"a:1": Host(), "b:1": Host()}

    async def fails(_request: object) -> None:
        raise failure

    hosts["a:1"].evaluate = fails  # type: ignore[assignment, method-assign]
    fleet = fleet_of(hosts)
    evaluation = await fleet.evaluate(request())
    assert (evaluation.outcome, evaluation.device) == (EvaluationOutcome.PASSED, "null:0@b:1")
    await fleet.close()


async def test_what_fails_everywhere_is_raised_as_it_is() -> None:
    """An error that no other host of the class would spare comes from the first."""
    hosts = {"a:1": Host(), "b:1": Host()}
    tried = []

    def fails(address: str, error: Exception) -> None:
        async def evaluate(_request: object) -> None:
            tried.append(address)
            raise error

        hosts[address].evaluate = evaluate  # type: ignore[assignment, method-assign]

    for address in hosts:
        fails(address, DeviceMemoryError("too little"))
    fleet = fleet_of(hosts)
    with pytest.raises(DeviceMemoryError, match="too little"):
        await fleet.evaluate(request())
    assert tried == ["a:1"]
    for address in hosts:
        fails(address, ProcessLostError("gone"))
    with pytest.raises(ProcessLostError, match="gone"):
        await fleet.evaluate(request())
    assert tried == ["a:1", "a:1", "b:1"]
    await fleet.close()


async def test_a_host_that_stops_answering_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that it has are repeated elsewhere, though no connection was lost."""
    monkeypatch.setattr(member, "_ANSWER_S", 0.02)
    hosts = {"a:1": Host(), "b:1": Host()}
    fleet = fleet_of(hosts)
    hosts["a:1"].opened.clear()
    call = asyncio.create_task(fleet.evaluate(request()))
    await _until(lambda: len(hosts["a:1"].judged) == 1)

    async def never() -> None:
        await asyncio.Event().wait()

    hosts["a:1"].capabilities = never  # type: ignore[assignment, method-assign]
    assert (await call).device == "null:0@b:1"
    await fleet.close()


TUNED = 'TUNE = {"WG": [64, 16, 32]}\n\n\ndef launch(x, out):\n    k[1, WG](x, out)'


async def test_a_sweep_goes_on_elsewhere_and_tells_each_result_once() -> None:
    """A host that is lost in the middle of a stream costs no result."""
    hosts = {"a:1": Host(), "b:1": Host()}
    hosts["a:1"].deadly.add(TUNED)
    fleet = fleet_of(hosts)
    asked = SweepRequest(task=TASK, device="null", source=source(TUNED), request_id="sweep")
    results = [result async for result in fleet.sweep(asked)]
    assert sorted(r.configuration[0].value for r in results) == ["16", "32", "64"]
    hosts["a:1"].come_back()
    hosts["b:1"].deadly.add(TUNED)
    results = [result async for result in fleet.sweep(asked)]
    assert results[-1].findings[0].kind is FindingKind.HOST_LOST
    await fleet.close()


async def test_a_fleet_without_any_host_says_why() -> None:
    """Neither devices nor a call that hangs; each host is named with its reason."""
    hosts = {"a:1": Host(), "b:1": Host()}
    for host in hosts.values():
        host.lose()
    fleet = fleet_of(hosts, HURRIED)
    capabilities = await fleet.capabilities()
    assert capabilities.devices == ()
    assert {a.kind: a.available for a in capabilities.availability} == {"a:1": False, "b:1": False}
    with pytest.raises(ServiceUnavailableError, match=r"a:1 is away \(connection refused\)"):
        await fleet.evaluate(request())
    await fleet.close()


async def test_a_device_that_nobody_has_is_refused_at_once() -> None:
    """No host may come with it: all were heard from."""
    fleet = fleet_of({"a:1": Host(), "b:1": Host()})
    with pytest.raises(BackendUnavailableError, match="null:0@a:1, null:0@b:1"):
        await fleet.admit(TASK, "cuda")
    await fleet.close()


async def test_who_goes_away_and_comes_back_is_told() -> None:
    """With how many are left, to whoever listens at the time."""
    hosts = {"a:1": Host(), "b:1": Host()}
    fleet = fleet_of(hosts)
    told: list[FleetChange] = []
    with fleet.telling(told.append):
        await fleet.capabilities()
        assert told == []
        hosts["a:1"].lose()
        await _until(lambda: len(told) == 1)
        hosts["a:1"].come_back()
        await _until(lambda: len(told) == 2)
    away = FleetChange(evaluator="a:1", is_away=True, reason="connection refused", there=1, total=2)
    back = FleetChange(evaluator="a:1", is_away=False, reason="", there=2, total=2)
    assert told == [away, back]
    hosts["a:1"].lose()
    while len((await fleet.capabilities()).devices) == 2:  # noqa: ASYNC110  it has no event for it
        await asyncio.sleep(0.005)
    assert told == [away, back]
    with fleet.telling(told.append):  # of who is away already, too
        assert told == [away, back, away]
    await fleet.close()

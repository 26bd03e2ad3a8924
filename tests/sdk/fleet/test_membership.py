"""Who is in a fleet: named one by one, or by a file that may change while runs go on."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kernel_foundry.domain.device import Capabilities
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.fleet.fleet import Fleet
from kernel_foundry.sdk.fleet.membership import FileSource, FixedSource, fleet_source
from tests.sdk.fleet.hosts import Host, device, fleet_of, request

GIB = 1 << 30


def _file(folder: Path, text: str) -> FileSource:
    path = folder / "fleet.yaml"
    path.write_text(text)
    return FileSource(path)


async def _until(fleet: Fleet, condition: Callable[[Capabilities], bool]) -> Capabilities:
    async with asyncio.timeout(280):
        while not condition(found := await fleet.capabilities()):  # noqa: ASYNC110  as below
            await asyncio.sleep(0.005)
    return found


def _ids(capabilities: Capabilities) -> list[str]:
    return [device.id for device in capabilities.devices]


async def test_hosts_are_added_drained_and_removed_while_calls_go_on(tmp_path: Path) -> None:
    """A file that is written anew is followed; a call in flight is answered all the same."""
    source = _file(tmp_path, "evaluators: [{address: 'a:1', name: a}, {address: 'b:1', name: b}]")
    hosts = {f"{name}:1": Host() for name in "abc"}
    fleet = fleet_of(hosts, source=source)
    assert _ids(await fleet.capabilities()) == ["null:0@a", "null:0@b"]
    hosts["a:1"].opened.clear()
    call = asyncio.create_task(fleet.evaluate(request("held", device="null:0@a")))
    _file(tmp_path, "evaluators: ['c:1', {address: 'a:1', name: a, drain: true}]")
    capabilities = await _until(fleet, lambda found: _ids(found) == ["null:0@c:1"])
    assert [a.reason for a in capabilities.availability if not a.available] == [
        "draining, 1 calls left"
    ]
    assert hosts["b:1"].is_closed
    _file(tmp_path, "evaluators: ['c:1']")
    await _until(fleet, lambda found: [a.kind for a in found.availability] == ["null"])
    assert not hosts["a:1"].is_closed
    hosts["a:1"].opened.set()
    assert (await call).device == "null:0@a"
    await _settled(lambda: hosts["a:1"].is_closed)
    await fleet.close()


async def _settled(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(280):
        while not condition():  # noqa: ASYNC110  of a host, which has no events for it
            await asyncio.sleep(0.005)


async def test_a_file_that_becomes_unreadable_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The fleet stays as it was, and the reason is logged."""
    fleet = fleet_of({"a:1": Host()}, source=_file(tmp_path, "evaluators: ['a:1']"))
    await fleet.capabilities()
    _file(tmp_path, "evaluators: [")
    await _settled(lambda: "the fleet stays as it was" in caplog.text)
    assert _ids(await fleet.capabilities()) == ["null:0@a:1"]
    await fleet.close()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "expected keys"),
        ("evaluators: []", "0 evaluators, expected 1 to 4096"),
        ("evaluators: 7", "expected a list"),
        ("evaluators: ['a:1', 'a:1']", "'a:1' comes twice"),
        ("evaluators: [nowhere]", r"evaluators\[0\]: address 'nowhere': expected HOST:PORT"),
        ("evaluators: [{address: 'a:1', nick: x}]", "unknown key 'nick'"),
        ("evaluators: [{address: 'a:1', name: x@y}]", "expected one without '@'"),
        ("evaluators: [{address: 'a:1', drain: maybe}]", "expected true or false"),
        ("evaluators: ['a:1']\nwhere: {driver: 550.10}", "with quotes"),
        ("evaluators: ['a:1']\nwhere: {memory_gib: much}", "expected a number of GiB"),
        ("evaluators: [&a 'a:1', *a]", "an alias"),
        ("evaluators: ['" + "x" * 120 + ":1']", "`name` gives it another"),
    ],
)
def test_a_file_that_is_none_says_where(tmp_path: Path, text: str, fault: str) -> None:
    """The message has the place and what was expected."""
    with pytest.raises(InvalidArgumentError, match=fault):
        _file(tmp_path, text).read()


def test_a_target_is_one_evaluator_or_a_fleet() -> None:
    assert fleet_source("gpuhost:50051") is None
    assert fleet_source("local") is None
    assert isinstance(fleet_source("fleet.yaml"), FileSource)
    named = fleet_source("a:1, unix:/tmp/b,")
    assert isinstance(named, FixedSource)
    assert [e.address for e in named.read().entries] == ["a:1", "unix:/tmp/b"]
    with pytest.raises(InvalidArgumentError, match="'spawn'"):
        fleet_source("spawn,a:1")


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("{}", "abc"),
        ("{architecture: sm_90}", "bc"),
        ("{architecture: sm_90, memory_gib: 40}", "c"),
        ('{driver: "550."}', "ac"),
        ("{labels: [near]}", "ab"),
        ("{kind: 'null', labels: [near, tall]}", "b"),
        ("{kind: cuda}", ""),
    ],
)
async def test_devices_are_filtered_by_what_they_have(
    tmp_path: Path, where: str, names: str
) -> None:
    """Kind, architecture, driver, memory and labels, all of those that are given."""
    hosts = {
        "a:1": Host(device("m1", driver_version="550.10")),
        "b:1": Host(device("m2", architecture="sm_90", memory_bytes=8 * GIB)),
        "c:1": Host(device("m3", architecture="sm_90", driver_version="550.54")),
    }
    hosts["c:1"].spec = device(
        "m3", architecture="sm_90", driver_version="550.54", memory_bytes=80 * GIB
    )
    listed = (
        "{address: 'a:1', name: a, labels: [near]}, "
        "{address: 'b:1', name: b, labels: [near, tall]}, {address: 'c:1', name: c}"
    )
    source = _file(tmp_path, f"evaluators: [{listed}]\nwhere: {where}")
    fleet = fleet_of(hosts, source=source)
    capabilities = await fleet.capabilities()
    found = {id_.partition("@")[2] for id_ in _ids(capabilities)}
    assert found == set(names)
    left_out = {a.kind: a.reason for a in capabilities.availability if a.kind in {*"abc"}}
    assert left_out.keys() == {*"abc"} - found
    for name, reason in left_out.items():
        assert reason.startswith("`where` fits none of its devices: "), name
    if where == "{kind: cuda}":
        assert left_out["a"].endswith("kind: cuda, and it is null")
    await fleet.close()


async def test_a_clock_policy_makes_a_class_of_its_own(tmp_path: Path) -> None:
    """Devices that are alike but for their clocks are not compared."""
    hosts = {f"{name}:1": Host() for name in "abc"}
    source = _file(tmp_path, "evaluators: ['a:1', {address: 'b:1', clock_policy: locked}, 'c:1']")
    fleet = fleet_of(hosts, source=source)
    judge: Callable[[int], Awaitable[object]] = lambda n: fleet.evaluate(request(f"plan {n}"))  # noqa: E731
    await asyncio.gather(*map(judge, range(6)))
    assert [len(h.judged) for h in hosts.values()] == [3, 0, 3]
    await fleet.close()

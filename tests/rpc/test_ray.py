"""`kfoundry fleet`: a cluster of Ray on this machine, and what is refused before there is one.

What its evaluators promise is in tests/contract.
"""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace as Namespace

import pytest
from click.testing import CliRunner, Result

from kernel_foundry.cli import fleet as fleet_command
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import (
    InvalidArgumentError,
    PackageMissingError,
    ServiceUnavailableError,
)
from kernel_foundry.paths import ray_token_path
from kernel_foundry.rpc.applications import applications
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.sdk.ray_fleet import RayFleet, read_applications
from kernel_foundry.sdk.services import Directory, Targets
from tests.rpc.gateway import gateway_before

TASK = Task(
    name="three",
    reference=(
        "import torch\nimport torch.nn as nn\n\n\n"
        "class Model(nn.Module):\n    def forward(self, x):\n        return x * 3.0 + 1.0\n\n\n"
        "def get_inputs():\n    return [torch.rand(4, 64)]\n\n\n"
        "def get_init_inputs():\n    return []\n"
    ),
    workloads=(Workload(name="default"),),
)
ONCE = CallOptions(retry=RetryPolicy(attempts=1))


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(fleet_command.command, arguments)


@pytest.mark.ray
def test_status_shows_a_fleet_to_its_user(ray_address: str) -> None:
    """Who has the cluster's token, in a file of the user's own."""
    assert ray_address
    assert ray_token_path().stat().st_mode & 0o777 == 0o600
    command = [sys.executable, "-m", "kernel_foundry.cli", "fleet", "status", "--json"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    (application,) = json.loads(told.stdout)["applications"]
    assert (application["application"], application["state"]) == ("null", "RUNNING")
    assert application["replicas"] == {"RUNNING": 1}


def _fleet(*arguments: str, stdout: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "kernel_foundry.cli", "fleet", *arguments, "--ray", "auto"]
    return subprocess.Popen(words, stdout=stdout)


@pytest.mark.ray
async def test_an_application_that_goes_down_finishes_its_calls(
    ray_address: str, tmp_path: Path
) -> None:
    """And is away afterwards; another one goes on."""
    file = tmp_path / "more.yaml"
    file.write_text("applications: {more: {device: 'null', cpus: 0.5, unsafe_no_sandbox: true}}")
    more = RemoteEvaluator(f"{ray_address}/more", ONCE)
    other = RemoteEvaluator(f"{ray_address}/null", ONCE)
    up = _fleet("up", "--file", str(file))
    assert await asyncio.to_thread(up.wait) == 0
    judge_starts = asyncio.create_task(more.admit(TASK))  # takes seconds
    await asyncio.sleep(0.1)
    down = _fleet("down", "more")
    assert (await judge_starts).admitted
    assert await asyncio.to_thread(down.wait) == 0
    with pytest.raises(ServiceUnavailableError, match="more"):
        await more.capabilities()
    assert (await other.capabilities()).devices
    for evaluator in (more, other):
        await evaluator.close()


@pytest.mark.ray
async def test_ctrl_c_ends_the_applications_of_its_own_command(
    ray_address: str, tmp_path: Path
) -> None:
    """Those that others have on the cluster go on."""
    file = tmp_path / "mine.yaml"
    file.write_text("applications: {mine: {device: 'null', cpus: 0.5, unsafe_no_sandbox: true}}")
    mine = RemoteEvaluator(f"{ray_address}/mine", ONCE)
    other = RemoteEvaluator(f"{ray_address}/null", ONCE)
    up = _fleet("up", "--file", str(file), "--port", "1", "--wait", stdout=subprocess.PIPE)
    assert up.stdout is not None
    printed = await asyncio.to_thread(up.stdout.readline)  # once all are up
    assert printed.decode() == f"{ray_address}/mine\n"  # the port that the cluster has
    await mine.capabilities()
    up.send_signal(signal.SIGINT)
    await asyncio.to_thread(up.communicate)
    assert up.returncode == 0
    with pytest.raises(ServiceUnavailableError, match="mine"):
        await mine.capabilities()
    assert (await other.capabilities()).devices
    for evaluator in (mine, other):
        await evaluator.close()


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fleet_that_another_one_shut_down_has_no_applications(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The controller that it knows is dead. One that does not answer for a moment is not."""
    import ray
    from ray import serve

    def status() -> None:
        raise error

    monkeypatch.setattr(ray, "init", lambda **_: None)
    monkeypatch.setattr(serve, "status", status)
    error: Exception = ray.exceptions.ActorDiedError()
    fleet = RayFleet("localhost:6379")
    assert fleet.status() == ()
    fleet.wait(("null",))
    error = ray.exceptions.ActorUnavailableError("busy", None)
    with pytest.raises(ray.exceptions.ActorUnavailableError):
        fleet.status()


@pytest.mark.ray
def test_a_replica_loads_no_driver_and_no_torch(ray_address: str) -> None:
    """It is a supervisor: those are in processes below it."""
    assert ray_address
    replicas = [
        folder
        for folder in Path("/proc").glob("[0-9]*")
        if _text(folder / "cmdline").startswith("ray::ServeReplica:null")
    ]
    assert replicas
    for folder in replicas:
        loaded = _text(folder / "maps")
        assert loaded
        for library in ("libcuda", "libOpenCL", "libsycl", "libtorch"):
            assert library not in loaded, library


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:  # of a process that has ended, or of another user
        return ""


@pytest.mark.ray
def test_the_ingress_listens_for_its_host_alone(ray_address: str) -> None:
    """Other machines come by a gateway: Ray's ingress has no TLS."""
    port = int(ray_address.rpartition(":")[2])
    # The second is this host, too, and stands for all that are not asked for.
    for host, is_reached in (("127.0.0.1", True), ("127.0.0.2", False)):
        with socket.socket() as client:
            assert (client.connect_ex((host, port)) == 0) is is_reached


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_ingress_that_another_command_has_opened_has_to_be_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A cluster keeps the ingress that it has, and its port, whichever is asked for."""
    import ray
    from ray import serve

    deployed: list[object] = []
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(name, "")  # set by the command, and to be as before
    monkeypatch.setenv("RAY_SERVE_GRPC_MAX_MESSAGE_SIZE", "1")
    monkeypatch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(ray, "init", lambda **_: None)
    monkeypatch.setattr(ray, "get", lambda answer, **_: answer)
    monkeypatch.setattr(serve, "start", lambda **_: None)
    monkeypatch.setattr(serve, "run", lambda application, **_: deployed.append(application))
    with socket.socket() as ingress:
        ingress.bind(("0.0.0.0", 0))
        ingress.listen()
        port = ingress.getsockname()[1]
        answer = Namespace(remote=lambda: Namespace(port=port))
        client = Namespace(_controller=Namespace(get_grpc_config=answer))
        monkeypatch.setattr(serve.context, "_get_global_client", lambda **_: client)
        with pytest.raises(InvalidArgumentError, match=f"port {port}.*--insecure"):
            RayFleet().up({"null": {"device": "null"}}, 1)
        assert not deployed
        assert RayFleet(is_open=True).up({"null": {"device": "null"}}, 1) == port
    assert len(deployed) == 1


@pytest.mark.ray
async def test_a_gateway_tells_the_applications_behind_it(ray_address: str) -> None:
    """So that one address is enough."""
    async with gateway_before(ray_address) as address:
        assert await applications(address) == ("null",)
        directory = Directory(Targets.at(address))
        assert (await (await directory.evaluator()).capabilities()).devices
        await directory.close()


@pytest.mark.parametrize(
    "arguments",
    [(), ("null", "--file", "x.yaml"), ("null", "--replicas", "many"), ("tpu",)],
    ids=["nothing", "both", "replicas", "kind"],
)
def test_what_is_no_fleet_is_refused(arguments: tuple[str, ...]) -> None:
    assert _run("up", *arguments).exit_code == 2


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(tmp_path))
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(name, "")  # set by the command, and to be as before
    with pytest.raises(PackageMissingError, match=r"kernel-foundry\[ray\]"):
        CliRunner().invoke(fleet_command.command, ["up", "null"], catch_exceptions=False)


@pytest.mark.parametrize(
    "text",
    ["", "applications: []", "applications: {a: 1}", "x: 1", "{", "applications: {'a,b': {}}"],
)
def test_a_file_without_applications_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(text)
    with pytest.raises(InvalidArgumentError, match=r"f\.yaml"):
        read_applications(file)

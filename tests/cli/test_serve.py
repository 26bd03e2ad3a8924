"""Services started with `kfoundry serve` judge as the one in this process does."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from kernel_foundry.cli import serve
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.rpc.readiness import wait_until_serving
from tests.cli.conftest import environment_of, run_kfoundry, serving_evaluator
from tests.free_port import free_port


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("localhost", port)) == 0


@pytest.mark.slow
def test_served_evaluator_gives_the_verdict_of_a_local_one(folder: Path) -> None:
    """Over TCP; all other tests of commands ask one on a UNIX socket."""
    arguments = ("evaluate", "relu.py", "relu.md", "--json")
    local = json.loads(run_kfoundry(folder, *arguments, "--device", "null:0").stdout)
    with serving_evaluator(f"localhost:{free_port()}", folder) as target:
        served = json.loads(run_kfoundry(folder, *arguments, "--evaluator", target).stdout)
        with grpc.insecure_channel(target) as channel:
            services = ProtoReflectionDescriptorDatabase(channel).get_services()
    for field in ("outcome", "candidate", "language", "device", "configuration", "measures"):
        assert local[field] == served[field]
    assert [w["correctness"] for w in local["workloads"]] == [
        w["correctness"] for w in served["workloads"]
    ]
    assert "kernel_foundry.evaluator.v1.EvaluatorService" in services
    assert "grpc.health.v1.Health" in services


@pytest.mark.slow
def test_all_three_are_served_from_one_port_on(folder: Path) -> None:
    """However the command ends, they end with it."""
    port = free_port(3)
    command = ("serve", "all", "--listen", f"localhost:{port}")
    with subprocess.Popen(
        [sys.executable, "-m", "kernel_foundry.cli", *command],
        cwd=folder,
        env=environment_of(folder),
        stderr=subprocess.DEVNULL,
    ) as process:
        for number in range(3):
            asyncio.run(wait_until_serving(f"localhost:{port + number}", timeout_s=280))
        process.kill()
    for number in range(3):
        while _is_listening(port + number):
            time.sleep(0.1)


@pytest.mark.parametrize(
    "address", ["localhost", "localhost:0", "localhost:65534", "sockets", ":x"]
)
def test_address_that_serves_no_three_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """It says what to give, and makes no folder of that name."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(serve.command, ["all", "--listen", address])
    assert isinstance(result.exception, InvalidArgumentError)
    assert "HOST:PORT" in result.exception.message
    assert "unix:/PATH" in result.exception.message
    assert list(tmp_path.iterdir()) == []


def test_help_of_a_service_has_its_own_options(folder: Path) -> None:
    """Under the name by which it was asked for; without a service it is the command's."""
    shown = run_kfoundry(folder, "serve", "archive", "--help").stdout
    assert shown.startswith("Usage: kfoundry serve archive ")
    assert "--store" in shown
    assert "--audit-log" in shown
    assert "{evaluator|archive|" in CliRunner().invoke(serve.command, ["--help"]).output

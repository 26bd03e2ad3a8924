"""Figures for Prometheus, spans of calls, and logs for machines."""

import asyncio
import json
import logging
import re
import socket
import ssl
import sys
import urllib.request
from pathlib import Path
from typing import Any

import prometheus_client
import pytest

from evaluator_svc.service import evaluator_service
from generator_svc.service import generator_service
from kernel_foundry.domain.candidate import KernelSource, Operator
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest, Proposal, ProposalRequest, TokenUsage
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import InvalidArgumentError, UnauthenticatedError
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.log_lines import log_formatter
from kernel_foundry.rpc.metrics import Metrics, serve_metrics
from kernel_foundry.rpc.readiness import wait_until_serving
from kernel_foundry.rpc.security import ServerSecurity
from kernel_foundry.rpc.server import running
from kernel_foundry.rpc.tokens import Role, TokenFile
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator
from tests.free_port import free_port
from tests.rpc.authority import Authority

BOARD = Path(__file__).parents[2] / "deploy" / "grafana" / "kernel-foundry.json"
ONCE = CallOptions(retry=RetryPolicy(attempts=1))
SOURCE = KernelSource(language=Language.SYCL, device_code="", plan="def launch(out):\n    pass")
TASK = Task(name="t", reference="class Model: ...", workloads=(Workload(name="default"),))
REQUEST = EvaluationRequest(task=TASK, device="", source=SOURCE)


class Figures:
    """A registry, and what it says."""

    def __init__(self) -> None:
        self.registry: Any = prometheus_client.CollectorRegistry()
        self.metrics = Metrics(self.registry)

    def of(self, name: str, **labels: str) -> float | None:
        found: float | None = self.registry.get_sample_value(f"kfoundry_{name}", labels)
        return found


async def test_verdicts_refusals_and_loads_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused call is a failure by its code; none is left in flight."""
    figures = Figures()
    tokens = TokenFile(tmp_path / "tokens.json")
    security = ServerSecurity(tokens=tmp_path / "tokens.json")
    async with running(
        [evaluator_service(FakeEvaluator())],
        "127.0.0.1:0",
        security=security,
        metrics=figures.metrics,
    ) as target:
        monkeypatch.delenv("KERNEL_FOUNDRY_TOKEN", raising=False)
        stranger = RemoteEvaluator(target, ONCE)
        with pytest.raises(UnauthenticatedError):
            await stranger.evaluate(REQUEST)
        monkeypatch.setenv("KERNEL_FOUNDRY_TOKEN", tokens.create("ada", Role.RUN, 1))
        friend = RemoteEvaluator(target, ONCE)
        for _ in range(2):
            await friend.evaluate(REQUEST)
        await friend.capabilities()
        await stranger.close()
        await friend.close()
    assert figures.of("verdicts_total", device="fake:0", outcome="PASSED") == 2
    assert figures.of("call_seconds_count", method="EvaluateKernel", code="OK") == 2
    assert figures.of("call_seconds_count", method="EvaluateKernel", code="UNAUTHENTICATED") == 1
    assert figures.of("calls_in_flight", method="EvaluateKernel") == 0
    assert "ada" not in prometheus_client.generate_latest(figures.registry).decode()


def _evaluated(device: str, **stages: float) -> Any:
    from kernel_foundry.evaluator.v1 import evaluator_service_pb2 as pb2

    answer = pb2.EvaluateKernelResponse()
    answer.evaluation.device = device
    answer.evaluation.outcome = 1
    for stage, wall_ms in stages.items():
        answer.evaluation.stages.add(stage=stage, wall_ms=wall_ms)
    return answer


def test_stages_and_loads_are_read_from_answers_and_names_are_bounded() -> None:
    """Callers cannot fill the memory with names."""
    from kernel_foundry.evaluator.v1 import evaluator_service_pb2 as pb2

    figures = Figures()
    answered = figures.metrics.answered
    answered("EvaluateKernel", _evaluated("cuda:0", build=1500.0, timing=250.0))
    assert figures.of("stage_seconds_sum", device="cuda:0", stage="build") == 1.5
    assert figures.of("stage_seconds_sum", device="cuda:0", stage="timing") == 0.25
    loads = pb2.GetCapabilitiesResponse()
    loads.capabilities.loads.add(device="cuda:0", pending=3)
    answered("GetCapabilities", loads)
    assert figures.of("device_pending", device="cuda:0") == 3
    for number in range(100):
        answered("EvaluateKernel", _evaluated(f"cuda:{number}"))
    assert figures.of("verdicts_total", device="other", outcome="PASSED") == 36
    assert figures.of("verdicts_total", device="cuda:0", outcome="PASSED") == 2


async def test_what_models_cost_is_counted(tmp_path: Path) -> None:
    """By model, in USD and tokens."""

    class Costly(FakeGenerator):
        async def propose(self, request: ProposalRequest) -> Proposal:
            usage = TokenUsage(
                model="m", input_tokens=10, output_tokens=5, cost_usd=0.25, latency_ms=1.0
            )
            return Proposal(candidate=None, usage=(usage, usage), failure="no block")

    from kernel_foundry.domain.archive import Selection
    from kernel_foundry.domain.request import BudgetCaps
    from kernel_foundry.rpc.generator import RemoteGenerator

    figures = Figures()
    admission = await FakeEvaluator().admit(TASK)
    request = ProposalRequest(
        run="r",
        task=TASK,
        admission=admission,
        selection=Selection(operator=Operator.SEED),
        models=("m",),
        seed=0,
        caps=BudgetCaps(),
    )
    async with running(
        [generator_service(Costly())], f"unix:{tmp_path}/g.sock", metrics=figures.metrics
    ) as target:
        generator = RemoteGenerator(target, ONCE)
        await generator.propose(request)
        await generator.close()
    assert figures.of("model_usd_total", model="m") == 0.5
    assert figures.of("model_tokens_total", model="m", direction="in") == 20
    assert figures.of("model_tokens_total", model="m", direction="out") == 10


async def test_a_service_answers_prometheus_where_it_is_asked_to(tmp_path: Path) -> None:
    """With --metrics; the figures are of its own calls. A client that says nothing stops nobody."""
    certificate, key = Authority.make(tmp_path / "own").issue("service")
    address = f"127.0.0.1:{free_port()}"
    target = f"unix:{tmp_path}/archive.sock"
    arguments = ("--listen", target, "--store", f"sqlite:///{tmp_path}/runs.db")
    command = (sys.executable, "-m", "archive_svc", *arguments, "--metrics", address)
    tls = ("--tls-cert", str(certificate), "--tls-key", str(key))
    service = await asyncio.create_subprocess_exec(*command, *tls)
    try:
        await wait_until_serving(target, timeout_s=280)
        archive = RemoteArchive(target)
        await archive.list_runs()
        await archive.close()
        host, _, port = address.partition(":")
        with socket.create_connection((host, int(port))):
            authority = tmp_path / "own" / "ca.pem"
            text = await asyncio.to_thread(_fetched, f"https://{address}/metrics", authority)
    finally:
        service.terminate()
        await service.wait()
    assert 'kfoundry_call_seconds_count{code="OK",method="ListRuns"} 1.0' in text


def _fetched(url: str, authority: Path) -> str:
    trusted = ssl.create_default_context(cafile=str(authority))
    with urllib.request.urlopen(url, timeout=30, context=trusted) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("address", ["0.0.0.0:9100", "gpuhost:9100", "9100", "localhost:x"])
def test_figures_are_not_given_to_other_machines_unless_that_is_said(address: str) -> None:
    """A certificate or --insecure is needed there, and an address is one."""
    with pytest.raises(InvalidArgumentError, match="--metrics") as refused:
        serve_metrics(address, ServerSecurity())
    assert "unix" not in refused.value.message


def test_the_board_asks_for_figures_that_there_are() -> None:
    """Each panel names metrics and labels that a service has."""
    figures = Figures()
    known = {
        f"{sample.name}{suffix}"
        for sample in figures.registry.collect()
        for suffix in ("", "_total", "_sum", "_count", "_bucket")
    }
    asked = set(re.findall(r"kfoundry_\w+", BOARD.read_text()))
    assert asked <= known
    families = {re.sub(r"_(total|sum|count|bucket)$", "", name) for name in asked}
    assert families == {sample.name for sample in figures.registry.collect()}


def test_logs_are_json_where_that_is_asked_for() -> None:
    """One line each, whatever the message holds."""
    record = logging.LogRecord("a.b", logging.WARNING, "", 1, "lost\n%s", ("\x1b[2J",), None)
    line = log_formatter({"KERNEL_FOUNDRY_LOG": "json"}).format(record)
    assert "\n" not in line
    assert "\x1b" not in line
    said = json.loads(line)
    assert (said["level"], said["logger"], said["message"]) == ("warning", "a.b", "lost\n\x1b[2J")
    assert "trace_id" not in said
    with pytest.raises(InvalidArgumentError, match="KERNEL_FOUNDRY_LOG"):
        log_formatter({"KERNEL_FOUNDRY_LOG": "xml"})

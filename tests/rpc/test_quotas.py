"""What a user may use of a service, and what is said once it is used up."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from evaluator_svc.service import evaluator_service
from generator_svc.service import generator_service
from kernel_foundry.cli import token as token_command
from kernel_foundry.domain.archive import Selection
from kernel_foundry.domain.candidate import KernelSource, Operator
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import (
    BudgetCaps,
    EvaluationRequest,
    Proposal,
    ProposalRequest,
    TokenUsage,
)
from kernel_foundry.domain.sweep import SweepRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import CorruptArchiveError, ProcessLostError, QuotaExceededError
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.generator import RemoteGenerator
from kernel_foundry.rpc.security import ServerSecurity
from kernel_foundry.rpc.server import Service, running
from kernel_foundry.rpc.tokens import Role, TokenFile
from kernel_foundry.rpc.usage_file import Usage, UsageFile
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator

ONCE = CallOptions(retry=RetryPolicy(attempts=1), work_deadline_s=30.0)
TASK = Task(name="t", reference="class Model: ...", workloads=(Workload(name="default"),))
PLAN = "TUNE = {'BLOCK': [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}\n\ndef launch(out):\n    pass"


def request(number: int = 0, *, request_id: str = "") -> EvaluationRequest:
    source = KernelSource(
        language=Language.SYCL, device_code=f"// {number}", plan="def launch(out):\n    pass"
    )
    return EvaluationRequest(task=TASK, device="", source=source, request_id=request_id)


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json")


def usage(tokens_file: Path, user: str = "ada") -> Usage:
    file = UsageFile.beside(tokens_file)
    found = file.of(user)
    file.close()
    return found


@asynccontextmanager
async def served(tmp_path: Path, *services: Service) -> AsyncIterator[str]:
    security = ServerSecurity(tokens=tmp_path / "tokens.json", audit_log=tmp_path / "audit.jsonl")
    async with running(services, "127.0.0.1:0", security=security) as target:
        yield target


@asynccontextmanager
async def as_user(
    target: str, token: str, patch: pytest.MonkeyPatch
) -> AsyncIterator[RemoteEvaluator]:
    with patch.context() as inner:
        inner.setenv("KERNEL_FOUNDRY_TOKEN", token)
        client = RemoteEvaluator(target, ONCE)
    yield client
    await client.close()


async def test_evaluations_beyond_the_quota_are_refused_and_others_are_not(
    tmp_path: Path, tokens: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the user's: another token, and a service that starts again, change nothing."""
    first = tokens.create("ada", Role.RUN, 1, evaluations=3)
    second = tokens.create("ada", Role.RUN, 1, evaluations=3)
    other = tokens.create("bob", Role.RUN, 1)
    for token, numbers in ((first, (1, 2)), (second, (3,))):
        async with (
            served(tmp_path, evaluator_service(FakeEvaluator())) as target,
            as_user(target, token, monkeypatch) as client,
        ):
            for number in numbers:
                assert (await client.evaluate(request(number))).passed
    async with served(tmp_path, evaluator_service(FakeEvaluator())) as target:
        async with as_user(target, first, monkeypatch) as client:
            with pytest.raises(QuotaExceededError, match="ada is used up: 3 evaluations") as caught:
                await client.evaluate(request(4))
            with pytest.raises(QuotaExceededError):  # before the minutes that this may take
                await client.admit(request(4).task)
            assert caught.value.code.name == "RESOURCE_EXHAUSTED"
            assert caught.value.metadata["user"] == "ada"
            assert (await client.capabilities()).devices
        async with as_user(target, other, monkeypatch) as client:
            assert (await client.evaluate(request(4))).passed
    assert usage(tmp_path / "tokens.json").evaluations == 3
    outcomes = [
        json.loads(line)["outcome"] for line in (tmp_path / "audit.jsonl").read_text().splitlines()
    ]
    assert outcomes.count("RESOURCE_EXHAUSTED") == 2


async def test_what_is_repeated_counts_once_and_what_fails_does_not(
    tmp_path: Path, tokens: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retry is no second evaluation, but the first after a failure; another candidate is one."""

    class Flaky(FakeEvaluator):
        failures = 2

        async def evaluate(self, request: EvaluationRequest) -> Evaluation:
            if request.request_id == "lost" and self.failures:
                self.failures -= 1
                raise ProcessLostError("a judge died")
            return await super().evaluate(request)

    token = tokens.create("ada", Role.RUN, 1, evaluations=2)
    async with (
        served(tmp_path, evaluator_service(Flaky())) as target,
        as_user(target, token, monkeypatch) as client,
    ):
        for _ in range(2):
            with pytest.raises(ProcessLostError):
                await client.evaluate(request(9, request_id="lost"))
        assert usage(tmp_path / "tokens.json").evaluations == 0
        for _ in range(3):
            await client.evaluate(request(9, request_id="lost"))
        assert usage(tmp_path / "tokens.json").evaluations == 1
        await client.evaluate(request(2, request_id="mine"))
        with pytest.raises(QuotaExceededError):
            await client.evaluate(request(3, request_id="mine"))


async def test_a_sweep_counts_by_its_configurations_and_ends_at_the_quota(
    tmp_path: Path, tokens: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for eight of them, as in a run's budget."""
    source = KernelSource(language=Language.SYCL, device_code="", plan=PLAN)
    asked = SweepRequest(task=TASK, device="", source=source)
    token = tokens.create("ada", Role.RUN, 1, evaluations=3)
    async with (
        served(tmp_path, evaluator_service(FakeEvaluator())) as target,
        as_user(target, token, monkeypatch) as client,
    ):
        assert len([result async for result in client.sweep(asked)]) == 10
        assert usage(tmp_path / "tokens.json").evaluations == 2
        stream = client.sweep(asked)
        for _ in range(8):
            await anext(stream)
        with pytest.raises(QuotaExceededError):
            await anext(stream)
        assert usage(tmp_path / "tokens.json").evaluations == 3


async def test_a_sweep_that_is_repeated_counts_once(
    tmp_path: Path, tokens: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the first time it was left before its end: what comes beyond that is counted."""
    source = KernelSource(language=Language.SYCL, device_code="", plan=PLAN)
    asked = SweepRequest(task=TASK, device="", source=source, request_id="mine")
    token = tokens.create("ada", Role.RUN, 1, evaluations=2)
    async with (
        served(tmp_path, evaluator_service(FakeEvaluator())) as target,
        as_user(target, token, monkeypatch) as client,
    ):
        stream = client.sweep(asked)
        await anext(stream)
        await stream.aclose()
        for _ in range(2):
            assert len([result async for result in client.sweep(asked)]) == 10
        assert usage(tmp_path / "tokens.json").evaluations == 2
        with pytest.raises(QuotaExceededError):
            await client.evaluate(request())


async def test_proposals_end_when_a_user_s_money_is_used_up(
    tmp_path: Path, tokens: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the last one costs beyond the quota is counted, too."""

    class Costly(FakeGenerator):
        async def propose(self, request: ProposalRequest) -> Proposal:
            spent = TokenUsage(
                model="m", input_tokens=1, output_tokens=1, cost_usd=0.4, latency_ms=1.0
            )
            return replace(await super().propose(request), usage=(spent,))

    asked = ProposalRequest(
        run="r",
        task=TASK,
        admission=await FakeEvaluator().admit(TASK),
        selection=Selection(operator=Operator.SEED),
        models=(),
        seed=0,
        caps=BudgetCaps(),
    )
    token = tokens.create("ada", Role.RUN, 1, usd=1.0)
    async with served(tmp_path, generator_service(Costly())) as target:
        monkeypatch.setenv("KERNEL_FOUNDRY_TOKEN", token)
        generator = RemoteGenerator(target, ONCE)
        for _ in range(3):
            await generator.propose(asked)
        with pytest.raises(QuotaExceededError, match="1 USD of models"):
            await generator.propose(asked)
        await generator.close()
    assert usage(tmp_path / "tokens.json").usd == pytest.approx(1.2)


def test_the_list_shows_what_is_used_and_reset_begins_anew(tmp_path: Path) -> None:
    """Of a user; one without a token is no user."""
    file = tmp_path / "t.json"

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(
            token_command.command, [*arguments, "--tokens", str(file)], standalone_mode=False
        )
        if result.exception is not None:
            raise result.exception
        return result.stdout

    run("create", "ada", "--evaluations", "3", "--usd", "2", "--at-once", "1")
    counted = UsageFile.beside(file)
    assert [counted.add_evaluation("ada", 3) for _ in range(4)] == [True, True, True, False]
    counted.add_usd("ada", 0.5)
    counted.close()
    assert "3 of 3" in run("list")
    found = json.loads(run("list", "--json"))["tokens"][0]
    assert (found["used_evaluations"], found["used_usd"], found["most_usd"]) == (3, 0.5, 2.0)
    run("reset", "ada")
    assert usage(file) == Usage()
    with pytest.raises(Exception, match="no token of 'eve'"):
        run("reset", "eve")


def test_quotas_that_cannot_be_counted_let_nobody_in(tmp_path: Path) -> None:
    """A file that is none is our own failure, not a free pass."""
    (tmp_path / "t.json.usage.db").write_text("no database " * 100)
    with pytest.raises(CorruptArchiveError):
        UsageFile.beside(tmp_path / "t.json").add_evaluation("ada", 1)

"""Coding agents as models: a scripted program behind the real generator."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from generator_svc.generator import LocalGenerator
from generator_svc.llm.agent_command import KNOWN_AGENTS, agent_command, agent_environment
from generator_svc.llm.litellm_models import LiteLlmModels
from generator_svc.model_choice import named_models
from kernel_foundry.domain.agents import AGENTS_VARIABLE, permit
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.exchange import FinishReason
from kernel_foundry.domain.request import BudgetCaps, ProposalRequest
from kernel_foundry.errors import LlmConfigurationError, LlmUnavailableError
from tests import scripted_agent
from tests.generator.conftest import REPLY
from tests.generators import generator_in

_PLANTED = "sk-planted-9f3aZq71xW"


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    shutil.copy(str(scripted_agent.__file__), tmp_path / "agent.py")
    (tmp_path / "reply.md").write_text(REPLY)
    monkeypatch.chdir(tmp_path)
    folders = (str(Path(sys.executable).parent), os.environ["PATH"])
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    monkeypatch.setenv(AGENTS_VARIABLE, "")
    monkeypatch.setenv("OPENAI_API_KEY", _PLANTED)

    def named(behaviour: str) -> str:
        model = f"agent:python agent.py {behaviour}"
        permit([model], os.environ)
        return model

    return named


@pytest.fixture
async def generator(tmp_path: Path) -> AsyncIterator[LocalGenerator]:
    generator = generator_in(tmp_path, LiteLlmModels(timeout_seconds=120.0))
    yield generator
    await generator.close()


def _asking(request: ProposalRequest, model: str) -> ProposalRequest:
    return replace(request, models=(model,), caps=BudgetCaps())


def _is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def _wait_for(path: Path) -> None:
    end_s = time.monotonic() + 60
    while not path.exists() and time.monotonic() < end_s:
        time.sleep(0.05)


def _nothing_is_left(folder: Path) -> bool:
    """Tell whether what the notes name is gone: the scratch folder, the child process."""
    scratch, child, *_ = (folder / "notes").read_text().splitlines()
    if Path(scratch).exists():
        return False
    end_s = time.monotonic() + 60  # a killed process may take a moment
    while _is_alive(int(child)) and time.monotonic() < end_s:
        time.sleep(0.05)
    return not _is_alive(int(child))


async def test_an_agents_file_becomes_the_candidate(
    generator: LocalGenerator, agent: Callable[[str], str], request_: ProposalRequest,
    tmp_path: Path,
) -> None:  # fmt: skip
    """It is recorded like any reply; folder and processes are gone; no key was shown."""
    model = agent("answer")
    proposal = await generator.propose(_asking(request_, model))
    assert proposal.candidate is not None, proposal.failure
    (exchange,) = await generator.exchanges(request_.run)
    assert (exchange.reply, exchange.finish) == (REPLY, FinishReason.STOP)
    assert exchange.usage.model == model
    assert exchange.usage.input_tokens > 0  # estimated from what was sent
    _, _, *variables = (tmp_path / "notes").read_text().splitlines()
    assert _nothing_is_left(tmp_path)
    assert "PATH" in variables
    assert "OPENAI_API_KEY" not in variables


@pytest.mark.parametrize("behaviour", ["decline", "link"])
async def test_no_file_of_its_own_is_a_refusal(
    generator: LocalGenerator, agent: Callable[[str], str], request_: ProposalRequest,
    behaviour: str,
) -> None:  # fmt: skip
    """A link could show any file of the host."""
    proposal = await generator.propose(_asking(request_, agent(behaviour)))
    assert proposal.candidate is None
    (exchange,) = await generator.exchanges(request_.run)
    assert exchange.finish is FinishReason.REFUSED
    assert "wrote no candidate.md" in exchange.reply


async def test_a_longer_file_than_any_candidate_is_cut(
    generator: LocalGenerator, agent: Callable[[str], str], request_: ProposalRequest
) -> None:
    proposal = await generator.propose(_asking(request_, agent("flood")))
    assert proposal.candidate is None
    exchange, *_ = await generator.exchanges(request_.run)
    assert exchange.finish is FinishReason.LENGTH
    assert len(exchange.reply) == LONGEST_CANDIDATE


async def test_an_agent_that_fails_is_an_unavailable_model(
    generator: LocalGenerator, agent: Callable[[str], str], request_: ProposalRequest
) -> None:
    """The message has its last words without keys and control sequences; the try is counted."""
    model = agent("fail")
    with pytest.raises(LlmUnavailableError, match=r"status 7; it said: .*not logged in") as caught:
        await generator.propose(_asking(request_, model))
    assert _PLANTED not in caught.value.message
    assert "\x1b" not in caught.value.message
    account = await generator.account(request_.run)
    assert [(spend.model, spend.requests) for spend in account.spend] == [(model, 1)]


async def test_an_agent_ends_at_its_limit_with_all_that_it_started(
    agent: Callable[[str], str], request_: ProposalRequest, tmp_path: Path
) -> None:
    for seconds in (2, 20, 50):  # until it gets as far as to hang
        generator = generator_in(tmp_path, LiteLlmModels(timeout_seconds=seconds))
        with pytest.raises(LlmUnavailableError, match=f"did not end in {seconds} s"):
            await generator.propose(_asking(request_, agent("hang")))
        await generator.close()
        if (tmp_path / "notes").exists():
            break
    assert _nothing_is_left(tmp_path)


async def test_a_cancelled_proposal_leaves_no_process(
    generator: LocalGenerator, agent: Callable[[str], str], request_: ProposalRequest,
    tmp_path: Path,
) -> None:  # fmt: skip
    asking = asyncio.ensure_future(generator.propose(_asking(request_, agent("hang"))))
    await asyncio.to_thread(_wait_for, tmp_path / "notes")
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert _nothing_is_left(tmp_path)


async def test_only_agents_that_the_owner_named_are_started(
    generator: LocalGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client's model name would be a command on the generator's host."""
    monkeypatch.setenv(AGENTS_VARIABLE, "agent:claude")
    with pytest.raises(LlmConfigurationError, match=AGENTS_VARIABLE):
        await generator.check_models(("agent:touch /tmp/x",))


@pytest.mark.parametrize(
    ("model", "hint"),
    [("agent:claude", "claude-code"), ("agent:codex", "@openai/codex"), ("agent:no-such", "PATH")],
)
def test_a_missing_agent_is_said_with_a_hint(model: str, hint: str) -> None:
    with pytest.raises(LlmConfigurationError, match=hint):
        agent_command(model, {AGENTS_VARIABLE: model, "PATH": "/nowhere"})


@pytest.mark.parametrize("name", sorted(KNOWN_AGENTS))
def test_known_agents_get_their_own_key_alone(name: str) -> None:
    keys = {"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "GEMINI_API_KEY": "g", "MY": "m"}
    shown = agent_environment(
        f"agent:{name}", {**keys, "KERNEL_FOUNDRY_AGENT_ENVIRONMENT": "MY NONE"}
    )
    own = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY"}[name]
    assert set(shown) == {own, "MY"}


def test_an_equals_sign_of_a_command_names_no_expert() -> None:
    entries = ("agent:aider --model=x", "memory=agent:aider --model=y")
    assert named_models(entries) == ("agent:aider --model=x", "agent:aider --model=y")
    environment: dict[str, str] = {}
    permit(entries, environment)
    assert environment[AGENTS_VARIABLE].splitlines() == list(named_models(entries))

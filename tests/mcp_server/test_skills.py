"""Skills: where they are written, and that whoever follows them gets to a faster kernel."""

import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from mcp import Client, MCPError

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.service import evaluator_service
from kernel_foundry.cli.main import cli
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.mcp_server.answers import Verdict, WorkloadAnswer
from kernel_foundry.rpc.server import running
from kernel_foundry.sdk.skills.install import AGENTS, SKILL_FILE, install_skills, skills
from tests.mcp_server.conftest import agent_of, answer
from tests.mcp_server.scripted_skill import ScriptedAgent, commands
from tests.shared_evaluator import Shared


@pytest.mark.slow
@pytest.mark.sycl
@pytest.mark.timeout(900)  # all that an agent does, of which each step has limits of its own
async def test_a_scripted_agent_follows_the_skills_to_a_faster_kernel(
    local_evaluator: Callable[[str], LocalEvaluator], tmp_path: Path
) -> None:
    text, shared = skills(), Shared(local_evaluator("sycl"))
    with tempfile.TemporaryDirectory(prefix="kf-") as name:
        listen = f"unix:{name}/evaluator.sock"
        async with (
            running([evaluator_service(shared)], listen, grace_s=5.0) as served,
            agent_of(tmp_path, served, "--evaluations", "30", device_kinds="sycl") as agent,
        ):
            scripted = ScriptedAgent(agent, tmp_path, evaluations=1)
            for skill in ("kernel-task", "kernel-verdict", "kernel-climb"):
                await scripted.follow(text[skill])
            await _check_what_is_kept(agent, scripted.of("optimize_result")[0])

    assert all(admission["admitted"] for admission in scripted.of("admit"))
    assert scripted.of("build")[0]["outcome"] == "BUILT"
    (first,) = scripted.of("evaluate")
    (swept,) = scripted.of("sweep")
    assert (first["passed"], swept["best"]["passed"]) == (True, True)
    # A hundred times as fast: no other test that runs meanwhile makes up for that.
    assert swept["best"]["speedup"] > first["speedup"]
    (ended,) = scripted.of("optimize_result")
    assert ended["winner"]["speedup"] > first["speedup"]
    (exported,) = scripted.of("export")
    assert "def " in (tmp_path / exported["path"]).read_text()


async def _check_what_is_kept(agent: Client, ended: dict[str, Any]) -> None:
    """Ask for a finished run and its winner in every other way."""
    run, digest = ended["status"]["run"], ended["winner"]["candidate"]
    assert (ended["status"]["state"], ended["status"]["failure"]) == ("finished", "")
    assert ended["is_exact"]
    report = await agent.read_resource(f"kernel-foundry://runs/{run}/report")
    assert digest in report.contents[0].text
    shown = await agent.read_resource(f"kernel-foundry://candidates/{digest[:16]}")
    assert "def launch" in shown.contents[0].text
    with pytest.raises(MCPError, match="no candidate"):
        await agent.read_resource("kernel-foundry://candidates/ffffffffffff")

    kernels = await answer(agent, "verified_kernels", language="sycl", task="biased_softmax.py")
    # Which of both is faster, other tests beside this one may decide.
    kept = [(run, 1.0)] if ended["winner"]["speedup"] >= 1.0 else []
    assert [(k["run"], k["likeness"]) for k in kernels["result"]] == kept
    checked = (await answer(agent, "verify", run=run, run_again=False))["result"][0]
    assert {s["subject"]: s["agreement"] for s in checked["statements"]}["digest"] == "agrees"
    # What an exported file runs need not be what its record is on.
    read = await answer(agent, "verify", record="fast_softmax.py", run_again=False)
    assert not read["result"][0]["agrees"]
    agreement = {s["subject"]: s["agreement"] for s in read["result"][0]["statements"]}
    assert agreement["code of the file"] != "agrees"


def test_the_commands_of_skills_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("biased_softmax.py", "my_program.py", "first.md", "second.md"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    shown = [words for text in skills().values() for words in commands(text)]
    assert len(shown) >= 5
    for program, name, *arguments in shown:
        assert program == "kfoundry"
        command = cli.get_command(click.Context(cli), name)
        assert command is not None, name
        command.make_context(name, arguments)  # raises what the command line would say


def test_what_skills_name_is_there() -> None:
    text = skills()
    verdict = text["kernel-verdict"]
    assert set(re.findall(r"^\| ([A-Z_]+) \|", verdict, re.MULTILINE)) == {
        outcome.name for outcome in EvaluationOutcome
    }
    fields = {*Verdict.model_fields, *WorkloadAnswer.model_fields}
    told = set(re.findall(r"^\* `(\w+)`", verdict, re.MULTILINE))
    assert told
    assert told <= fields
    kinds = set(re.findall(r"`(\w+_bound|\w+_access|occupancy)`", verdict))
    assert len(kinds) == 4
    assert kinds <= {kind.value for kind in FindingKind}
    for name, skill in text.items():
        _, head, body = skill.split("---\n", 2)
        about = yaml.safe_load(head)
        assert about["name"] == name
        assert 0 < len(about["description"]) <= 1024
        assert set(re.findall(r"skill `([\w-]+)`", body)) <= set(text)


def test_skills_lie_where_agents_look_and_replace_nothing(tmp_path: Path) -> None:
    written = install_skills(tmp_path / AGENTS["claude"].project)
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        f".claude/skills/{name}/{SKILL_FILE}" for name in skills()
    ]
    assert install_skills(tmp_path / ".claude/skills") == written

    mine = "my own words\n"
    written[-1].write_text(mine)
    written[0].unlink()
    with pytest.raises(InvalidArgumentError, match="--replace"):
        install_skills(tmp_path / ".claude/skills")
    assert written[-1].read_text() == mine
    assert not written[0].exists()
    install_skills(tmp_path / ".claude/skills", replaces=True)
    assert written[-1].read_text() == skills()[written[-1].parent.name]
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        install_skills(tmp_path / "file")


def test_skills_go_through_no_link(tmp_path: Path) -> None:
    """A folder that others made may hold links, pipes, and files without an end."""
    name = next(iter(skills()))
    victim = tmp_path / "victim"
    for number, make in enumerate(
        (
            lambda place: place.symlink_to(victim),  # that is not there
            lambda place: place.symlink_to("/dev/zero"),
            os.mkfifo,
        )
    ):
        folder = tmp_path / f"project{number}" / "skills"
        (folder / name).mkdir(parents=True)
        make(folder / name / SKILL_FILE)
        with pytest.raises(InvalidArgumentError, match="--replace"):
            install_skills(folder)
        assert not victim.exists()
        install_skills(folder, replaces=True)
        assert not victim.exists()
        assert not (folder / name / SKILL_FILE).is_symlink()
        assert (folder / name / SKILL_FILE).read_text() == skills()[name]


def test_skills_of_a_project_stay_in_it(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    elsewhere.mkdir()
    (project / ".claude").symlink_to(elsewhere)
    with pytest.raises(InvalidArgumentError, match="leads out"):
        install_skills(project / ".claude/skills", project=project)
    assert not list(elsewhere.iterdir())
    install_skills(project / ".agents/skills", project=project)
    install_skills(project / ".claude/skills")  # as with --to
    assert list(elsewhere.iterdir())

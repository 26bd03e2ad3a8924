"""Searches that an agent starts: what they may spend, and how they end."""

from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.archive import RunBudget, RunState
from kernel_foundry.domain.steering import SteeringAction
from kernel_foundry.process_identity import new_holder
from tests.cli.conftest import CANDIDATE
from tests.domain_values import run_spec
from tests.mcp_server.conftest import agent_of, answer, refusal

RUN = {"task": "relu.py", "device": "null:0"}


@pytest.mark.slow
async def test_a_run_ends_when_it_is_told_to(agent_folder: Path, served: str) -> None:
    async with agent_of(agent_folder, served, "--evaluations", "300") as agent:
        assert "--usd" in await refusal(agent, "optimize_start", **RUN, models=["openai/gpt-5"])
        assert "root" in await refusal(agent, "optimize_start", **RUN, start_from=["../outside.py"])
        beyond = await refusal(agent, "optimize_start", **RUN, evaluations=301)
        assert "300 of 300 left" in beyond
        assert "name the run" in await refusal(agent, "optimize_cancel", run="")
        assert "nothing" in await refusal(agent, "optimize_cancel", run="nothing")

        for out in ("../out.py", "relu.py", "no/such/out.py", "/tmp/out.py", "link.py"):
            said = await refusal(agent, "export", out=out)
            assert "root" in said or "not replaced" in said

        await answer(agent, "optimize_start", **RUN, evaluations=300, run="long")
        assert "is active" in await refusal(agent, "optimize_start", **RUN, evaluations=1)
        assert "0 of 300 left" in await refusal(agent, "build", task="relu.py", candidate="")

        given = {"action": "inject", "candidate": CANDIDATE}
        said = await refusal(agent, "optimize_steer", run="long", **given)
        assert "1 evaluation asked for, 0 of 300 left" in said

        told = await answer(
            agent, "optimize_steer", run="long", action="ban", text="atomic_ref\x1b[2J"
        )
        assert (told["state"], told["tricks"]) == ("running", ["atomic_ref\\x1b[2J"])
        said = await refusal(agent, "optimize_steer", run="long", action="pin", cell="9,9,9")
        assert "such as 2,1,0" in said

        status = await answer(agent, "optimize_cancel", run="long")
        assert status["state"] == "interrupted"
        # A run of another process is asked to stop; one that nobody works on is not.
        archive = LocalArchive(f"sqlite:///{agent_folder / 'data' / 'runs.db'}")
        await archive.create_run(run_spec("theirs"))
        await archive.finish_run("theirs", RunState.INTERRUPTED)
        assert "nothing to end" in await refusal(agent, "optimize_cancel", run="theirs")
        await archive.hold_run("theirs", new_holder(), RunBudget(evaluations=9))
        status = await answer(agent, "optimize_cancel", run="theirs")
        asked = [event.steering.action for event in await archive.steering("theirs")]
        assert (status["state"], asked) == ("running", [SteeringAction.STOP])
        await archive.close()
        # What it did not use is there again.
        built = await answer(agent, "build", task="relu.py", candidate="")
        assert built["outcome"] == "EXTRACTION_FAILED"

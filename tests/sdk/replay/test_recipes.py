"""A run of the built-in recipes, made by the command itself, replays as one of models does."""

import json
from pathlib import Path

from tests.cli.conftest import TASK, run_kfoundry


def test_a_run_of_recipes_comes_out_equal(tmp_path: Path, served: str) -> None:
    (tmp_path / "relu.py").write_text(TASK)
    # Nothing runs on the null device, so that nothing is correct: exit code 1.
    searched = run_kfoundry(
        tmp_path, "optimize", "relu.py", "--device", "null:0", "--evaluations", "8",
        "--in-flight", "3", "--json", evaluator=served,
    )  # fmt: skip
    assert searched.returncode == 1, searched.stderr
    replayed = run_kfoundry(tmp_path, "runs", "replay", "--json")
    assert replayed.returncode == 0, replayed.stderr
    outcome = json.loads(replayed.stdout)
    assert (outcome["is_equal"], outcome["replayed"]["remade"]) == (True, 8)

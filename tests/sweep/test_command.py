"""`kfoundry sweep` as a process, on the null device."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import CANDIDATE, TASK, run_kfoundry

_TUNED = CANDIDATE.replace(
    "```python\n", '```python\nTUNE = {"WG": [16, 32, 64]}\nWHERE = ["WG != 32"]\n'
).replace("16), 16]", "WG), WG]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sweep")
    (path / "relu.py").write_text(TASK)
    (path / "tuned.md").write_text(_TUNED)
    (path / "wrong.md").write_text(_TUNED.replace("null_relu", "null_copy"))
    return path


def test_sweep_prints_one_object_and_writes_t4(folder: Path, served: str) -> None:
    done = run_kfoundry(
        folder, "sweep", "relu.py", "tuned.md", "--json", "--t4", "t4.json", evaluator=served
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["configurations"] == 2
    assert printed["validity"] == {"correct": 2}
    assert {r["configuration"]["WG"] for r in printed["results"]} == {"16", "64"}
    assert printed["best"]["outcome"] == "PASSED"
    assert printed["best"]["configuration"]["WG"] in ("16", "64")
    assert "[2/2]" in done.stderr
    t4 = json.loads((folder / "t4.json").read_text())
    assert [r["invalidity"] for r in t4["results"]] == ["correct", "correct"]


def test_sweep_shows_a_table_for_people(folder: Path, served: str) -> None:
    done = run_kfoundry(folder, "sweep", "relu.py", "tuned.md", evaluator=served)
    assert done.returncode == 0, done.stderr
    assert "2 configurations: 2 correct" in done.stdout
    assert "best: WG=" in done.stdout
    assert "PASSED on null:0" in done.stdout


def test_sweep_in_which_nothing_is_right_fails_with_the_reasons(folder: Path, served: str) -> None:
    done = run_kfoundry(folder, "sweep", "relu.py", "wrong.md", evaluator=served)
    assert done.returncode == 1
    assert "2 configurations: 2 correctness" in done.stdout
    assert "2×:" in done.stdout
    assert "Traceback" not in done.stderr

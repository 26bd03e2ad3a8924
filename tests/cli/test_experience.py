"""`kfoundry experience`: lists, finds, adds and copies lessons."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.archive import RunState
from kernel_foundry.domain.candidate import Candidate, KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.cli.conftest import run_kfoundry
from tests.domain_values import run_spec

HALF_EMPTY = (
    "--symptom", "Half of the lanes idle on rows of sixteen elements.",
    "--move", "Let a sub-group take two rows at once.",
    "--language", "sycl",
    "--finding", "occupancy",
    "--source", "a profile of ours",
)  # fmt: skip


def _json(folder: Path, *arguments: str) -> object:
    ended = run_kfoundry(folder, "experience", *arguments, "--json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.slow
def test_lessons_are_added_found_and_copied(tmp_path: Path) -> None:
    """From one store to another and once more: what is there already is merged."""
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    theirs.mkdir()
    (added,) = _json(mine, "add", *HALF_EMPTY)
    assert added["new"]
    hits = _json(mine, "search", "lanes idle on short rows", "--finding", "occupancy")
    assert hits[0]["lesson"]["id"] == added["id"]
    assert hits[0]["score"] >= hits[-1]["score"]
    listed = _json(mine, "list", "--finding", "occupancy", "--language", "sycl")
    assert added["id"] in [lesson["id"] for lesson in listed]
    assert all("occupancy" in lesson["findings"] for lesson in listed)

    file = str(tmp_path / "lessons.jsonl")
    exported = _json(mine, "export", file)
    imported = _json(theirs, "import", file)
    assert (imported["new"], imported["merged"]) == (1, exported["lessons"] - 1)
    again = _json(theirs, "import", file)
    assert (again["new"], again["merged"]) == (0, exported["lessons"])


@pytest.mark.slow
def test_people_get_tables_and_sentences(tmp_path: Path) -> None:
    """The effect of a lesson that was never used is no number."""
    (tmp_path / "mine.yaml").write_text(
        "- symptom: Rows of a prime length are slow.\n"
        "  move: Mask the last step only.\n"
        "  language: sycl\n"
        "  findings: [latency_bound]\n"
        "  source: a measurement\n"
    )
    added = run_kfoundry(tmp_path, "experience", "add", "--file", "mine.yaml")
    assert (added.returncode, added.stderr) == (0, "")
    assert added.stdout.endswith(" added\n")
    listed = run_kfoundry(tmp_path, "experience", "list", "--language", "sycl")
    assert "prime length" in listed.stdout
    found = run_kfoundry(tmp_path, "experience", "search", "rows of a prime length")
    assert "Mask the last step only." in found.stdout
    assert "effect -" in found.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "--symptom", "a"), "--move, --source or --file is needed"),
        (("add", "--file", "bad.yaml"), "bad.yaml, entry 1: move is empty"),
        (("import", "bad.jsonl"), "bad.jsonl, line 2"),
        (("add", "--file", "deep"), "deep: not valid YAML"),
        (("import", "deep"), "deep, line 1: Lesson: not JSON"),
        (("search",), "say what to search for"),
        (("list", "--finding", "nonsense"), "nonsense"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_named(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    """With exit code 2, and nothing is taken in."""
    (tmp_path / "bad.yaml").write_text("symptom: a\nmove: ''\nsource: b\n")
    good = '{"symptom":"a","move":"b","language":null,"source":"c","origin":"user"}'
    (tmp_path / "bad.jsonl").write_text(f"{good}\n{good[:-9]}\n")
    (tmp_path / "deep").write_text("[" * 20_000)
    ended = run_kfoundry(tmp_path, "experience", *arguments)
    assert ended.returncode == 2
    assert said in " ".join(ended.stderr.split())


def test_a_winner_is_listed_as_a_kernel_until_its_run_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()

    async def fill() -> None:
        archive = LocalArchive(f"sqlite:///{tmp_path / 'data' / 'runs.db'}")
        spec = run_spec("fast", operators=("aten.relu.default float32 8x64",))
        await archive.create_run(spec)
        source = KernelSource(language=Language.SYCL, device_code="// relu", plan="pass")
        request = EvaluationRequest(task=spec.task, device="", source=source)
        verdict = replace(await FakeEvaluator().evaluate(request), is_final=True)
        await archive.add("fast", Candidate(source=source), verdict, request_id="1")
        await archive.finish_run("fast", RunState.FINISHED)
        await archive.close()

    asyncio.run(fill())
    (kernel,) = _json(tmp_path, "kernels", "--language", "sycl")
    assert kernel["run"] == "fast"
    assert kernel["operators"] == ["aten.relu.default float32 8x64"]
    assert _json(tmp_path, "kernels", "--language", "cuda") == []
    assert run_kfoundry(tmp_path, "runs", "delete", "fast").returncode == 0
    assert "no such kernel" in run_kfoundry(tmp_path, "experience", "kernels").stdout

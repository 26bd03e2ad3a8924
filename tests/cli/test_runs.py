"""`kfoundry runs`: watched, shown, and copied from store to store."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.archive import RunState
from kernel_foundry.domain.candidate import Candidate, KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.cli.conftest import environment_of, run_kfoundry
from tests.domain_values import run_spec

SPEC = run_spec("first", strategy="gradient")


async def _add(archive: LocalArchive, number: int) -> None:
    source = KernelSource(language=Language.SYCL, device_code=f"// {number}", plan="pass")
    request = EvaluationRequest(task=SPEC.task, device="", source=source)
    evaluation = await FakeEvaluator().evaluate(request)
    candidate = Candidate(source=source)
    await archive.add("first", candidate, evaluation, request_id=str(number))


def _store(folder: Path) -> str:
    (folder / "data").mkdir(exist_ok=True)
    return f"sqlite:///{folder / 'data' / 'runs.db'}"


@pytest.fixture
def store_folder(tmp_path: Path) -> Path:
    """A folder whose store has a finished run with three told evaluations."""

    async def fill() -> None:
        archive = LocalArchive(_store(tmp_path))
        await archive.create_run(SPEC)
        for number in range(3):
            await _add(archive, number)
        await archive.finish_run("first", RunState.FINISHED)
        await archive.close()

    asyncio.run(fill())
    return tmp_path


def test_watch_ends_with_the_run(store_folder: Path) -> None:
    result = run_kfoundry(store_folder, "runs", "watch", "--json")
    assert result.returncode == 0, result.stderr
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [e["sequence"] for e in events] == [1, 2, 3, 3]
    assert {e["outcome"] for e in events[:3]} == {"PASSED"}
    assert events[-1] == {"sequence": 3, "state": "finished"}
    rest = run_kfoundry(store_folder, "runs", "watch", "first", "--after", "2")
    assert [line[:3] for line in rest.stdout.splitlines()] == ["[3]", "[3]"]
    assert rest.stdout.endswith("the run is finished\n")


def test_watch_shows_a_run_that_goes_on_and_says_how_to_go_on(tmp_path: Path) -> None:
    """What another process tells is seen; Ctrl-C tells where it was cut."""
    archive = LocalArchive(_store(tmp_path))
    asyncio.run(archive.create_run(SPEC))
    with subprocess.Popen(
        [sys.executable, "-m", "kernel_foundry.cli", "runs", "watch", "first"],
        env=environment_of(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as watch:
        assert watch.stdout is not None
        for number in range(2):
            asyncio.run(_add(archive, number))
            assert watch.stdout.readline().startswith(f"[{number + 1}] seed ")
        watch.send_signal(signal.SIGINT)
        _, errors = watch.communicate(timeout=280)
    assert watch.returncode == 130
    assert "kernel_foundry.cli runs watch first --after 2" in errors
    assert "Traceback" not in errors
    asyncio.run(archive.close())


def test_a_run_without_a_winner_makes_no_file(tmp_path: Path) -> None:
    async def fill() -> None:
        archive = LocalArchive(_store(tmp_path))
        await archive.create_run(SPEC)
        await archive.close()

    asyncio.run(fill())
    result = run_kfoundry(tmp_path, "export", "first", "--out", "fast.py")
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert "optimize --resume --run first` continues it" in result.stderr
    assert not (tmp_path / "fast.py").exists()


def test_run_is_copied_as_one_file(store_folder: Path) -> None:
    file = str(store_folder / "first.run.gz")
    exported = run_kfoundry(store_folder, "runs", "export", "first", "--out", file, "--json")
    assert exported.returncode == 0, exported.stderr
    assert json.loads(exported.stdout) == {"run": "first", "evaluations": 3, "file": file}
    again = run_kfoundry(store_folder, "runs", "import", file, "--json")
    assert json.loads(again.stdout) == {"run": "first", "evaluations": 3, "new": False}
    other = ("--store", f"sqlite:///{store_folder / 'other.db'}")
    imported = run_kfoundry(store_folder, "runs", "import", file, "--as", "copy", *other, "--json")
    assert json.loads(imported.stdout) == {"run": "copy", "evaluations": 3, "new": True}
    there = json.loads(run_kfoundry(store_folder, "runs", "show", "--json", *other).stdout)
    here = json.loads(run_kfoundry(store_folder, "runs", "show", "--json").stdout)
    assert (there["run"], there["stats"], there["elites"]) == (
        "copy",
        here["stats"],
        here["elites"],
    )
    assert [island["name"] for island in here["stats"]["islands"]]


def test_deleted_run_is_gone_with_what_was_kept_of_it(store_folder: Path) -> None:
    for kept in ("reports/first.html", "sweeps/first/ab.json"):
        (store_folder / "data" / kept).parent.mkdir(parents=True)
        (store_folder / "data" / kept).write_text("")
    deleted = run_kfoundry(store_folder, "runs", "delete", "first")
    assert deleted.returncode == 0, deleted.stderr
    assert run_kfoundry(store_folder, "runs", "list", "--json").stdout == "[]\n"
    assert list((store_folder / "data").glob("*/*first*")) == []
    assert run_kfoundry(store_folder, "runs", "delete", "first").returncode == 2


def test_a_run_is_steered_and_shows_how(store_folder: Path) -> None:
    (store_folder / "mine.md").write_text("```sycl\n// mine\n```\n```python\npass\n```\n")
    asked_words = (
        ("hint", "wide\x1b loads"),
        ("pin", "2,1,0"),
        ("inject", "mine.md"),
        ("ban", "sub_group  barrier"),
        ("ban", "lesson 1"),
        ("stop",),
    )
    for words in asked_words:
        asked = run_kfoundry(store_folder, "runs", "steer", "first", *words)
        assert asked.returncode == 0, asked.stderr
        assert "optimize --resume --run first" in asked.stderr
    steered = json.loads(run_kfoundry(store_folder, "runs", "steer", "first", "--json").stdout)
    assert (steered["stopped"], steered["pinned"]) == (True, "2,1,0")
    assert [event["evaluations"] for event in steered["events"]] == [3] * len(asked_words)
    trick, move = steered["tricks"]
    assert trick == "sub_group barrier"
    lessons = json.loads(run_kfoundry(store_folder, "experience", "list", "--json").stdout)
    assert " ".join(lessons[0]["move"].split()).startswith(move)
    shown = run_kfoundry(store_folder, "runs", "show", "first").stdout
    digest = steered["events"][2]["candidate"][:12]
    for text in (
        r"hint: wide\x1b loads",
        "pin cell 2,1,0",
        f"injected candidate {digest}",
        "ban trick: sub_group barrier",
        "stop",
    ):
        assert text in shown


def test_a_renamed_run_takes_along_what_is_kept_of_it(store_folder: Path) -> None:
    for kept in ("reports/first.html", "sweeps/first/ab.json"):
        (store_folder / "data" / kept).parent.mkdir(parents=True)
        (store_folder / "data" / kept).write_text("")
    renamed = run_kfoundry(store_folder, "runs", "rename", "first", "best.of")
    assert renamed.returncode == 0, renamed.stderr
    data = store_folder / "data"
    found = {
        str(path.relative_to(data)) for path in data.glob("*/*") if "exchanges" not in str(path)
    }
    assert found == {"reports/best.of.html", "sweeps/best.of"}
    assert "best.of" in run_kfoundry(store_folder, "runs", "list").stdout
    refused = run_kfoundry(store_folder, "runs", "rename", "best.of", "a/b")
    assert (refused.returncode, "a/b" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("steer", "first", "pin"), 2, "needs a CELL"),
        (("steer", "first", "pin", "4,0,0"), 2, "such as 2,1,0"),
        (("steer", "first", "pause", "now"), 2, "takes no argument"),
        (("steer", "first", "ban", " "), 2, "needs a CELL or a TRICK"),
        (("steer", "first", "ban", "lesson 987654"), 2, "no lesson 987654"),
        (("steer", "first", "inject", "data/runs.db"), 2, "runs.db"),
        (("watch", "nothing"), 2, "nothing"),
        (("watch", "--after", "-1"), 2, "x>=0"),
        (("candidate", "9"), 2, "no evaluation 9"),
        (("candidate", "0000000000"), 2, "no candidate of the store"),
        (("diff", "1", "../x"), 2, "first four or more"),
        (("export", "nothing", "--out", "x.gz"), 2, "nothing"),
        (("export", "first"), 2, "--out"),
        (("import", "missing.gz"), 2, "missing.gz"),
        (("import", "data/runs.db"), 3, "runs.db"),
    ],
)
def test_bad_input_says_what_is_wrong(
    store_folder: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = run_kfoundry(store_folder, "runs", *arguments)
    assert code == result.returncode, result.stderr
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_every_view_of_a_run_tells_one_count_and_one_winner(store_folder: Path) -> None:
    """What was measured again is told, and is no further candidate; all name the same speed-up."""
    archive = LocalArchive(_store(store_folder))
    asyncio.run(_add_again(archive))
    listed = json.loads(run_kfoundry(store_folder, "runs", "list", "--json").stdout)[0]
    shown = json.loads(run_kfoundry(store_folder, "runs", "show", "--json").stdout)
    best = json.loads(run_kfoundry(store_folder, "runs", "best", "--json").stdout)
    assert (shown["stats"]["evaluation_count"], shown["stats"]["candidate_count"]) == (4, 3)
    assert listed["evaluations"] == 4
    assert listed["speedup"] == shown["elites"][0]["speedup"] == best["speedup"]
    low, high = listed["speedup_interval"]
    assert low <= listed["speedup"] <= high
    assert best["speedup_interval"] == shown["elites"][0]["speedup_interval"] == [low, high]
    headline = f"{listed['speedup']:.2f}× ({low:.2f}–{high:.2f})"
    assert headline in run_kfoundry(store_folder, "runs", "list").stdout
    text = run_kfoundry(store_folder, "runs", "show").stdout
    assert "4 evaluations: 3 candidates, 1 measured again" in text
    assert headline in text


async def _add_again(archive: LocalArchive) -> None:
    (first,) = await archive.evaluations("first", limit=1)
    await archive.add("first", first.candidate, first.evaluation, request_id="again")
    await archive.close()


def test_without_a_name_the_newest_run_with_a_winner_is_taken(store_folder: Path) -> None:
    async def begin() -> None:
        archive = LocalArchive(_store(store_folder))
        await archive.create_run(run_spec("second", strategy="gradient"))
        await archive.close()

    asyncio.run(begin())
    best = run_kfoundry(store_folder, "runs", "best")
    assert best.returncode == 0, best.stderr
    assert "nothing passed yet in the newest run, second: showing first" in best.stderr
    named = run_kfoundry(store_folder, "runs", "best", "second")
    assert named.returncode == 2
    assert "nothing passed in run second" in named.stderr
    numbered = run_kfoundry(store_folder, "runs", "candidate", "1")
    assert "run second has no evaluation 1" in numbered.stderr


def test_any_candidate_is_found_and_two_are_compared(store_folder: Path) -> None:
    first = json.loads(run_kfoundry(store_folder, "runs", "candidate", "1", "--json").stdout)
    text = run_kfoundry(store_folder, "runs", "candidate", first["candidate"][:8])
    assert text.returncode == 0, text.stderr
    assert text.stdout == first["text"]
    assert split(text.stdout).digest == first["candidate"]
    diff = run_kfoundry(store_folder, "runs", "diff", first["candidate"], "3", "--run", "first")
    assert diff.stdout.startswith(f"--- {first['candidate'][:12]}.md\n+++ ")
    changed = [line for line in diff.stdout.splitlines()[3:] if line[0] in "+-"]
    assert changed == ["-// 0", "+// 2"]


def test_lists_are_whole_in_a_pipe(store_folder: Path) -> None:
    environment = {**environment_of(store_folder), "COLUMNS": "60"}
    for words in (("list",), ("show",)):
        result = run_kfoundry(store_folder, "runs", *words, environment=environment)
        assert result.returncode == 0, result.stderr
        assert "…" not in result.stdout

"""Published kernels find their tasks, and count as a suite's winners do."""

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kernel_foundry.cli.suite import command
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.foreign import ForeignRequest, ForeignSource
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import InvalidArgumentError, TaskRefusedError
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.foreign_file import read_foreign
from kernel_foundry.sdk.suite.entry import EntryState
from kernel_foundry.sdk.suite.judged_kernels import judge_published, read_tasks
from kernel_foundry.sdk.suite.kept_verdicts import KeptVerdicts, judged_suite
from kernel_foundry.sdk.suite.published_kernels import kernel_for, read_published
from kernel_foundry.sdk.suite.results import EntryResult
from kernel_foundry.sdk.suite.summary import summary_of
from kernel_foundry.testing.evaluator import FakeEvaluator

_REFERENCE = "class Model: ...\ndef get_inputs(): return []\n"
_KERNEL = "class ModelNew: ...\n"


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks"
    folder.mkdir()
    for name in ("level1_19_ReLU", "level1_20_GELU", "level2_19_Fused", "softmax", "wrong"):
        (folder / f"{name}.py").write_text(f"# {name}\n{_REFERENCE}")
    return folder


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels"
    (folder / "deeper").mkdir(parents=True)
    (folder / "level_1_problem_19_sample_0_kernel.py").write_text(_KERNEL)
    (folder / "deeper" / "20_GELU.py").write_text(_KERNEL)
    (folder / "softmax.py").write_text("class ModelNew(")
    (folder / "wrong.py").write_text(f"{_KERNEL}# wrong\n")
    (folder / "more.jsonl").write_text(
        json.dumps({"level_id": 2, "task_id": 19, "custom_code": _KERNEL}) + "\n[]\n"
    )
    return folder


def _judge() -> Callable[[Task, ForeignSource], Evaluation]:
    def judge(task: Task, source: ForeignSource) -> Evaluation:
        if task.name == "level2_19_Fused":
            raise TaskRefusedError("its reference is random", reasons="random")
        request = ForeignRequest(task=task, device="", source=source)
        passed = asyncio.run(FakeEvaluator().evaluate_foreign(request))
        if "# wrong" not in source.files[0].text:
            return passed
        return Evaluation(
            candidate=passed.candidate,
            task=passed.task,
            device=passed.device,
            outcome=EvaluationOutcome.WRONG_RESULT,
            trust=passed.trust,
        )

    return judge


def test_kernels_are_counted_as_winners(tasks: Path, kernels: Path) -> None:
    """Who has no kernel, or one that cannot be read, is not solved; a refused task neither."""
    told: list[str] = []
    results = judge_published(
        read_tasks(tasks, admit_degenerate=True),
        read_published(kernels),
        _judge(),
        lambda result, _: told.append(result.entry.task.name),
    )
    assert told == ["level1_19_ReLU", "level1_20_GELU", "level2_19_Fused", "softmax", "wrong"]
    assert [r.verdict is not None for r in results] == [True, True, False, False, False]
    assert results[2].entry.state is EntryState.REFUSED
    assert "no Python" in results[3].entry.progress.reason
    assert results[4].entry.progress.reason.startswith("wrong_result")
    summary = summary_of(results)
    assert summary.tasks == 5
    assert summary.correctness is not None
    assert summary.correctness.value == pytest.approx(0.4)
    assert (summary.refused, summary.suspect) == (1, 2)
    assert summary.own_share is None


def test_a_number_of_another_level_is_no_kernel(kernels: Path) -> None:
    published = read_published(kernels)
    found = kernel_for("level2_19_Fused", published)
    assert found is not None
    assert found.place == "more.jsonl, line 1"
    assert kernel_for("level3_19_Net", published) is None


def test_a_folder_may_name_the_level(tmp_path: Path) -> None:
    """As METR's winners have it, whose class is called as the reference's."""
    for level in (1, 2):
        folder = tmp_path / f"winners/level_{level}"
        folder.mkdir(parents=True)
        (folder / "task_19.py").write_text("class Model: ...\n")
    (folder / "task_3.py").write_text("class Model: ...\nclass ModelNew: ...\n")

    def place(task: str, path: Path) -> str:
        found = kernel_for(task, read_published(path))
        return found.place if found else ""

    winners = tmp_path / "winners"
    assert place("level_1_19_ReLU", winners) == "level_1/task_19.py"
    assert place("level2_19_Fused", winners) == "level_2/task_19.py"
    assert place("level2_19_Fused", winners / "level_2") == "task_19.py"
    assert place("level3_19_Net", winners) == ""
    assert place("19_ReLU", winners) == ""  # of one level or of the other
    assert place("3_Net", winners) == "level_2/task_3.py"
    assert place("19_ReLU", winners / "level_1") == "task_19.py"
    entries = {k.source.entry_name for k in read_published(winners) if k.source}
    assert entries == {"Model", "ModelNew"}
    with pytest.raises(InvalidArgumentError, match="neither a class ModelNew"):
        read_foreign(folder / "task_19.py")


def test_a_folder_without_kernels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"no \.py, \.json or \.jsonl"):
        read_published(tmp_path)


def test_one_command_judges_them_all(
    tasks: Path,
    kernels: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the numbers, each verdict behind them, and files."""
    judge = _judge()
    monkeypatch.setattr(
        Foundry, "evaluate_foreign", lambda _self, task, source, **_: judge(task, source)
    )
    monkeypatch.setattr(
        Foundry, "admit", lambda _self, task, **_: asyncio.run(FakeEvaluator().admit(task))
    )
    out = tmp_path / "out"
    asked = ["judge", str(tasks), str(kernels), "--out", str(out)]
    assert command.main(asked, standalone_mode=False) == 1
    said = capsys.readouterr()
    assert "fast_1.5" in said.out
    assert "[4/5] softmax: " in said.err
    found = json.loads((out / "results.json").read_text())
    assert found["summary"]["tasks"] == 5
    kept = (out / "verdicts.jsonl").read_text().splitlines()
    assert {json.loads(line)["asked"] for line in kept if line} == {" of local"}
    other = [*asked, "--evaluator", "other:50051"]  # another machine, with verdicts of its own
    assert command.main(other, standalone_mode=False) == 1
    assert len((out / "verdicts.jsonl").read_text().split()) > len(kept)
    capsys.readouterr()
    assert sorted(found["verdicts"]) == ["level1_19_ReLU", "level1_20_GELU", "wrong"]
    assert found["verdicts"]["level1_19_ReLU"]["trust"] == "foreign"
    assert (out / "eval_results_level1.json").exists()
    (wrong,) = json.loads((out / "eval_results.json").read_text())["wrong"]
    assert (wrong["compiled"], wrong["correctness"]) == (True, False)
    times = json.loads((out / "baseline_time_eager.json").read_text())["level1"]
    assert {"19_ReLU.py", "20_GELU.py", "softmax.py", "wrong.py"} == set(times)
    assert times["softmax.py"]["hardware"] == "fake device"
    assert f"{kernels.name} on {tasks.name}: " in (out / "report.html").read_text()


def test_a_folder_of_verdicts_is_shown_and_compared_as_a_suite(
    tasks: Path,
    kernels: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(tmp_path / "data"))
    known, judge = read_tasks(tasks, admit_degenerate=True), _judge()
    for name, asked in (("theirs", ""), ("ours", "other"), ("ours", "")):
        published = read_published(kernels) if name == "theirs" else read_published(kernels)[:1]
        with closing(KeptVerdicts(tmp_path / name, asked)) as kept:
            judged = judge_published(known, published, judge, lambda *_: None, kept)
        suite, results = judged_suite(tmp_path / name)
        assert results == judged
        assert suite.has_ended
    theirs, ours = str(tmp_path / "theirs"), str(tmp_path / "ours")
    assert command.main(["show", theirs, "--json"], standalone_mode=False) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["suite"], found["summary"]["correctness"]["value"]) == ("theirs", 0.4)
    assert command.main(["compare", theirs, ours, "--json"], standalone_mode=False) == 0
    changes = [task["change"] for task in json.loads(capsys.readouterr().out)["tasks"]]
    assert changes.count("lost") == 1
    assert command.main(["show", theirs], standalone_mode=False) == 0
    assert "solved: 40 %" in capsys.readouterr().out
    with pytest.raises(InvalidArgumentError, match="no suite called"):
        command.main(["show", str(tasks)], standalone_mode=False)
    (tmp_path / "theirs" / "verdicts.jsonl").write_text("{}\n")
    with pytest.raises(InvalidArgumentError, match="no verdict there"):
        command.main(["show", theirs], standalone_mode=False)


def test_what_was_judged_before_a_kill_is_not_judged_again(
    tasks: Path, kernels: Path, tmp_path: Path
) -> None:
    """Also where the kill has cut the last verdict short: that kernel is judged again."""
    asked: list[str] = []
    judge = _judge()

    def count(task: Task, source: ForeignSource) -> Evaluation:
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(task.name)
        return judge(task, source)

    def judged(folder: Path, device: str = "") -> tuple[EntryResult, ...]:
        with closing(KeptVerdicts(folder, device)) as kept:
            return judge_published(
                read_tasks(tasks, admit_degenerate=True),
                read_published(kernels),
                count,
                lambda *_: None,
                kept,
            )

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        judged(out)
    assert asked == ["level1_19_ReLU", "level1_20_GELU"]
    verdicts = out / "verdicts.jsonl"
    verdicts.write_bytes(verdicts.read_bytes()[:-100])

    asked[:] = [""]
    with pytest.raises(KeyboardInterrupt):
        judged(out)
    assert asked == ["", "level1_20_GELU"]

    asked[:] = ["", "", ""]
    results = judged(out)
    assert asked[3:] == ["level2_19_Fused", "wrong"]
    assert [r.verdict is not None for r in results] == [True, True, False, False, False]

    asked[:] = ["", "", ""]
    judged(out, "another device")
    assert asked[3:] == ["level1_19_ReLU", "level1_20_GELU", "level2_19_Fused", "wrong"]


def test_numbers_of_thousands_of_digits_are_names_like_others(tmp_path: Path) -> None:
    line = json.dumps(
        {"level_id": "1" * 5000, "task_id": "19", "custom_code": "class ModelNew: ..."}
    )
    (tmp_path / "theirs.jsonl").write_text(line + "\n")
    published = read_published(tmp_path)
    assert kernel_for("level1_19_ReLU", published) is None
    assert kernel_for(f"level{'1' * 5000}_19", published) is published[0]


def test_json_lines_may_be_called_json(tmp_path: Path) -> None:
    """As CUDA-L1's are; a solution on one line is none of them."""
    lines = [
        {"level_id": 1, "task_id": 19, "custom_code": _KERNEL},
        {"level_id": 1, "task_id": 20, "custom_code": None},
    ]
    (tmp_path / "h100.json").write_text("\n" + "\n".join(map(json.dumps, lines)))
    spec = {"language": "python", "entry_point": "main.py::run"}
    sources = [{"path": "main.py", "content": "custom_code = 1"}]
    (tmp_path / "softmax.json").write_text(json.dumps({"spec": spec, "sources": sources}))
    (tmp_path / "wrong.jsonl").write_bytes(b"\xff\n")
    found = {kernel.place: kernel for kernel in read_published(tmp_path)}
    assert set(found) == {"h100.json, line 2", "h100.json, line 3", "softmax.json", "wrong.jsonl"}
    assert kernel_for("level1_19_ReLU", found.values()) is found["h100.json, line 2"]
    assert kernel_for("softmax", found.values()) is found["softmax.json"]
    assert found["softmax.json"].source is not None
    assert found["h100.json, line 3"].reason == "no text 'custom_code': None"
    assert "UTF-8" in found["wrong.jsonl"].reason

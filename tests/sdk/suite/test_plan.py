"""Plans: what a file and options say, and messages that name what does not fit."""

from pathlib import Path

import pytest

from kernel_foundry.domain.language import Language
from kernel_foundry.errors import InvalidArgumentError, TaskInvalidError
from kernel_foundry.sdk.loop.budget import DEFAULT_EVALUATIONS
from kernel_foundry.sdk.suite.entry import entries_of
from kernel_foundry.sdk.suite.plan import read_plan

TASK = "class Model: ...\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks").mkdir()
    for name in ("b", "a"):
        (tmp_path / "tasks" / f"{name}.py").write_text(TASK)
    return tmp_path


def test_a_folder_is_a_plan_with_defaults(folder: Path) -> None:
    plan = read_plan(folder / "tasks", "s")
    assert [task.name for task in plan.tasks] == ["a", "b"]
    assert all(task.admit_degenerate for task in plan.tasks)
    assert plan.each.evaluations == DEFAULT_EVALUATIONS
    assert plan.devices == ("sycl",)


def test_a_file_says_everything_and_options_replace_it(folder: Path) -> None:
    (folder / "plan.yaml").write_text(
        "tasks: [tasks/*.py]\ndevices: cuda\nmodels: [openai/gpt-5]\nrepeats: 3\nseed: 4\n"
        "each: {minutes: 20, usd: 0.5}\nwhole: {usd: 50, hours: 12}\n"
    )
    given = {"each": {"usd": 1}, "repeats": 2}
    plan = read_plan(folder / "plan.yaml", "s", given=given, defaults={"models": ["recipes"]})
    assert plan.language is Language.CUDA
    assert plan.models == ("openai/gpt-5",)
    assert (plan.each.evaluations, plan.each.minutes, plan.each.cost_usd) == (None, 20.0, 1.0)
    assert (plan.whole.cost_usd, plan.whole.hours) == (50.0, 12.0)
    assert len(entries_of(plan)) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks: [none/*.py]", "no task file there"),
        ("tasks: [tasks, tasks/a.py]", "two are called 'a'"),
        ("tasks: [tasks]\nrepeat: 2", "unknown key 'repeat'; known are tasks"),
        ("tasks: [tasks]\nrepeats: 0", "repeats: expected a whole number from 1"),
        ("tasks: [tasks]\neach: {usd: -1}", "each.usd: expected a number above 0"),
        ("tasks: [tasks]\neach: {dollars: 1}", "each: unknown key 'dollars'"),
        ("tasks: [tasks]\nstrategy: luck", "strategy: expected one of gradient"),
        ("tasks: [tasks]\nrepeats: 9999", "expected at most 10000"),
        ("devices: [cuda]", "no tasks"),
        ("tasks: [tasks]\ndevices: ['cuda:0', sycl]", "devices: 'sycl' does not run cuda"),
        ("tasks: [tasks]\ndevices: [cuda]\nlanguage: sycl", "'cuda' does not run sycl"),
        ("tasks: [tasks]\nstop_at: 2", "stop_at: expected a share such as 0.97, or never"),
        ("[1, 2", "not valid YAML"),
        ("text", "expected keys with values"),
    ],
)
def test_what_does_not_fit_is_named(folder: Path, text: str, message: str) -> None:
    (folder / "plan.yaml").write_text(text)
    with pytest.raises(InvalidArgumentError, match=r"plan\.yaml") as caught:
        read_plan(folder / "plan.yaml", "s")
    assert message in str(caught.value)


def test_a_file_that_is_no_task_is_named(folder: Path) -> None:
    (folder / "tasks" / "notes.py").write_text("x = 1\n")
    with pytest.raises(TaskInvalidError, match=r"notes\.py"):
        read_plan(folder / "tasks", "s")


def test_tasks_whose_names_no_run_may_have_get_different_runs(folder: Path) -> None:
    for name in ("c d", "c+d"):
        (folder / "tasks" / f"{name}.py").write_text(TASK)
    runs = [entry.run for entry in entries_of(read_plan(folder / "tasks", "s"))]
    assert runs == ["s.a", "s.b", "s.c-d", "s.c-d-3"]


def test_every_file_that_is_no_task_is_named(folder: Path) -> None:
    (folder / "tasks" / "c.py").write_text("x = 1\n")
    with pytest.raises(TaskInvalidError, match=r"^c\.py: no Model"):
        read_plan(folder / "tasks", "s")
    (folder / "tasks" / "d.py").write_text("def\n")
    with pytest.raises(TaskInvalidError, match=r"2 files are no tasks:\n  c\.py: .*\n  d\.py"):
        read_plan(folder / "tasks", "s")

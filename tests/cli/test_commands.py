"""The command line: exit codes, clean stdout, messages that say what to do."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import run_kfoundry


def test_help_names_every_command(folder: Path) -> None:
    result = run_kfoundry(folder, "--help")
    assert result.returncode == 0
    for command in ("optimize", "admit", "evaluate", "devices", "serve", "runs", "bench"):
        assert command in result.stdout
        assert run_kfoundry(folder, command, "--help").returncode == 0


@pytest.mark.slow
def test_evaluation_is_one_json_object_with_its_outcome_as_exit_code(
    folder: Path, served: str
) -> None:
    right = run_kfoundry(folder, "evaluate", "relu.py", "relu.md", "--json", evaluator=served)
    assert right.returncode == 0, right.stderr
    verdict = json.loads(right.stdout)
    assert verdict["outcome"] == "PASSED"
    assert verdict["speedup"] > 0
    assert set(verdict["workloads"][0]["baselines"]) >= {"eager"}
    wrong = run_kfoundry(folder, "evaluate", "relu.py", "wrong.md", "--json", evaluator=served)
    assert wrong.returncode == 1
    assert json.loads(wrong.stdout)["outcome"] == "WRONG_RESULT"


def test_a_fault_of_a_plan_is_said_with_its_line_in_the_file(folder: Path, served: str) -> None:
    text = (folder / "relu.md").read_text()
    (folder / "unknown.md").write_text(text.replace("x.numel(), 16)", "y.numel(), 16)"))
    line = next(n for n, one in enumerate(text.splitlines(), 1) if "cdiv" in one)
    found = run_kfoundry(folder, "evaluate", "relu.py", "unknown.md", evaluator=served)
    assert found.returncode == 1
    assert f"error: unknown.md:{line}: " in found.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("evaluate", "missing.py", "relu.md"), 2, "missing.py"),
        (("evaluate", "relu.md", "relu.py"), 2, "did you swap TASK and CANDIDATE?"),
        (("evaluate", "relu.py", "missing.md"), 2, "missing.md"),
        (("evaluate", "relu.py", "relu.md", "--set", "BLOCK"), 2, "NAME=VALUE"),
        (("admit", "no_model.py"), 2, "Model"),
        (("admit", "."), 2, "`kfoundry suite run` takes folders"),
        (("admit", "relu"), 2, "did you mean relu.py?"),
        (("verify", "relu.py"), 2, "neither an exported file nor a record"),
        (("verify", "relu.md"), 2, "`kfoundry runs record` write records"),
        (("optimise", "relu.py"), 2, "did you mean optimize?"),
        (("report",), 2, "did you mean runs report?"),
        (("runs", "show", "nothing"), 2, "nothing"),
        (("runs", "best"), 2, "no run yet"),
        (("optimize",), 2, "TASK"),
        (("optimize", "relu.py", "--device", "sycl:0", "--language", "cuda"), 2, "runs sycl"),
        (("optimize", "relu.py", "--evaluations", "0"), 2, "x>=1"),
        (("optimize", "relu.py", "--minutes", "0"), 2, "x>0"),
        (("optimize", "relu.py", "--usd", "-1"), 2, "x>0"),
        (("optimize", "relu.py", "--without", "magic"), 2, "'inspirations'"),
        (("capture", "none.py:Model"), 2, "none.py: no such file"),
        (
            ("optimize", "--resume", "--run", "none", "--seed", "3", "--without", "islands"),
            2,
            "--resume ignores --seed, --without: the run keeps its own",
        ),
        (("optimize", "--resume", "--run", "none", "--strategy", "fitness"), 2, "no run called"),
        (("bench", "ablation", "relu.py", "--seeds", "1"), 2, "2<=x"),
        (("evaluate", "relu.py", "relu.md", "--device", "gpu"), 2, "sycl:0 or cuda:0"),
        (("evaluate", "relu.py", "relu.md", "--device", "gpu:0"), 2, "sycl:0 or cuda:0"),
        (("evaluate", "relu.py", "relu.md", "--device", "cuda:x"), 2, "sycl:0 or cuda:0"),
        (("evaluate", "relu.py", "relu.md", "--device", "cuda:0"), 3, "there is null:0"),
        (("evaluate", "relu.py", "relu.md", "--build-only", "--device", "cuda"), 3, "--arch"),
        (("sweep", "relu.py", "relu.md", "--t4", "."), 2, "directory"),
        (("admit", "relu.py", "--evaluator", "unix:/nowhere.sock"), 3, "nowhere"),
    ],
)
def test_bad_input_has_its_exit_code_and_says_what_is_wrong(
    folder: Path, served: str, arguments: tuple[str, ...], code: int, words: str
) -> None:
    _assert_refused(run_kfoundry(folder, *arguments, evaluator=served), code, words)


def test_a_reference_that_raises_is_bad_input(folder: Path, served: str) -> None:
    result = run_kfoundry(folder, "admit", "raises.py", evaluator=served)
    _assert_refused(result, 2, "division by zero")


def _assert_refused(result: subprocess.CompletedProcess[str], code: int, words: str) -> None:
    assert code == result.returncode, result.stderr
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.slow
def test_what_recipes_cannot_do_is_said_before_anything_is_spent(folder: Path, served: str) -> None:
    said = "recipes cannot do aten.special_bessel_j0: give --model, or write a kernel"
    admitted = run_kfoundry(folder, "admit", "bessel.py", "--json", evaluator=served)
    assert admitted.returncode == 3
    assert said in admitted.stderr
    told = json.loads(admitted.stdout)
    assert told["admitted"]
    assert told["models"] == []
    assert told["left_out"] == [{"model": "recipes", "missing": "aten.special_bessel_j0"}]
    options = ("--device", "null:0", "--run", "j0", "--usd", "1")
    started = run_kfoundry(folder, "optimize", "bessel.py", *options, evaluator=served)
    assert started.returncode == 3
    assert "recipes cost nothing: --usd sets no limit here" in started.stderr
    assert said in started.stderr
    assert "j0" not in run_kfoundry(folder, "runs", "list", "--json").stdout


def test_a_run_that_cannot_begin_is_not_left_in_the_store(folder: Path, served: str) -> None:
    arguments = ("optimize", "relu.py", "--device", "cuda", "--run", "nowhere")
    result = run_kfoundry(folder, *arguments, evaluator=served)
    assert result.returncode == 3, result.stderr
    assert "admitting" not in result.stderr
    assert "nowhere" not in run_kfoundry(folder, "runs", "list", "--json").stdout


def test_help_keeps_the_lines_of_its_examples(folder: Path) -> None:
    help_text = run_kfoundry(folder, "--help").stdout
    assert "\n    kfoundry runs best " in help_text
    assert "\\b" not in help_text


def test_options_about_services_are_one_line_of_help_unless_asked_for(folder: Path) -> None:
    brief = run_kfoundry(folder, "runs", "best", "--help").stdout
    assert "\n  --help-services " in brief
    assert "\n  --evaluator " not in brief
    asked = run_kfoundry(folder, "runs", "best", "--help-services")
    assert asked.returncode == 0
    for option in ("evaluator", "archive", "generator", "at", "store", "unsafe-no-sandbox"):
        assert f"\n  --{option} " in asked.stdout


def test_devices_and_processes_are_told_as_one_json_object(folder: Path, served: str) -> None:
    result = run_kfoundry(folder, "devices", "--json", evaluator=served)
    assert result.returncode == 0, result.stderr
    capabilities = json.loads(result.stdout)
    assert [d["id"] for d in capabilities["devices"]] == ["null:0"]
    assert capabilities["isolation"]["mechanisms"]
    processes = {process["process"]: process for process in capabilities["processes"]}
    assert set(processes) == {
        "null builder",
        "null inspector",
        "null runner",
        "null library runner",
    }
    assert {"memory_bytes", "cpu_seconds", "file_bytes"} <= {
        limit["name"] for limit in processes["null runner"]["limits"]
    }


def test_isolation_is_told_for_each_process(folder: Path, served: str) -> None:
    brief = run_kfoundry(folder, "devices", evaluator=served)
    lines = [line for line in brief.stdout.splitlines() if line.startswith("isolation: ")]
    assert len(lines) == 1
    assert lines[0].startswith("isolation: candidates are isolated, by ")
    assert "seccomp: " not in brief.stdout
    result = run_kfoundry(folder, "devices", "--verbose", evaluator=served)
    assert "isolation of every process that handles candidates: " in result.stdout
    for words in ("null builder: ", "null runner: ", "seccomp: ", "limits: memory "):
        assert words in result.stdout


def test_each_evaluator_of_a_fleet_is_shown(folder: Path, served: str) -> None:
    """Whether it gets work, or why not, its device's class, and calls."""
    again = served.replace("/evaluator.sock", "/./evaluator.sock")
    file = folder / "shown.yaml"
    file.write_text(
        "evaluators:\n"
        f"- {{address: '{served}', name: gpu1}}\n"
        f"- {{address: '{again}', name: gpu2, drain: true}}\n"
        "- {address: 'unix:/nowhere/s', name: gpu3}\n"
    )
    result = run_kfoundry(folder, "devices", "--fleet", evaluator=str(file))
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines() if "gpu" in line]
    class_name = rows[0][3]
    assert class_name.startswith("null:")
    assert rows[0] == ["gpu1", "serving", "null:0", class_name, "0"]
    assert rows[1] == ["gpu2", "draining", "null:0", class_name, "0"]
    assert rows[2][:2] == ["gpu3", "away"]
    as_json = run_kfoundry(folder, "devices", "--fleet", "--json", evaluator=str(file))
    hosts = json.loads(as_json.stdout)["hosts"]
    assert [host["state"] for host in hosts] == ["serving", "draining", "away"]
    assert hosts[0]["devices"] == [{"id": "null:0", "class_name": class_name, "load": 0}]
    assert hosts[2]["reason"]
    alone = run_kfoundry(folder, "devices", "--fleet", evaluator=served)
    assert alone.returncode == 2
    assert "a comma makes a fleet" in alone.stderr


@pytest.mark.slow
def test_an_ablation_runs_each_arm_from_nothing(folder: Path, served: str) -> None:
    arguments = ("--evaluations", "2", "--seeds", "2", "--without", "sweeps", "--json")
    arguments = (*arguments, "--device", "null:0")
    result = run_kfoundry(folder, "bench", "ablation", "relu.py", *arguments, evaluator=served)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert [arm["arm"] for arm in found["arms"]] == ["full", "sweeps"]
    assert [len(one["result"]["curve"]) for one in found["runs"]] == [2] * 4
    assert {one["trial"]["seed"] for one in found["runs"]} == {0, 1}
    assert "4 of 4 runs" in result.stderr
    runs = run_kfoundry(folder, "runs", "list", "--json")
    assert "ablation" not in runs.stdout

"""What the command line and the report show of a recorded run."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kernel_foundry.cli.runs import command
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.report.write import write_report
from tests.report_data import held_data
from tests.sdk.replay.by_hand import change
from tests.sdk.replay.recorded import SPEC, Recorded

Runs = Callable[..., Result]


@pytest.fixture
def runs(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Return what runs `kfoundry runs` with the recorded run as the only one."""
    for name in ("ARCHIVE", "GENERATOR", "STORE", "GENERATOR_STORE"):
        monkeypatch.delenv(f"KERNEL_FOUNDRY_{name}", raising=False)
    monkeypatch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(recorded.folder))

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(command, arguments, standalone_mode=False, catch_exceptions=False)

    return run


def test_replay_says_that_a_run_came_out_equal(runs: Runs) -> None:
    result = runs("replay")
    assert (result.return_value, "recorded is equal when replayed: " in result.stdout) == (0, True)
    shown = json.loads(runs("replay", "--json").stdout)
    assert (shown["run"], shown["is_equal"], shown["difference"]) == ("recorded", True, None)
    assert shown["export_sha256"] in result.stdout


def test_replay_shows_the_first_difference(runs: Runs, recorded: Recorded) -> None:
    change(recorded, "UPDATE evaluations SET island = 'nowhere' WHERE sequence = 12")
    result = runs("replay")
    assert result.return_value == 1
    assert "recorded differs when replayed, at evaluation 12" in result.stdout
    assert "recorded: nowhere" in result.stdout
    shown = json.loads(runs("replay", "--json").stdout)
    assert (shown["is_equal"], shown["difference"]["what"]) == (False, "island")


def test_show_has_what_each_model_took_and_how_repairs_ended(runs: Runs) -> None:
    shown = json.loads(runs("show", "--json").stdout)
    assert set(shown["spend"]) == set(SPEC.models)
    for spend in shown["spend"].values():
        assert set(spend) == {"requests", "retries", "prompt_tokens", "completion_tokens", "usd"}
        assert spend["requests"] > 0
        assert spend["usd"] > 0
    repairs = shown["repairs"]["compile_error"]
    assert repairs["attempts"] >= repairs["successes"] > 0
    text = runs("show").stdout
    assert all(model in text for model in SPEC.models)
    assert "compile error" in text


def test_show_goes_on_without_the_generator(runs: Runs, tmp_path: Path) -> None:
    target = f"unix:{tmp_path / 'nobody.sock'}"
    result = runs("show", "--generator", target)
    assert result.return_value == 0
    assert "the cost of models is unknown" in result.stdout
    shown = json.loads(runs("show", "--json", "--generator", target).stdout)
    assert (shown["run"], shown["spend"], shown["repairs"]) == ("recorded", None, None)


def test_exchanges_lists_all_and_shows_one_whole(runs: Runs) -> None:
    listed = json.loads(runs("exchanges", "--json").stdout)
    assert [e["sequence"] for e in listed] == list(range(1, len(listed) + 1))
    again = next(e for e in listed if e["attempt"] == 1)
    selection = str(again["selection"])
    whole = json.loads(runs("exchanges", "--selection", selection, "--json").stdout)
    assert [e["attempt"] for e in whole] == [0, 1]
    text = runs("exchanges", "recorded", "--selection", selection).stdout
    for exchange in whole:
        assert exchange["reply"] in text
        assert all(message["content"] in text for message in exchange["messages"])
    assert "gpt-4o-mini" in runs("exchanges").stdout


def test_the_report_shows_models_repairs_and_who_proposed(runs: Runs, tmp_path: Path) -> None:
    shown = json.loads(runs("show", "--json").stdout)
    with connect() as foundry:
        data = held_data(write_report(foundry, "recorded", tmp_path / "report.html"))
    for name in ("spend", "repairs", "lessons"):
        assert data["account"][name] == shown[name]
    assert shown["repairs"]
    assert "repair" in {row["operator"] for row in data["rows"]}
    asked = [exchange for of_one in data["exchanges"].values() for exchange in of_one]
    assert asked
    assert all(exchange["messages"] and exchange["reply"] for exchange in asked)

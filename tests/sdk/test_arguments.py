"""What a program gives to the SDK by mistake is refused with what to give."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kernel_foundry
from kernel_foundry import Budget, InvalidArgumentError, Targets, connect
from kernel_foundry.domain.archive import Run, RunState
from kernel_foundry.errors import FoundryClosedError
from tests.domain_values import run_spec


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"evaluations": 0}, "evaluations=0.*at least 1"),
        ({"evaluations": 1.5}, "whole number"),
        ({"evaluations": "30"}, "whole number"),
        ({"minutes": -1}, "minutes=-1.*at least 0"),
        ({"cost_usd": float("nan")}, "cost_usd=nan"),
        ({"tokens": True}, "tokens=True"),
    ],
)
def test_a_budget_that_is_none_is_refused(values: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidArgumentError, match=expected):
        Budget(**values)


def test_one_text_is_neither_models_nor_a_candidate(tmp_path: Path) -> None:
    """Its letters would be names of models, and a path the text of a candidate."""
    task = run_spec("first").task
    one: Any = "openai/gpt-5"
    with connect(Targets(store=f"sqlite:///{tmp_path / 'runs.db'}")) as foundry:
        with pytest.raises(InvalidArgumentError, match=r"models=\('openai/gpt-5',\)"):
            foundry.resume("run", models=one)
        with pytest.raises(InvalidArgumentError, match=r"pass Path\('softmax.sycl.md'\)"):
            foundry.evaluate(task, "softmax.sycl.md")


def test_a_closed_foundry_says_so(tmp_path: Path) -> None:
    """And leaves no coroutine behind that Python warns of; closed again, it says nothing."""
    foundry = connect(Targets(store=f"sqlite:///{tmp_path / 'runs.db'}"))
    assert foundry.runs() == ()
    foundry.close()
    foundry.close()
    for call in (foundry.runs, foundry.capabilities, foundry.best):
        with pytest.raises(FoundryClosedError):
            call()


def test_a_run_is_shown_on_one_line() -> None:
    """Its task's reference is pages long."""
    run = Run(
        spec=run_spec("first"),
        state=RunState.FINISHED,
        created_unix_s=0.0,
        evaluation_count=7,
        best_speedup=1.25,
        cost_usd=0.0,
    )
    assert repr(run) == "Run(name='first', state='finished', evaluation_count=7, best_speedup=1.25)"


def test_the_package_has_the_names_of_the_sdk_and_loads_none_of_them_before() -> None:
    """`kfoundry --help` stays instant."""
    for name in kernel_foundry.__all__:
        assert getattr(kernel_foundry, name).__name__ if name != "Event" else kernel_foundry.Event
    assert set(kernel_foundry.__all__) <= set(dir(kernel_foundry))
    with pytest.raises(AttributeError, match="no attribute 'Bugdet'"):
        kernel_foundry.Bugdet  # noqa: B018
    loaded = (
        "import sys, kernel_foundry; print(*(m for m in sys.modules if m[:14] == 'kernel_foundry'))"
    )
    said = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["kernel_foundry"]


def test_the_names_of_the_page_are_there() -> None:
    """Whoever copies a line of a table has what it says."""
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
    _, _, errors = page.partition("## Errors")
    named = re.findall(r"`(\w+Error)`", errors)
    assert len(named) > 15
    assert set(named) <= set(kernel_foundry.__all__)
    table = page.partition("## Calls")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \|", table, re.M)
    methods = [name for row in rows for name in re.findall(r"`(\w+)\(", row)]
    assert len(methods) > 15
    assert [name for name in methods if not hasattr(kernel_foundry.Foundry, name)] == []

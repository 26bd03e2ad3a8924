"""What a notebook shows of runs and verdicts, and that hostile texts in them stay text."""

import builtins
import importlib.util
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from kernel_foundry.domain.best import best_so_far
from kernel_foundry.errors import InvalidArgumentError, PackageMissingError, RunNotFoundError
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.printable import printable
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.notebook.evaluation_view import EvaluationView
from kernel_foundry.sdk.notebook.run_view import RunView
from kernel_foundry.sdk.services import Targets
from tests import hostile_records

needs_pandas = pytest.mark.skipif(
    importlib.util.find_spec("pandas") is None, reason="pandas is not installed"
)
_DOCS = Path(__file__).parents[3] / "docs" / "python.md"
_SVG = "{http://www.w3.org/2000/svg}"


def _run(store: str) -> RunView:
    with connect(Targets(store=store)) as foundry:
        return foundry.run("shown")


@pytest.fixture
def hostile_run(tmp_path: Path) -> RunView:
    hostile_records.fill(tmp_path)
    with connect(Targets(store=f"sqlite:///{tmp_path / 'runs.db'}")) as foundry:
        return foundry.run()


class _Page(HTMLParser):
    """Elements and attributes of a fragment, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@needs_pandas
def test_a_data_frame_has_a_row_for_each_evaluation(store: str) -> None:
    run = _run(store)
    frame = run.to_pandas()
    assert len(frame) == len(run) == run.run.evaluation_count
    assert frame.index.name == "sequence"
    passed = frame[frame["outcome"] == "PASSED"]
    assert (passed["speedup_lower"] <= passed["speedup"]).all()
    assert (passed["speedup"] <= passed["speedup_upper"]).all()
    assert set(frame["candidate"]) == {one.candidate.digest for one in run.archived}
    assert frame["best"].iloc[-1] in frame.index


@needs_pandas
def test_a_verdict_has_a_row_for_each_workload(store: str) -> None:
    best = _run(store).best
    assert best is not None
    frame = best.to_pandas()
    result = best.evaluation.workloads[0]
    assert result.timing is not None
    assert frame.loc[result.workload, "median_ns"] == result.timing.median_ns
    assert frame.loc[result.workload, "median_lower"] == result.timing.ci95_ns[0]
    eager = next(b for b in result.baselines if b.name == "eager")
    assert frame.loc[result.workload, "eager_ns"] == eager.timing.median_ns


def test_a_run_shows_its_curve_and_its_best_verdict(store: str) -> None:
    run = _run(store)
    best = run.best
    assert best is not None
    page = _Page(run._repr_html_())
    assert "shown" in page.text
    assert best.evaluation.candidate[:8] in page.text
    assert f"{best.evaluation.speedup:.2f}×" in page.text
    curve = ET.fromstring(run.plot())
    dots, line = curve.findall(f"{_SVG}path")
    passed = [one for one in run.archived if one.evaluation.passed]
    assert 1 <= dots.attrib["d"].count("M") <= len(passed)
    assert (
        line.attrib["d"].count("H")
        == sum(best is not None for best in best_so_far(run.archived)) - 1
    )
    bars = ET.fromstring(best.plot()).findall(f"{_SVG}circle")
    timed = [w for w in best.evaluation.workloads if w.timing]
    assert len(bars) == sum(1 + len(w.baselines) for w in timed)


def test_a_verdict_is_the_text_that_evaluate_reads(store: str) -> None:
    run = _run(store)
    first = run.evaluation(1)
    assert split(first.text) == run.archived[0].candidate.source
    assert repr(first).startswith(f"<{run.archived[0].candidate.digest[:8]} ")
    with pytest.raises(InvalidArgumentError, match="no evaluation 999"):
        run.evaluation(999)


def test_an_unknown_run_is_refused(store: str) -> None:
    with connect(Targets(store=store)) as foundry, pytest.raises(RunNotFoundError):
        foundry.run("another")


def test_hostile_names_keep_a_repr_on_one_printable_line(hostile_run: RunView) -> None:
    """A store may be anybody's."""
    name = "a\n\x1b[2J\u202e" + "b" * 8
    spec = replace(hostile_run.run.spec, name=name)
    evaluation = replace(hostile_run.archived[0].evaluation, candidate=name)
    run = replace(hostile_run, run=replace(hostile_run.run, spec=spec))
    assert repr(run).startswith(r"<run a\n\x1b[2J\u202ebbbbbbbb: ")
    assert repr(EvaluationView(evaluation)).startswith(r"<a\n\x1b[2J\u202eb ")


@pytest.mark.parametrize(
    "show",
    [
        lambda run: run._repr_html_(),
        lambda run: run.best._repr_html_(),
        lambda run: run.evaluation(2)._repr_html_(),
    ],
    ids=["run", "best", "failed"],
)
def test_hostile_texts_stay_text(hostile_run: RunView, show: Callable[[RunView], str]) -> None:
    html = show(hostile_run)
    page = _Page(html)
    own = {"p", "strong", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre"}
    assert page.tags <= own | {"svg", "line", "circle", "path", "text"}
    assert not {name for name in page.attributes if name.startswith(("on", "href", "src"))}
    assert html == printable(html)
    assert "<script>alert(1)</script>" in page.text


@needs_pandas
def test_hostile_texts_in_a_frame_are_printable(hostile_run: RunView) -> None:
    frame = hostile_run.to_pandas()
    assert frame["model"].map(lambda model: model == printable(model)).all()
    assert "<script>" not in frame.to_html()


def test_without_pandas_the_extra_is_named(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run, imported = _run(store), builtins.__import__

    def absent(name: str, *args: object, **kwargs: object) -> object:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
        return imported(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(PackageMissingError, match=r"kernel-foundry\[notebook\]"):
        run.to_pandas()
    assert "<svg" in run._repr_html_()


@needs_pandas
def test_the_example_of_the_docs_runs(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = re.search(r"## In a notebook.*?```python\n(.*?)```", _DOCS.read_text(), re.S)
    assert found is not None
    monkeypatch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(found[1], names)
    assert len(names["frame"]) == len(names["run"])
    assert (tmp_path / "gain.svg").read_text().startswith("<svg")

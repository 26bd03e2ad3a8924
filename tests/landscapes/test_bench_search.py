"""`kfoundry bench search`: JSON, tables, report and plot."""

import json
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kernel_foundry.errors import PackageMissingError
from landscapes.plot import check_plots
from tests.cli.conftest import run_kfoundry

FEW = ("--seeds", "4", "--evaluations", "12", "--processes", "1")


class _Reader(HTMLParser):
    """Collects what a page loads, its drawings and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.drawing_count = 0
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [v or "" for k, v in attrs if k in ("src", "href")]
        self.drawing_count += tag == "svg"

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.slow
def test_json_is_one_object_with_every_number(tmp_path: Path, landscape_file: Path) -> None:
    page, picture = tmp_path / "out" / "report.html", tmp_path / "out" / "curves.png"
    result = run_kfoundry(
        tmp_path, "bench", "search", "--landscape", str(landscape_file), *FEW, "--json",
        "--report", str(page), "--plot", str(picture),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["target"], found["seed_count"]) == (0.95, 4)
    (landscape,) = found["landscapes"]
    assert (landscape["name"], landscape["variant_count"]) == ("separable", 48)
    assert landscape["evaluations"] == 12
    names = [s["strategy"] for s in landscape["strategies"]]
    assert names == ["gradient", "fitness", "sliding", "curiosity", "uniform", "best_of_n"]
    for strategy in landscape["strategies"]:
        assert len(strategy["curve"]["mean"]) == 12
        assert len(strategy["reached_after"]) == 4
        estimate = strategy["evaluations_mean"]
        assert estimate["low"] <= estimate["value"] <= estimate["high"]
    others = [name for name in names if name != "fitness"]
    assert [d["other"] for d in landscape["differences"]] == others
    assert [o["other"] for o in found["overall"]] == others
    assert picture.read_bytes().startswith(b"\x89PNG")
    reader = _Reader()
    reader.feed(page.read_text())
    assert not reader.loaded
    assert reader.drawing_count == 1
    assert all(name in reader.text for name in names)


@pytest.mark.slow
def test_table_names_strategies_and_several_landscapes(
    tmp_path: Path, landscape_file: Path
) -> None:
    names = ("gradient", "gradient-no-f")
    result = run_kfoundry(
        tmp_path, "bench", "search", "--landscape", str(landscape_file), str(landscape_file),
        "--strategies", ",".join(names), *FEW,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "Over 2 landscapes" in result.stdout
    assert result.stdout.count("separable: 48 variants") == 2
    assert all(name in result.stdout for name in names)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--landscape FILE"),
        (("--landscape", "missing.jsonl"), "missing.jsonl: cannot be read"),
        (("--landscape", "bad.jsonl"), "bad.jsonl, line 1"),
        (("--landscape", "bad.jsonl", "--seeds", "1"), "2<=x"),
        (("--landscape", "bad.jsonl", "--strategies", "best"), "no strategy 'best'"),
    ],
)
def test_bad_input_ends_with_code_2(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    (tmp_path / "bad.jsonl").write_text("not a landscape\n")
    result = run_kfoundry(tmp_path, "bench", "search", *arguments)
    assert result.returncode == 2, result.stderr
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_plot_without_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PackageMissingError, match=r"kernel-foundry\[plots\]"):
        check_plots()

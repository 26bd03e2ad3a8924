"""`kfoundry bench model`: an exported winner in a user's model, measured end to end."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from kernel_foundry.cli.bench_model import advice, model
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.model_bench import forms
from kernel_foundry.sdk.model_bench.bench import bench_model
from kernel_foundry.sdk.model_bench.measurement import (
    BenchResult,
    Form,
    ModelMeasurement,
    times_of,
)
from tests.export.conftest import REFERENCE

pytestmark = [pytest.mark.sycl, pytest.mark.slow]

_CLASS = REFERENCE[REFERENCE.index("class Model") : REFERENCE.index("def get_inputs")]
_NETWORK = """\
import torch
from torch import nn

print("from the program")


{layer}class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = ScaledLinear(48, 40, 2.0)
        self.second = nn.Linear(40, 48)
        self.third = ScaledLinear(48, 40, 2.0)

    def forward(self, x):
        return self.third(self.second(self.first(x)).relu())


def get_inputs():
    return [torch.randn({rows}, 48)]
"""


@pytest.fixture
def files(tmp_path: Path, text: str) -> tuple[str, str]:
    """A user's model and the exported file for a part of it."""
    exported = tmp_path / "fast_linear.py"
    exported.write_text(text, encoding="utf-8")
    return _network(tmp_path, rows=64), str(exported)


def _network(folder: Path, *, rows: int) -> str:
    path = folder / f"network_{rows}.py"
    layer = _CLASS.replace("Model", "ScaledLinear")
    path.write_text(_NETWORK.format(layer=layer, rows=rows), encoding="utf-8")
    return f"{path}:Network"


def _told(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = model.main([*words, "--json", "--device", "cpu"], standalone_mode=False)
    return code, json.loads(capfd.readouterr().out)


def test_eager_and_compiled_with_the_winner_and_without(
    files: tuple[str, str],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # torch.compile leaves the model as it is: to compile takes a minute on a busy machine, and
    # test_module.py compiles a swapped model.
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    network, exported = files
    code, told = _told(capfd, network, "--swap", exported, "--samples", "3")
    assert (code, told["problems"]) == (0, [])
    assert [form["form"] for form in told["forms"]] == ["eager", "compiled"]
    for form in told["forms"]:
        assert form["calls"] == [{"kernel": 2, "reference": 0, "reasons": []}]
        assert form["swapped_error"] < told["tolerance"]
        for times in (form["plain"], form["swapped"]):
            assert len(times["samples_ns"]) == 3
            assert 0 < times["low_ns"] <= times["median_ns"] <= times["high_ns"]
        ratio = form["plain"]["median_ns"] / form["swapped"]["median_ns"]
        assert form["speedup"] == pytest.approx(ratio)
    (swap,) = told["swaps"]
    assert swap["paths"] == ["first", "third"]
    assert 0 < swap["share"] < 1
    law = 1 / (1 - swap["share"] + swap["share"] / swap["speedup"])
    assert told["estimate"] == pytest.approx(law)


def test_a_compiled_model_may_keep_its_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.config as known

    told: list[object] = []

    def compile_model(module: nn.Module, *, options: object) -> nn.Module:
        told.append(options)
        return module

    monkeypatch.setattr(torch, "compile", compile_model)
    forms.call_of(Form.CONTIGUOUS, nn.Identity(), (torch.ones(1),))
    forms.call_of(Form.COMPILED, nn.Identity(), (torch.ones(1),))
    assert told == [{"layout_optimization": False}, None]
    assert hasattr(known, "layout_optimization")
    assert Form.CONTIGUOUS not in forms.usual_forms(torch.device("cpu"))


def test_a_compiled_model_that_is_slower_with_winners_is_told() -> None:
    def measured(**speedups: float) -> ModelMeasurement:
        found = tuple(
            BenchResult(form=Form[name], plain=times_of([speedup]), swapped=times_of([1.0]))
            for name, speedup in speedups.items()
        )
        return ModelMeasurement(device="cpu", swaps=(), forms=found, tolerance=1.0)

    assert advice(measured(EAGER=1.2, COMPILED=1.1)) == ""
    assert "--form compiled-contiguous" in advice(measured(COMPILED=0.4))
    slower = advice(measured(COMPILED=0.4, CONTIGUOUS=0.9))
    assert "without the winners" in slower
    assert "--form" not in slower
    assert "layout_optimization" in advice(measured(COMPILED=0.4, CONTIGUOUS=1.1))


def test_a_fall_back_is_a_problem(
    tmp_path: Path, files: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    network = _network(tmp_path, rows=65)
    options = ["--samples", "2", "--device", "cpu", "--form", "eager", "--swap", files[1]]
    assert model.main([network, *options], standalone_mode=False) == 1
    shown = capfd.readouterr()
    assert "0 / 2" in shown.out
    assert "fell back to the reference in 2 of 2 calls" in shown.err
    assert "rows = 65 was not judged" in shown.err


def test_outputs_that_differ_are_a_problem(
    tmp_path: Path, files: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.py"
    text = Path(files[1]).read_text()
    changed = text.replace("**{'factor': factor,", "**{'factor': factor + 1,")
    assert changed != text
    wrong.write_text(changed)
    options = ["--samples", "2", "--form", "eager", "--swap", str(wrong)]
    code, told = _told(capfd, files[0], *options)
    assert code == 1
    assert "outputs with the winners differ" in told["problems"][0]


def test_what_cannot_be_swapped_is_refused(tmp_path: Path, files: tuple[str, str]) -> None:
    network, exported = files
    other = tmp_path / "other.py"
    other.write_text("x = 1\n")
    for swap, message in [
        (str(other), "no swap"),
        (f"{exported}:Missing", "the model has no module Missing"),
        (str(tmp_path / "none.py"), "no such file"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            bench_model(network, [swap], forms=[Form.EAGER], samples=2, device="cpu")

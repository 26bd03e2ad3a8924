"""`kfoundry capture`: a table or JSON beside the program's own output."""

import json
from pathlib import Path

import pytest

from kernel_foundry.cli.capture import command

_MODEL = """\
import torch
from torch import nn

print("from the program")


class Scale(nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.rand(8, 16)]
"""


def test_a_table_or_json_beside_the_programs_output(
    tmp_path: Path, served: str, capfd: pytest.CaptureFixture[str]
) -> None:
    program, out = tmp_path / "scale.py", tmp_path / "out"
    program.write_text(_MODEL)
    options = ["--evaluator", served, "--out", str(out), "--calls", "3", "--device", "cpu"]
    assert command.main([*options, f"{program}:Scale"], standalone_mode=False) == 0
    shown = capfd.readouterr()
    assert shown.out == "from the program\n"
    assert "Scale()" in shown.err
    assert f"optimize {out / 'scale.py'}" in shown.err
    assert (out / "scale.py").is_file()

    asked = [*options, "--json", "--tasks", "0", f"{program}:Scale"]
    assert command.main(asked, standalone_mode=False) == 0
    told = capfd.readouterr()
    assert "from the program" in told.err
    (module,) = json.loads(told.out)["modules"]
    assert (module["share"], module["file"]) == (1.0, "")
    assert module["gain"] == pytest.approx(1 - module["bound_ns"] / module["total_ns"])

    assert command.main([*options, str(program)], standalone_mode=False) == 0
    assert "no module with at most ten others inside was called" in capfd.readouterr().err

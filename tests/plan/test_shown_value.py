"""Values of other people's files in an error's text, and the readers of their YAML and JSON."""

from pathlib import Path
from typing import Any

import pytest

from kernel_foundry.bounded_json import parse_json
from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.plain_yaml import PlainYamlError, read_yaml
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.task_file import read_task
from kernel_foundry.shown_value import shown

REFERENCE = """\
n = 8


class Model: ...


def get_inputs(): ...
"""


def _laughs() -> Any:
    value: Any = "ha"
    for _ in range(60):
        value = [value] * 10
    return value


@pytest.mark.parametrize(
    "value",
    [_laughs(), 10**5000, "x" * 10**6, {n: n for n in range(1000)}, [[[[]]]], {"a": _laughs()}],
    ids=["aliases", "digits", "text", "keys", "depth", "within"],
)
def test_values_are_cut_short(value: Any) -> None:
    """Their whole text would take years, or cannot be made at all."""
    assert len(shown(value)) <= 80


def test_small_values_are_shown_as_they_are() -> None:
    for value in (1, -1.5, "a", None, [1, 2], {"a": 1}, True):
        assert shown(value) == repr(value)


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [1]\nb: *a\n",
        "a: &a {x: 1}\nb: &b {<<: [*a, *a]}\n",
        "[" * 1000 + "]" * 1000,
        "- " * 1000 + "1",
        "a: " + "9" * 5000,
        "a: 2026-99-99",
        "a: " + "x" * 200_000,
        "a: [",
        "*a",
        "tf32: true\ntf32: false\n",
        'tf32: true\n"tf32": false\n',
        "a: [{b: 1, b: 1}]",
        "rows: 01000",
        "rows: 8:32",
        "rows: 0b11",
        "atol: 8:32.5",
        "<<: {a: 1}\nb: 2\n",
        "on: 1",
        "8: 1",
        "[a, b]: 1",
    ],
)
def test_yaml_beyond_the_limits_is_refused(text: str) -> None:
    with pytest.raises(PlainYamlError) as refused:
        read_yaml(text)
    assert len(str(refused.value)) < 1000


def test_yaml_within_them_is_read() -> None:
    text = (
        "workloads:\n  - {n: 16}\n  - {n: 32, held_out: true}\ntolerance: {rtol: 1e-4, atol: 0}\n"
    )
    assert read_yaml(text)["workloads"] == [{"n": 16}, {"n": 32, "held_out": True}]
    assert read_yaml("") is None


@pytest.mark.parametrize(
    "sidecar",
    [
        "x: &a [1]\ntolerance: *a\n",
        f"tolerance: {{rtol: {'9' * 400}, atol: 0}}\n",
        f"tolerance: {{rtol: {'9' * 5000}, atol: 0}}\n",
        f"{'k' * 5000}: 1\n",
        f"workloads: [{{n: {'7' * 3000}}}]\n",
        f"workloads: [{{{'m' * 3000}: 1}}]\n",
        f"workloads: [{'{},' * 3000}]\n",
        "library_ops: [[linear]]\n",
        "library_ops: [{linear: 1}]\n",
        "precision: [fp32]\n",
        f"least_bits: {'8' * 4000}\n",
        f"instructions: {'[' * 200}\n",
    ],
)
def test_sidecars_are_refused_in_a_few_words(sidecar: str, tmp_path: Path) -> None:
    path = tmp_path / "t.py"
    path.write_text(REFERENCE)
    (tmp_path / "t.task.yaml").write_text(sidecar)
    with pytest.raises(TaskInvalidError) as refused:
        read_task(path)
    assert len(refused.value.message) < 800
    assert all(len(value) < 500 for value in refused.value.metadata.values())


def test_a_task_has_a_name_that_a_line_holds(tmp_path: Path) -> None:
    path = tmp_path / f"a{' ' * 60}PASSED.py"
    path.write_text(REFERENCE)
    with pytest.raises(TaskInvalidError, match=r"runs of blanks.*rename the file"):
        read_task(path)


def test_a_line_has_no_runs_of_blanks() -> None:
    """A terminal would break it where they end."""
    for blank in (" ", "\t", "\xa0", "\u3000", "\u2800"):
        assert one_line(f"a{blank * 100}PASSED") == "a  PASSED"
    assert one_line("a  b") == "a  b"


@pytest.mark.parametrize("text", [b"[" + b"[],[]," * 1000 + b"1]", b"{" * 1000, b"[1, 2"])
def test_json_beyond_the_limits_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"values|JSON|char"):
        parse_json(text, most_values=1000)


def test_json_of_any_depth_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(b"[" * 100_000)

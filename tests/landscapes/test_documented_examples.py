"""The examples of docs/landscapes.md hold."""

import re
from pathlib import Path

import pytest

from landscapes.landscape_file import read_landscape

DOCUMENT = (Path(__file__).parents[2] / "docs" / "landscapes.md").read_text()


def block(language: str, start: str) -> str:
    """Return the fenced block of a language that begins with `start`."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    (found,) = [b for b in blocks if b.startswith(start)]
    return str(found)


def test_documented_file_is_a_landscape(tmp_path: Path) -> None:
    path = tmp_path / "gemm.jsonl"
    path.write_text(block("", '{"landscape"'))
    landscape = read_landscape(path)
    assert landscape.name == "gemm-2048"
    assert [v.outcome.name for v in landscape.variants] == ["PASSED", "PASSED", "LAUNCH_ERROR"]


def test_documented_program_writes_a_landscape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python", "from pathlib"), "docs/landscapes.md", "exec"), {})
    assert len(read_landscape(tmp_path / "mine.jsonl.gz").variants) == 3

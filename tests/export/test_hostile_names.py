"""Names of a run that somebody else made end as words in every form, never as code."""

import ast
import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernel_foundry.cli import export as export_command
from kernel_foundry.domain.name import check_name, file_stem
from kernel_foundry.sdk.export.c_text import c_comment, c_string
from kernel_foundry.sdk.export.targets import TARGETS
from kernel_foundry.sdk.export.winner import Winner
from tests.export.unjudged import unjudged_winner

HOSTILE = "*\\ */ EVIL();\"'\"\"\"'''{EVIL}@EVIL@${EVIL}#]=\\"
"""Passes for a name: one line that shows."""
_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', re.DOTALL)


@pytest.fixture(scope="module")
def winner() -> Winner:
    check_name(HOSTILE, "name")
    plain = unjudged_winner()
    task = replace(plain.record.task, name=HOSTILE)
    device = replace(plain.admission.device, name=HOSTILE, architecture=HOSTILE)
    return replace(
        plain,
        record=replace(plain.record, task=task),
        admission=replace(plain.admission, device=device),
    )


@pytest.mark.parametrize("target", TARGETS)
def test_no_name_becomes_code(winner: Winner, target: str) -> None:
    form = TARGETS[target]
    text = form.source([winner], "fast")
    files = {"fast.py": text}
    if form.folder is not None:
        files |= form.folder(text, [winner], module="fast", problem=HOSTILE)
    one_word = HOSTILE.replace(" ", "")  # as GPU MODE takes it
    packed = form.packed(text, winner, module="fast", problem=one_word)
    if packed.startswith(("{", "[")):
        json.loads(packed)
    for name, written in files.items():
        _check(name, written)


def _check(name: str, text: str) -> None:
    match Path(name).suffix:
        case ".py":
            for node in ast.walk(ast.parse(text)):
                names = [getattr(node, field, "") for field in ("id", "attr", "arg", "name")]
                assert not any("EVIL" in str(found) for found in names), (name, names)
        case ".toml":
            tomllib.loads(text)
        case ".h" | ".cpp":
            assert "EVIL" not in _NO_CODE.sub(" ", text), name
        case ".json":
            json.loads(text)
        case ".txt":
            assert "EVIL" not in text, name


def test_a_comment_has_one_end() -> None:
    """Whatever a name does to make another one."""
    for text in ("*/", "*\\", "*\\\n/", "**//", "*\\/", "\\*\\/", "*??/\n/", "*??\\\n/"):
        written = c_comment(text).replace("??/", "\\").replace("\\\n", "")  # as a compiler does
        assert "*/" not in written, text
    assert c_string('\\"\n??/') == '"\\134\\042\\012\\077\\077/"'


@pytest.mark.parametrize("name", ["../../evil", "/evil", "a/b", "..", "x\\y", "a b.c"])
def test_a_file_is_called_by_the_letters_of_a_name(name: str) -> None:
    stem = file_stem(name)
    assert Path(f"fast_{stem}").name == f"fast_{stem}"
    assert f"fast_{stem}".isidentifier()


def test_a_usual_name_that_is_a_link_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever made the folder may have put it there."""
    monkeypatch.chdir(tmp_path)
    outside = tmp_path / "outside"
    (tmp_path / "fast_blend.py").symlink_to(outside)
    monkeypatch.setattr(export_command, "open_foundry", _Store)
    result = CliRunner().invoke(export_command.command, [], standalone_mode=False)
    assert "is a link" in str(result.exception)
    assert not outside.exists()


class _Store:
    """A store whose newest run is of the task `blend`."""

    def __init__(self, **_targets: str) -> None:
        pass

    def __enter__(self) -> "_Store":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask_archive(self, _question: object) -> object:
        run = type("Run", (), {})()
        task = unjudged_winner().record.task
        run.spec = type("Spec", (), {"name": "newest", "task": task})()
        return run, run

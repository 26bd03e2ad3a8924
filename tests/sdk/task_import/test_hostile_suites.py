"""Files of a suite that mean harm are refused, one by one, and nothing of them runs."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.task_import.entry import ImportEntry, NotRepresentableError, file_names
from kernel_foundry.sdk.task_import.suite_files import LONGEST_SOURCE, SuiteFiles
from kernel_foundry.sdk.task_import.writing import import_suite
from tests.sdk.task_import.suite_folder import TASK, imported, reasons, write_files


def test_links_and_pipes_are_refused(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "suite", {"level1/1_a.py": TASK})
    secret = tmp_path / "secret.py"
    secret.write_text(TASK)
    (folder / "level1/2_link.py").symlink_to(secret)
    (folder / "level1/3_inside.py").symlink_to("1_a.py")
    os.mkfifo(folder / "level1/4_pipe.py")
    (folder / "level2").symlink_to(tmp_path)
    suite = import_suite(folder, tmp_path / "out")
    assert [done.source for done in suite.imported] == ["level1/1_a.py"]
    found = reasons(suite)
    assert "link" in found["level1/2_link.py"]
    assert "link" in found["level1/3_inside.py"]
    assert "no plain file" in found["level1/4_pipe.py"]


def test_nothing_of_a_suite_is_executed(tmp_path: Path) -> None:
    harm = tmp_path / "harm"
    imported(tmp_path, {"a.py": TASK + f"\nopen({str(harm)!r}, 'w')\n"})
    assert not harm.exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#" * (LONGEST_SOURCE + 1), "larger than"),
        ("(" * 1000, ""),
        ("x = " + "-" * 50_000 + "1", ""),
        ("x = 1" + "+1" * 50_000, ""),
        ("x\0", ""),
    ],
)
def test_giant_and_deep_sources_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    suite = imported(tmp_path, {"level1/1_a.py": text, "level1/2_b.py": TASK})
    assert len(suite.imported) == 1
    assert reason in reasons(suite)["level1/1_a.py"]


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "suite", {"b.py": TASK})
    (folder / "a.py").write_bytes(b"\xff\xfe")
    assert "UTF-8" in reasons(import_suite(folder, tmp_path / "out"))["a.py"]


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"ref_code": ' + "9" * 10_000 + "}",
        '{"ref_code": NaN}',
        '{"ref_code": "\\ud800"}',
        "[" + "1," * 300_000 + "1]",
        '"' + "x" * (1 << 21) + '"',
    ],
    ids=["deep", "number", "nan", "surrogate", "values", "long"],
)
def test_hostile_lines_are_refused(tmp_path: Path, line: str) -> None:
    good = json.dumps({"level_id": 1, "task_id": 1, "ref_code": TASK})
    suite = imported(tmp_path, {"a.jsonl": f"{good}\n{line}\n"})
    assert len(suite.imported) == 1
    assert len(reasons(suite)["a.jsonl, line 2"]) < 1000


def test_names_of_a_suite_stay_in_the_folder(tmp_path: Path) -> None:
    records = [
        {"level_id": "../../x", "task_id": "/etc", "ref_code": TASK},
        {"level_id": "a" * 500, "task_id": "\u202e\n", "ref_code": TASK},
        {"level_id": 10**4000, "task_id": 1, "ref_code": TASK},
    ]
    suite = imported(tmp_path, {"a.jsonl": "\n".join(map(json.dumps, records))})
    assert len(suite.imported) == 3
    assert {path.parent for path in tmp_path.rglob("*.py")} == {tmp_path / "out"}


@pytest.mark.parametrize("other", ["../x.py", "/etc/passwd", "a/../../x", "..", "a\0"])
def test_paths_that_leave_the_folder_are_refused(tmp_path: Path, other: str) -> None:
    files = SuiteFiles(tmp_path)
    with pytest.raises(NotRepresentableError, match="outside"):
        files.beside("task.yml", other)
    with pytest.raises(NotRepresentableError, match="outside"):
        files.text(other)


def test_folders_without_end_are_refused(tmp_path: Path) -> None:
    (tmp_path / "/".join("d" * 13)).mkdir(parents=True)
    with pytest.raises(InvalidArgumentError, match="12 deep"):
        import_suite(tmp_path, tmp_path / "out")


@given(st.lists(st.text(max_size=100), min_size=1, max_size=8))
def test_file_names_are_safe_and_differ(names: list[str]) -> None:
    entries = [ImportEntry(source=f"line {i}", name=name) for i, name in enumerate(names)]
    made = file_names(entries)
    assert len({name.lower() for name in made}) == len(names)
    assert all(name.isascii() and name.replace("_", "a").isalnum() for name in made)
    assert all(len(name) <= 80 for name in made)
    backwards = file_names(entries[::-1])
    assert backwards[::-1] == made

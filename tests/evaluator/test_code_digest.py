"""Keys of what code has computed change with that code."""

from pathlib import Path

import pytest

from evaluator_svc.cache.code_digest import code_digest


@pytest.mark.parametrize(
    ("name", "text", "is_other"),
    [
        pytest.param("judge/admit.py", "FOUND = 2\n", True, id="changed"),
        pytest.param("judge/trial.py", "", True, id="added"),
        pytest.param("judge/admit.pyc", "2", False, id="compiled"),
    ],
)
def test_a_digest_tells_one_state_of_code_from_another(
    tmp_path: Path, name: str, text: str, is_other: bool
) -> None:
    folders = [tmp_path / "judge", tmp_path / "sizes"]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "admit.py").write_text("FOUND = 1\n")
    before = code_digest(*folders)
    (tmp_path / name).write_text(text)
    assert (code_digest(*folders) != before) is is_other


def test_a_file_that_moves_is_other_code(tmp_path: Path) -> None:
    (tmp_path / "admit.py").write_text("FOUND = 1\n")
    before = code_digest(tmp_path)
    (tmp_path / "admit.py").rename(tmp_path / "trial.py")
    assert code_digest(tmp_path) != before

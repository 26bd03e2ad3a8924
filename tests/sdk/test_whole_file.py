"""Files that are written whole or not at all."""

import stat
from pathlib import Path

import pytest

from kernel_foundry.whole_file import create_private_file, replace_file


@pytest.mark.parametrize("durable", [True, False])
def test_a_link_under_the_name_is_replaced_and_its_target_kept(
    tmp_path: Path, durable: bool
) -> None:
    target, path = tmp_path / "target", tmp_path / "file"
    target.write_text("kept")
    path.symlink_to(target)

    replace_file(path, "größe", mode=0o600, durable=durable)

    assert not path.is_symlink()
    assert path.read_bytes() == "größe".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert target.read_text() == "kept"


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()

    with pytest.raises(OSError, match="folder"):
        replace_file(path, b"content")

    assert list(tmp_path.iterdir()) == [path]


def test_a_private_file_is_created_once(tmp_path: Path) -> None:
    path = tmp_path / "key"

    create_private_file(path, b"first")
    create_private_file(path, b"second")

    assert path.read_bytes() == b"first"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]

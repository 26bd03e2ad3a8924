"""Files that a user names, read no further than they may be long."""

from pathlib import Path

import pytest

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.lesson_file import read_lines
from kernel_foundry.text_file import read_text_file


def test_a_text_as_long_as_allowed_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("größe", encoding="utf-8")

    assert read_text_file(path, 5) == "größe"


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"123456", "more than 5 characters"), (b"\xff", "not UTF-8"), (None, "No such file")],
)
def test_what_is_no_such_text_is_refused(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    path = tmp_path / "text"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(InvalidArgumentError, match=problem):
        read_text_file(path, 5)


def test_a_file_without_an_end_is_read_no_further_than_its_bound() -> None:
    endless = Path("/dev/zero")

    with pytest.raises(InvalidArgumentError, match="more than 1000"):
        read_text_file(endless, 1000)
    with pytest.raises(InvalidArgumentError, match="a line of more than"):
        tuple(read_lines(endless))

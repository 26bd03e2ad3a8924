"""Gzipped files end where they hold more than their size lets expect."""

import gzip
from pathlib import Path

import pytest

from archive_svc.run import bounded_gzip
from archive_svc.run.bounded_gzip import BoundedGzip, ExpansionError
from archive_svc.run.run_file import import_run
from kernel_foundry.errors import CorruptArchiveError, InvalidArgumentError
from landscapes import landscape_file
from landscapes.landscape_file import read_landscape

FREE = 1 << 16


@pytest.fixture
def bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of eight kilobytes that holds eight megabytes."""
    monkeypatch.setattr(bounded_gzip, "_FREE_BYTES", FREE)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"{}\n" + b" " * (8 << 20)))
    return path


def test_what_is_in_proportion_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(b"one\n" + bytes(FREE)))
    with gzip.open(path) as file:
        held = BoundedGzip(file, path.stat().st_size)
        assert held.readline(100) == b"one\n"
        assert held.read() == bytes(FREE)
        assert held.read(1) == b""


def test_the_total_of_all_lines_is_bounded(bomb: Path) -> None:
    lines = gzip.compress(b"line\n" * (1 << 20))
    bomb.write_bytes(lines)
    with gzip.open(bomb) as file:
        held = BoundedGzip(file, len(lines))
        within = (FREE + 100 * len(lines)) // len(b"line\n")
        assert all(held.readline(1 << 20) == b"line\n" for _ in range(within))
        with pytest.raises(ExpansionError, match="100 times its size"):
            held.read()


def test_an_import_ends_there(bomb: Path, tmp_path: Path) -> None:
    with pytest.raises(CorruptArchiveError, match=r"not a run file|100 times its size"):
        import_run(f"sqlite:///{tmp_path / 'runs.db'}", bomb)
    bomb.write_bytes(gzip.compress(b" " * (8 << 20)))
    with pytest.raises(CorruptArchiveError, match="100 times its size"):
        import_run(f"sqlite:///{tmp_path / 'runs.db'}", bomb)


def test_a_line_of_many_values_is_refused(tmp_path: Path) -> None:
    """Three bytes are a list: a line of megabytes would take gigabytes."""
    path = tmp_path / "run.gz"
    path.write_bytes(gzip.compress(b"[" + b"[]," * (1 << 22) + b"1]\n", 1))
    with pytest.raises(CorruptArchiveError, match="expected at most"):
        import_run(f"sqlite:///{tmp_path / 'runs.db'}", path)


@pytest.mark.parametrize("limit", ["_MOST_BYTES", "_MOST_VALUES"])
@pytest.mark.parametrize("is_packed", [True, False])
def test_a_landscape_ends_there(
    limit: str, *, is_packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landscape_file, limit, 10_000)
    data = b"[" * 20_000
    path = tmp_path / "landscape.jsonl"
    path.write_bytes(gzip.compress(data) if is_packed else data)
    with pytest.raises(InvalidArgumentError, match="larger than a landscape is"):
        read_landscape(path)

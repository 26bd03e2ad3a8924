"""One evaluator for all commands under test that need no other: its judge starts once."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import serving_evaluator


@pytest.fixture(scope="session")
def served(cache_dir: Path) -> Iterator[str]:
    """Address of an evaluator of the null device in a process of its own.

    The name of a UNIX socket is limited to about a hundred characters, which tmp_path may exceed.
    """
    with (
        tempfile.TemporaryDirectory(prefix="kf-") as name,
        serving_evaluator(f"unix:{name}/evaluator.sock", Path(name)) as address,
    ):
        yield address

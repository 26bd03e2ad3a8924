"""One evaluator for all commands under test that need no other: its judge starts once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import served_folder


@pytest.fixture(scope="session")
def served(cache_dir: Path) -> Iterator[str]:
    """Address of an evaluator of the null device in a process of its own."""
    with served_folder() as (_, address):
        yield address

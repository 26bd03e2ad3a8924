"""Hardware probes and stores: what is absent is skipped with the loader's own words.

`--require-sycl` and `--require-gpu` turn those skips into failures, for machines that must
have it.
"""

import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.archive.postgres import PostgresServer, absence

pytest_plugins = ["tests.llm_server.fixtures"]

_PROBE = """
import sys
import kernel_foundry_native as native
try:
    count = native.device_kind(sys.argv[1]).device_count()
except native.DriverUnavailableError as error:
    print(error)
else:
    print("" if count else f"{sys.argv[1]}: no device")
"""
# In a process of its own: drivers start threads and are not to be loaded where pytest forks.

_DEVICE_KIND = {"sycl": "sycl", "gpu": "cuda"}
"""Native device kind that each marker needs."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add one `--require-…` for each marker."""
    for marker in _DEVICE_KIND:
        parser.addoption(
            f"--require-{marker}",
            action="store_true",
            help=f"fail, not skip, tests marked {marker} when the device is absent",
        )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers."""
    config.addinivalue_line("markers", "sycl: needs the native SYCL module and a SYCL device")
    config.addinivalue_line("markers", "gpu: needs the native CUDA module and a CUDA device")


@cache
def _absence(kind: str) -> str:
    """Return why the device kind cannot be used; empty when it can."""
    result = subprocess.run(
        [sys.executable, "-c", _PROBE, kind], capture_output=True, text=True, check=False
    )
    lines = (result.stdout if result.returncode == 0 else result.stderr).strip().splitlines()
    return lines[-1] if lines else ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs an absent device, before any fixture opens it."""
    for marker, kind in _DEVICE_KIND.items():
        if item.get_closest_marker(marker) is None:
            continue
        reason = _absence(kind)
        if reason and item.config.getoption(f"--require-{marker}"):
            pytest.fail(f"{marker} is required: {reason}")
        if reason:
            pytest.skip(reason)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running PostgreSQL server, the same for all tests."""
    reason = absence()
    if reason:
        pytest.skip(reason)
    with PostgresServer() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty store, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'runs.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.new_database()

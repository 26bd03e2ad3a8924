"""Hardware probes: a test for absent hardware is skipped with the loader's own words.

`--require-sycl` and `--require-gpu` turn those skips into failures, for machines that must
have it.
"""

from functools import cache

import pytest

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
    try:
        import kernel_foundry_native  # noqa: PLC0415 - its absence is what is probed
    except ImportError as error:
        return str(error)
    try:
        count = kernel_foundry_native.device_kind(kind).device_count()
    except kernel_foundry_native.DriverUnavailableError as error:
        return str(error)
    return "" if count else f"{kind}: no device"


@pytest.fixture(autouse=True)
def _needed_device(request: pytest.FixtureRequest) -> None:
    for marker, kind in _DEVICE_KIND.items():
        if request.node.get_closest_marker(marker) is None:
            continue
        reason = _absence(kind)
        if reason and request.config.getoption(f"--require-{marker}"):
            pytest.fail(f"{marker} is required: {reason}")
        if reason:
            pytest.skip(reason)

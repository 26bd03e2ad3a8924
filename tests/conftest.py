"""Hardware probes, stores, and what tests that run side by side share.

What is absent is skipped with the loader's own words; `--require-sycl` and `--require-gpu` turn
those skips into failures, for machines that must have it.
"""

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import kernel_foundry_native as native
from archive_svc.archive import LocalArchive
from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.exported_form.start import trial_template
from evaluator_svc.processes.judge_starter import JudgeStarter
from tests import ray_ingress
from tests.archive.postgres import PostgresServer, absence
from tests.quick_settings import quick_settings
from tests.turns import Turns

pytest_plugins = ["tests.llm_server.fixtures", "tests.cli.served", "tests.native.fake_cuda_build"]

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
    for marker in _DEVICE_KIND:
        parser.addoption(
            f"--require-{marker}",
            action="store_true",
            help=f"fail, not skip, tests marked {marker} when the device is absent",
        )


# The same examples in every run, and none of them too slow on a busy machine; tests/fuzz explores.
settings.register_profile(
    "tests", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")

_TURNS = Turns()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage meanwhile, and look at modules and tests no more: they stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let tests on a GPU wait for those beside them; no time limit runs meanwhile."""
    on_gpu = item.get_closest_marker("gpu") is not None and not _absence("cuda")
    with _TURNS.turn(alone=on_gpu):
        return (yield)


@cache
def _absence(kind: str) -> str:
    """Return why the device kind cannot be used; empty when it can."""
    result = subprocess.run(
        [sys.executable, "-c", _PROBE, kind], capture_output=True, text=True, check=False
    )
    lines = (result.stdout if result.returncode == 0 else result.stderr).strip().splitlines()
    return lines[-1] if lines else ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs an absent device, or Ray, before any fixture opens it."""
    if item.get_closest_marker("ray") is not None and (reason := ray_ingress.absence()):
        pytest.skip(reason)
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


@pytest.fixture(scope="session")
def ray_address(cache_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An ingress of Ray Serve with the application "null", the same for all tests."""
    with ray_ingress.ingress(tmp_path_factory.mktemp("ray")) as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty store, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'runs.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.new_store()


@pytest.fixture
async def archive(tmp_path: Path) -> AsyncIterator[LocalArchive]:
    """An archive without a run, in a store of its own."""
    opened = LocalArchive(f"sqlite:///{tmp_path / 'runs.db'}")
    yield opened
    await opened.close()


@pytest.fixture(scope="module")
def hopper_compiler() -> Iterator[Any]:
    """A compiler for Hopper; NVRTC needs neither device nor driver."""
    try:
        opened = native.device_kind("cuda").open_compiler(architecture="sm_90")
    except native.NativeError as error:
        pytest.skip(str(error))
    yield opened
    opened.release()


@pytest.fixture(scope="session")
def shared_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the whole session, the same for all of its processes."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session", autouse=True)
def cache_dir(shared_dir: Path) -> Iterator[Path]:
    """Peaks, admissions and objects of all evaluators under test: each is made once.

    Processes find it and a data folder in their environment; nothing of the user's is touched.
    """
    folder = shared_dir / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNEL_FOUNDRY_CACHE_DIR", str(folder))
        # Also for those with a cache of their own: a baseline's header takes the compiler seconds.
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / "inductor"))
        patch.setenv("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")  # as judges have it
        patch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(shared_dir / "data"))
        # Few tests are about true times, and those have a judge or an evaluator of their own.
        patch.setenv("KERNEL_FOUNDRY_BASELINES", "cuda_graph")
        patch.setenv("KERNEL_FOUNDRY_BASELINE_SECONDS", "0.02")
        patch.setenv("KERNEL_FOUNDRY_WARM_SECONDS", "0.02")
        # Twice as much is written once for each measurement, and read before every timed call.
        patch.setenv("KERNEL_FOUNDRY_HOST_CACHE_BYTES", str(8 << 20))
        # Caches are shared by those who have the same key.
        patch.setenv("KERNEL_FOUNDRY_KEY_FILE", str(shared_dir / "evaluator.key"))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def templates(cache_dir: Path) -> Iterator[None]:
    """Keep what judges and trials of exported files are forked from; each starts with the first."""
    judges, trials = JudgeStarter(quick_settings()), trial_template(quick_settings())
    yield
    judges.close()
    trials.close()


@pytest.fixture(scope="session")
def local_evaluator(cache_dir: Path, shared_dir: Path) -> Iterator[Callable[[str], LocalEvaluator]]:
    """Return the evaluator of a device kind that all tests share: judges take seconds to start.

    That of "" has no device and only builds. Tests that end processes make one of their own.
    """
    evaluators: dict[str, LocalEvaluator] = {}

    def of(kind: str) -> LocalEvaluator:
        if kind not in evaluators:
            settings = quick_settings(
                device_kinds=(kind,) if kind else (),
                unsafe_no_sandbox=kind == "null",  # what is tested there needs no cage
            )
            evaluators[kind] = LocalEvaluator(settings)
            # Peaks are measured once, and what they say holds for every verdict after it.
            measured = shared_dir / f"measured-{kind}"
            turn = nullcontext() if measured.exists() or not kind else _TURNS.alone()
            with turn, ThreadPoolExecutor(1) as threads:
                threads.submit(lambda: asyncio.run(evaluators[kind].capabilities())).result()
            measured.touch()
        return evaluators[kind]

    yield of
    for evaluator in evaluators.values():
        asyncio.run(evaluator.close())

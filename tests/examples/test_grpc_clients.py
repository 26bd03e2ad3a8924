"""The client of docs/grpc.md against a real server, with stubs made from the protos alone."""

import asyncio
import os
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_foundry.rpc.readiness import wait_until_serving
from tests.cli.conftest import CANDIDATE, TASK, environment_of

CLIENTS = Path("examples/grpc")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, for a socket."""
    with tempfile.TemporaryDirectory(prefix="kf-") as name:
        folder = Path(name)
        (folder / "relu.py").write_text(TASK)
        (folder / "relu.md").write_text(CANDIDATE)
        yield folder


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    """An evaluator on the null device."""
    target = f"unix:{folder}/s"
    with subprocess.Popen(
        [sys.executable, "-m", "evaluator_svc", "--listen", target, "--end-with-input"],
        stdin=subprocess.PIPE,
        env=environment_of(folder),
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            asyncio.run(wait_until_serving(target, timeout_s=60))
            yield target
        finally:
            process.terminate()


@pytest.mark.slow
def test_python_client_needs_the_protos_alone(folder: Path, address: str) -> None:
    stubs = folder / "stubs"
    stubs.mkdir()
    protos = [str(path) for path in Path("protos").rglob("*.proto")]
    options = ("-I", "protos", f"--python_out={stubs}", f"--grpc_python_out={stubs}")
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *options, *protos], check=True)
    # Without `site` no editable install is seen: what is found of ours are the stubs.
    paths = (str(stubs), *site.getsitepackages())
    done = subprocess.run(
        [sys.executable, "-S", (CLIENTS / "client.py").absolute(), address, "relu.py", "relu.md"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    outcome, speedup, speedup_eager = done.stdout.split()
    assert outcome == "EVALUATION_OUTCOME_PASSED", done.stderr
    assert float(speedup) > 0
    assert float(speedup_eager) > 0


@pytest.mark.parametrize("name", ["client.py", "client.mjs"])
def test_page_shows_the_clients(name: str) -> None:
    assert (CLIENTS / name).read_text() in Path("docs/grpc.md").read_text()

"""The client of docs/grpc.md against a real server, with stubs made from the protos alone."""

import asyncio
import json
import os
import site
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kernel_foundry.rpc.readiness import wait_until_serving
from tests.cli.conftest import CANDIDATE, TASK, environment_of, run_kfoundry

CLIENTS = Path("examples/grpc")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "relu.py").write_text(TASK)
    (tmp_path / "relu.md").write_text(CANDIDATE)
    return tmp_path


@pytest.mark.slow
def test_python_client_needs_the_protos_alone(folder: Path, served: str) -> None:
    stubs = folder / "stubs"
    stubs.mkdir()
    protos = [str(path) for path in Path("protos").rglob("*.proto")]
    options = ("-I", "protos", f"--python_out={stubs}", f"--grpc_python_out={stubs}")
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *options, *protos], check=True)
    # Without `site` no editable install is seen: what is found of ours are the stubs.
    paths = (str(stubs), *site.getsitepackages())
    done = subprocess.run(
        [sys.executable, "-S", (CLIENTS / "client.py").absolute(), served, "relu.py", "relu.md"],
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


@pytest.mark.slow
def test_loop_over_the_three_services(folder: Path) -> None:
    """Every step of a run; on the null device what recipes write is wrong, and recorded as such."""
    with tempfile.TemporaryDirectory(prefix="kf-") as name:
        sockets = [f"unix:{name}/{s}.sock" for s in ("evaluator", "archive", "generator")]
        command = (sys.executable, "-m", "kernel_foundry.cli", "serve", "all")
        with subprocess.Popen(
            [*command, "--listen", f"unix:{name}"],
            env=environment_of(folder),
            stderr=subprocess.DEVNULL,
        ) as services:
            try:
                for address in sockets:
                    asyncio.run(wait_until_serving(address, timeout_s=280))
                loop = (CLIENTS / "loop.py").absolute()
                done = subprocess.run(
                    [sys.executable, loop, "mine", "relu.py", "2", *sockets],
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    check=False,
                )
            finally:
                services.terminate()
    assert done.returncode == 0, done.stderr
    numbers = [line.split()[0] for line in done.stdout.splitlines()[:2]]
    assert numbers == ["1", "2"]
    shown = run_kfoundry(folder, "runs", "list", "--json")
    assert [run["state"] for run in json.loads(shown.stdout)] == ["finished"]


@pytest.mark.parametrize("name", ["client.py", "client.mjs", "loop.py"])
def test_page_shows_the_clients(name: str) -> None:
    assert (CLIENTS / name).read_text() in Path("docs/grpc.md").read_text()

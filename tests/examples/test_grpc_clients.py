"""The client of docs/grpc.md against a real server, with stubs made from the protos alone."""

import os
import site
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import CANDIDATE, TASK

CLIENTS = Path("examples/grpc")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A task and a candidate."""
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


@pytest.mark.parametrize("name", ["client.py", "client.mjs"])
def test_page_shows_the_clients(name: str) -> None:
    assert (CLIENTS / name).read_text() in Path("docs/grpc.md").read_text()

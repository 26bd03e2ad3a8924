"""SIGKILL at random moments: the run goes on, nothing archived is lost, nothing is judged twice."""

import asyncio
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.rpc.readiness import wait_until_serving

TASK = """\
import torch
from torch import nn

rows = 4
cols = 32


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
"""

KILLS = 6

_ARCHIVED = re.compile(r"^\[\d+\] \w+ (?P<digest>[0-9a-f]{8}) ")


class _System:
    """The three services and the command line, each a process that may be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "KERNEL_FOUNDRY_DATA_DIR": str(folder / "data"),
            "KERNEL_FOUNDRY_DEVICE_KINDS": "null",
        }
        self.store = f"sqlite:///{folder / 'runs.db'}"
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.acknowledged: list[str] = []
        self.is_started = False

    def target(self, service: str) -> str:
        return f"unix:{self.folder / service}.sock"

    def start(self, service: str) -> None:
        options = ["--store", self.store] if service == "archive" else []
        self.processes[service] = subprocess.Popen(
            [sys.executable, "-m", f"{service}_svc", "--listen", self.target(service), *options],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        asyncio.run(wait_until_serving(self.target(service), timeout_s=280))

    def optimize(self) -> None:
        what = ["--resume"] if self.is_started else [str(self.folder / "task.py")]
        targets = [
            part
            for service in ("evaluator", "archive", "generator")
            for part in (f"--{service}", self.target(service))
        ]
        self.processes["cli"] = subprocess.Popen(
            [
                *(sys.executable, "-m", "kernel_foundry.cli", "optimize", *what),
                *("--run", "killed", "--evaluations", "100000", *targets),
                *(() if self.is_started else ("--device", "null:0", "--model", "recipes")),
            ],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.is_started = True

    def read_archived(self, count: int) -> bool:
        """Read until `count` more evaluations were archived; False when the command ended first."""
        errors = self.processes["cli"].stderr
        assert errors is not None
        while count:
            line = errors.readline()
            if not line:
                return False
            match = _ARCHIVED.match(line)
            if match:
                self.acknowledged.append(match["digest"])
                count -= 1
        return True

    def kill(self, name: str) -> None:
        process = self.processes[name]
        process.send_signal(signal.SIGKILL)
        process.wait()
        if name == "cli":
            self.read_archived(1 << 30)  # what it had said before it died
            self.close_pipe()

    def close_pipe(self) -> None:
        errors = self.processes["cli"].stderr
        if errors is not None:
            errors.close()


@pytest.fixture
def system() -> Iterator[_System]:
    # A short path: the name of a UNIX socket is limited to about a hundred characters.
    folder = Path(tempfile.mkdtemp(prefix="kf-"))
    (folder / "task.py").write_text(TASK)
    made = _System(folder)
    yield made
    for process in made.processes.values():
        if process.poll() is None:
            process.kill()
            process.wait()
    made.close_pipe()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_nothing_archived_is_lost_or_judged_twice_whatever_is_killed(system: _System) -> None:
    rng = random.Random(11)
    for service in ("evaluator", "archive", "generator"):
        system.start(service)
    system.optimize()
    victims = ["evaluator", "archive", "generator", "cli"] * KILLS
    for victim in victims[:KILLS]:
        while not system.read_archived(rng.randrange(1, 5)):
            # A service was away for longer than the command's patience: that is what resume is for.
            assert system.processes["cli"].wait() == 3
            system.close_pipe()
            system.optimize()
        system.kill(victim)
        if victim == "cli":
            system.optimize()
        else:
            system.start(victim)
    while not system.read_archived(3):
        system.close_pipe()
        system.optimize()
    system.kill("cli")

    async def archived_digests() -> tuple[list[int], list[str]]:
        archive = LocalArchive(system.store)
        archived = await archive.evaluations("killed", limit=10000)
        await archive.close()
        return [t.sequence for t in archived], [t.candidate.digest for t in archived]

    sequences, digests = asyncio.run(archived_digests())
    assert list(range(1, len(digests) + 1)) == sequences
    assert len(set(digests)) == len(digests)
    assert set(system.acknowledged) <= {d[:8] for d in digests}
    assert len(digests) <= len(system.acknowledged) + KILLS + 1

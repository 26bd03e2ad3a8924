"""A container without privileges: what meets a candidate locks itself in all the same."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.sycl
@pytest.mark.slow
def test_no_capability_and_no_new_privileges_are_needed(tmp_path: Path, cache_dir: Path) -> None:
    """As Kubernetes' strictest standard has it: a candidate is built and read, locked in."""
    program = shutil.which("setpriv")
    if program is None:
        pytest.skip("no setpriv on PATH")
    dropped = ("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all")
    candidate = (EXAMPLES / "softmax.py", EXAMPLES / "softmax.sycl.md")
    ended = subprocess.run(
        [
            *(program, *dropped, sys.executable, "-m", "kernel_foundry.cli"),
            *("evaluate", *candidate, "--device", "sycl:0", "--build-only", "--json"),
        ],
        env={
            **os.environ,
            "KERNEL_FOUNDRY_CACHE_DIR": str(cache_dir),
            "KERNEL_FOUNDRY_DEVICE_KINDS": "sycl",
            "KERNEL_FOUNDRY_DATA_DIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    verdict = json.loads(ended.stdout)
    assert verdict["outcome"] == "BUILT"
    isolation = verdict["evidence"]["isolation"]
    assert {"landlock", "seccomp"} <= set(isolation.replace(",", " ").split())

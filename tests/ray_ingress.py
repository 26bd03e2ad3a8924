"""A cluster of Ray with our applications, for tests; none where Ray is not installed."""

import importlib.util
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.free_port import free_port

_FILE = """
applications:
  'null': {device: 'null', cpus: 0.5, unsafe_no_sandbox: true}
"""


def absence() -> str:
    """Return why there is no Ray here; empty if there is."""
    if importlib.util.find_spec("ray") is None:
        return "Ray is not installed: pip install 'kernel-foundry[ray]'"
    return ""


@contextmanager
def ingress(folder: Path) -> Iterator[str]:
    """Yield the address of a running ingress, `host:port`; its applications are in `_FILE`."""
    file = folder / "applications.yaml"
    file.write_text(_FILE)
    port = free_port()
    command = [sys.executable, "-m", "kernel_foundry.cli", "fleet", "up", "--file", str(file)]
    with (folder / "ray.log").open("w+") as log:
        process = subprocess.Popen(
            [*command, "--port", str(port)], stdout=subprocess.PIPE, stderr=log
        )
        try:
            assert process.stdout is not None
            if not process.stdout.readline():  # the first address is printed once all are up
                raise RuntimeError((folder / "ray.log").read_text())
            yield f"127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()

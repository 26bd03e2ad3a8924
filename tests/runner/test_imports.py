"""What each process loads: torch is for library calls and the judge alone."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module",
    [
        "evaluator_svc.runner.work",
        "evaluator_svc.builder.work",
        "evaluator_svc.inspector.work",
        "evaluator_svc.fork_server",
        "evaluator_svc.processes.fork_client",
    ],
)
def test_torch_is_not_imported_without_need(module):
    """Neither by a runner that makes no library calls, nor by builder, inspector and supervisor."""
    program = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

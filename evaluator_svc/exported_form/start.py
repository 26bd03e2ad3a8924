"""Starts the process that tries an exported file; its own side is `process.py`."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from evaluator_svc.sandbox.bubblewrap import SCRATCH_BYTES
from evaluator_svc.sandbox.confinement import Confinement
from evaluator_svc.sandbox.host_paths import PASSED_ON, device_nodes, package_root, readable_paths
from evaluator_svc.sandbox.system_calls import CallFilter
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.domain.plain import from_json, to_json
from kernel_foundry.errors import ProcessLostError
from kernel_foundry.exported_form import FormReport, FormRequest
from kernel_foundry.scratch import scratch_folder

_SECONDS: Final = 600.0
_CPU_SECONDS: Final = 3600
_FILE_BYTES: Final = 16 << 20
_OPEN_FILES: Final = 1024


def try_exported_form(request: FormRequest, settings: EvaluatorSettings) -> FormReport:
    """Run an exported file against its own reference, in a fresh locked process.

    Raises:
        ProcessLostError: the process died or did not end.
    """
    with scratch_folder("export") as folder:
        kind = "cuda" if request.device.startswith("cuda") else "sycl"
        Path(folder, "request.json").write_text(to_json(request), encoding="utf-8")
        Path(folder, "lock.json").write_text(to_json(_confinement(folder, kind, settings)))
        threads = str(settings.thread_count)
        environment = {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": folder,
            "TMPDIR": folder,
            # Torch names folders after the user, whose own name is in a file out of reach.
            "USER": "nobody",
            "PYTHONPATH": package_root(),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": threads,
            **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
        }
        try:
            ended = subprocess.run(
                [sys.executable, "-m", "evaluator_svc.exported_form.process", folder],
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ProcessLostError("an exported file did not end", cause="timeout") from error
        answer = Path(folder, "report.json")
        if ended.returncode != 0 or not answer.exists():
            words = ended.stdout.decode(errors="replace").strip()[-800:]
            how = f"exit code {ended.returncode}: {words}"
            raise ProcessLostError(f"the process of an exported file died: {how}", cause=how)
        return from_json(FormReport, answer.read_text(encoding="utf-8"))


def _confinement(folder: str, kind: str, settings: EvaluatorSettings) -> Confinement:
    return Confinement(
        readable=readable_paths(),
        devices=device_nodes(kind),
        scratch=folder,
        makes_folders=True,  # torch makes some for compilers that it may need
        memory_bytes=settings.runner_bytes,
        cpu_seconds=_CPU_SECONDS,
        file_bytes=_FILE_BYTES,
        open_files=_OPEN_FILES,
        scratch_bytes=SCRATCH_BYTES,
        calls=CallFilter.REFUSE_LISTED if kind == "cuda" else CallFilter.ALLOW_LISTED,
    )

"""Starts the process that tries an exported file; its own side is `process.py`."""

from dataclasses import replace
from typing import Final

from evaluator_svc.exported_form.message import FormTrial
from evaluator_svc.processes.channel import ChannelError, ChannelTimeoutError
from evaluator_svc.processes.forking import EXPORTED_FORM
from evaluator_svc.processes.process import ChildProcess
from evaluator_svc.processes.template import SharedTemplate, TemplateKind
from evaluator_svc.sandbox.bubblewrap import SCRATCH_BYTES
from evaluator_svc.sandbox.confinement import Confinement
from evaluator_svc.sandbox.host_paths import (
    DEVICE_VARIABLES,
    PASSED_ON,
    device_nodes,
    own_variables,
    package_root,
    readable_paths,
)
from evaluator_svc.sandbox.system_calls import CallFilter
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.errors import ProcessLostError
from kernel_foundry.exported_form import FormReport, FormRequest
from kernel_foundry.scratch import scratch_folder

_SECONDS: Final = 600.0
_END_SECONDS: Final = 5.0
"""From the channel's end to the process's own."""
_CPU_SECONDS: Final = 3600
_FILE_BYTES: Final = 16 << 20
_OPEN_FILES: Final = 1024


def trial_template(settings: EvaluatorSettings) -> SharedTemplate:
    """Return a hold on what trials are forked from; several in a row take its imports once."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        # Torch names folders after the user, whose own name is in a file out of reach.
        "USER": "nobody",
        "PYTHONPATH": package_root(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": str(settings.thread_count),
        **own_variables(name for name in PASSED_ON if name not in DEVICE_VARIABLES),
    }
    return SharedTemplate(
        TemplateKind(
            module=EXPORTED_FORM, environment=tuple(environment.items()), meets_candidates=True
        )
    )


def try_exported_form(request: FormRequest, settings: EvaluatorSettings) -> FormReport:
    """Run an exported file against its own reference, in a locked process of its own.

    Raises:
        ProcessLostError: the process died or did not end.
    """
    kind = "cuda" if request.device.startswith("cuda") else "sycl"
    held = trial_template(settings)
    try:
        scratch = scratch_folder("export")
        try:
            own = {"HOME": scratch.name, "TMPDIR": scratch.name, **own_variables(DEVICE_VARIABLES)}
            process = held.template.start(tuple(own.items()))
        except BaseException:
            scratch.cleanup()
            raise
        process.scratch = scratch
        try:
            return _report(process, request, _confinement(scratch.name, kind, settings))
        finally:
            process.kill()
    finally:
        held.close()


def _report(process: ChildProcess, request: FormRequest, confinement: Confinement) -> FormReport:
    trial = FormTrial(request=replace(request, text=""), confinement=confinement)
    text = request.text.encode()
    try:
        received = process.ask(trial, FormReport, timeout_seconds=_SECONDS, blobs=(text,))
    except ChannelTimeoutError as error:
        raise ProcessLostError("an exported file did not end", cause="timeout") from error
    except ChannelError as error:
        process.wait(_END_SECONDS)
        end = process.kill()
        how = f"{end.describe()}: {end.last_words[-800:]}" if end is not None else str(error)
        raise ProcessLostError(f"the process of an exported file died: {how}", cause=how) from error
    report: FormReport = received.message
    return report


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

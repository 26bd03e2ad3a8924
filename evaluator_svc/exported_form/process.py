"""The process that tries an exported file: locks itself in, imports the file, and compares.

From the import on nothing of this package can be imported, as in the user's program. What torch
imports late, for a reference without memory, it has already: a second that each trial would take.
"""

import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, Never

import torch
import torch._dynamo
import torch.fx.experimental.symbolic_shapes

from evaluator_svc.exported_form.backward_trial import BackwardTrial
from evaluator_svc.exported_form.message import FormTrial
from evaluator_svc.exported_form.trial import Trial
from evaluator_svc.judge.memory.host_memory import HostMemory
from evaluator_svc.processes.conversation import Conversation
from evaluator_svc.sandbox.absent_packages import hide_own_packages
from evaluator_svc.sandbox.confinement import confine
from kernel_foundry.exported_form import FormReport

_FILE: Final = "exported.py"


def _import(folder: Path, text: str) -> Any:
    path = folder / _FILE
    path.write_text(text, encoding="utf-8")
    hide_own_packages()
    spec = importlib.util.spec_from_file_location("exported", path)
    assert spec is not None, "a Python file has a loader"
    assert spec.loader is not None, "a Python file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules["exported"] = module
    spec.loader.exec_module(module)
    return module


def serve(conversation: Conversation) -> Never:
    """Try the file that is asked for and tell what came out; ends the process."""
    code = 0
    try:
        received = conversation.receive(FormTrial)
        trial: FormTrial = received.message
        text = received.blobs[0].decode()
        conversation.send(_report(trial, text))
    except BaseException:  # noqa: BLE001  who asked keeps stderr
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stderr.flush()
    os._exit(code)


def _report(asked: FormTrial, text: str) -> FormReport:
    request, folder = asked.request, Path(asked.confinement.scratch)
    if request.device != "cpu":
        torch.cuda.init()  # type: ignore[no-untyped-call]  # the driver needs more to start than the lock leaves
    memory = HostMemory()
    os.chdir(folder)
    tempfile.tempdir = str(folder)  # or torch would try others, which are locked
    torch.set_float32_matmul_precision("highest")
    isolation = confine(asked.confinement, outer=())
    exported = _import(folder, text)
    # Kernels and reference alike, as when they were judged: convolutions may use it by default.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = exported.TF32
    trial = Trial(request, exported, memory)
    backward = BackwardTrial(request, exported, memory)
    results = tuple(trial.run(workload) for workload in request.workloads)
    return FormReport(
        results=results,
        container=trial.container,
        backward=tuple(backward.run(workload) for workload in request.backward),
        mechanisms=isolation.mechanisms,
        missing=isolation.missing,
    )

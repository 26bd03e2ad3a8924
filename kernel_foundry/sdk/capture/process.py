"""The process that a user's program runs in: it records the calls of its modules.

The program sees the arguments, the standard streams and the folder that it was started with.
Usage: python -m kernel_foundry.sdk.capture.process
    REPORT LEAST_SHARE CALLS DEVICE FILE MODEL [ARGUMENT]...
"""

import sys
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import torch
from torch import nn

from kernel_foundry.domain.plain import to_json
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.capture.captured import (
    CapturedCalls,
    CapturedModule,
    CapturedProgram,
    CapturedTensor,
)
from kernel_foundry.sdk.capture.python_text import (
    NotWritableError,
    PythonText,
    keep_constructor_calls,
)
from kernel_foundry.sdk.capture.recorder import CallRecorder, RecordedCalls
from kernel_foundry.sdk.capture.task_text import TaskText, task_text, weight_bytes
from kernel_foundry.sdk.capture.user_program import load_model, run_file

_MOST_PARTS: Final = 10
"""Modules inside a module that still is one task."""
_MOST_MODULES: Final = 100
_CONTAINERS: Final = (nn.ModuleList, nn.ModuleDict)


def main(words: Sequence[str]) -> int:
    """Run the program, write what was recorded, and return the program's exit code."""
    report, least_share, calls, device, file, model_name, *arguments = words
    keep_constructor_calls()
    recorder = CallRecorder()
    code, refusal = 0, ""
    try:
        if model_name:
            try:
                model = load_model(Path(file), model_name, device)
            except InvalidArgumentError as error:
                refusal = error.message
                raise SystemExit(1) from error
            with recorder, torch.no_grad():
                for _ in range(int(calls)):
                    model.module(*model.inputs)
        else:
            sys.argv = [file, *arguments]
            with recorder:
                run_file(Path(file), "__main__")
    except SystemExit as end:
        code = _exit_code(end)
    except BaseException:  # noqa: BLE001  as Python itself reports what ends a program
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    captured = replace(_captured(recorder, code, float(least_share)), refusal=refusal)
    Path(report).write_text(to_json(captured), encoding="utf-8")
    return code


def _exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    sys.stderr.write(f"{end.code}\n")  # as Python does
    return 1


def _captured(recorder: CallRecorder, code: int, least_share: float) -> CapturedProgram:
    total = sum(len(c.times_ns) * c.call_ns for c in recorder.outermost_calls())
    groups = sorted(_groups(recorder.calls()), key=_total_ns, reverse=True)
    worthy = [g for g in groups if _total_ns(g) >= least_share * total][:_MOST_MODULES]
    return CapturedProgram(exit_code=code, total_ns=total, modules=tuple(map(_module, worthy)))


def _total_ns(group: Iterable[RecordedCalls]) -> float:
    return sum(len(calls.times_ns) * calls.call_ns for calls in group)


def _groups(calls: Iterable[RecordedCalls]) -> list[list[RecordedCalls]]:
    """Calls of small modules that can be one task: of a class, its arguments, mode and inputs."""
    found: dict[tuple[object, ...], list[RecordedCalls]] = {}
    for each in calls:
        parts = sum(1 for _ in each.module.modules()) - 1
        if parts > _MOST_PARTS or isinstance(each.module, _CONTAINERS):
            continue
        inputs = tuple(
            (a.name, tuple((t.dim(), t.dtype) for t in a.tensors), a.is_list, repr(a.constant))
            for a in each.arguments
        )
        kind = type(each.module)
        key = (kind, repr(each.module), _made_with(each), each.module.training, inputs)
        found.setdefault((*key, each.device, each.reason), []).append(each)
    return list(found.values())


def _made_with(calls: RecordedCalls) -> str:
    try:
        return PythonText().arguments_of(calls.module)
    except NotWritableError as error:
        return str(error)


def _module(group: list[RecordedCalls]) -> CapturedModule:
    shapes: dict[tuple[object, ...], list[RecordedCalls]] = {}
    for calls in group:
        shapes.setdefault(tuple(a.key() for a in calls.arguments), []).append(calls)
    ordered = sorted(shapes.values(), key=_total_ns, reverse=True)
    firsts = [same[0] for same in ordered]
    first = firsts[0]
    written: TaskText | None = None
    reason = ""
    try:
        written = task_text(firsts)
    except NotWritableError as error:
        reason = str(error)
    workloads = written.workloads if written else [""] * len(ordered)
    kind = type(first.module).__name__
    return CapturedModule(
        kind=kind,
        call=f"{kind}({_made_with(first)})" if written else kind,
        paths=tuple(dict.fromkeys(calls.path for calls in group)),
        device=str(first.device),
        weight_bytes=weight_bytes(first),
        calls=tuple(
            _calls(same, workload) for same, workload in zip(ordered, workloads, strict=True)
        ),
        reference=written.reference if written else "",
        sidecar=written.sidecar if written else "",
        reason=reason,
        notes=tuple(written.notes) if written else (),
    )


def _calls(same: list[RecordedCalls], workload: str) -> CapturedCalls:
    first = same[0]
    count = sum(len(calls.times_ns) for calls in same)
    inputs = [(a.name, t) for a in first.arguments for t in a.tensors]
    return CapturedCalls(
        inputs=tuple(_tensor(name, tensor) for name, tensor in inputs),
        outputs=tuple(_tensor("out", tensor) for tensor in first.outputs),
        count=count,
        call_ns=_total_ns(same) / count,
        workload=workload,
    )


def _tensor(name: str, tensor: torch.Tensor) -> CapturedTensor:
    return CapturedTensor(
        name=name,
        shape=tuple(tensor.shape),
        strides=tuple(tensor.stride()),
        dtype=str(tensor.dtype).removeprefix("torch."),
        itemsize=tensor.itemsize,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

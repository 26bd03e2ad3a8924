"""The process that a user's model runs in, with winners and without them.

Usage: python -m kernel_foundry.sdk.model_bench.process REPORT REQUEST, the latter as JSON.
"""

import copy
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from kernel_foundry.domain.plain import from_json, to_json
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.capture.recorder import CallRecorder
from kernel_foundry.sdk.capture.user_program import UserModel, load_model, run_file
from kernel_foundry.sdk.model_bench.forms import (
    Call,
    call_of,
    forms_on,
    interleaved_samples,
    usual_forms,
)
from kernel_foundry.sdk.model_bench.measurement import (
    BenchResult,
    Form,
    ModelMeasurement,
    SwapCalls,
    SwapResult,
    times_of,
)
from kernel_foundry.sdk.model_bench.request import BenchReply, BenchRequest

_PROFILED_CALLS: Final = 20
_TOLERANCE: Final = 1e-3
_TOLERANCE_16_BITS: Final = 2e-2
_LONGEST_FAILURE: Final = 500


def main(words: Sequence[str]) -> int:
    """Measure, and write what was found, or which part of the request was wrong."""
    report, request = words
    try:
        reply = BenchReply(measurement=_measured(from_json(BenchRequest, request)))
    except InvalidArgumentError as error:
        reply = BenchReply(refusal=str(error), field=error.metadata["field"])
    Path(report).write_text(to_json(reply), encoding="utf-8")
    return 0


def _measured(request: BenchRequest) -> ModelMeasurement:
    user = load_model(Path(request.file), request.model, request.device)
    if user.device.index is not None:
        torch.cuda.set_device(user.device)
    tensors = [*user.module.parameters(), *user.module.buffers()]
    # Both models have the same weights in the same memory.
    swapped = copy.deepcopy(user.module, {id(tensor): tensor for tensor in tensors})
    files = []
    for number, (file, of) in enumerate(request.swaps):
        exported = run_file(Path(file), f"kfoundry_swap_{number}")
        swapped = _swap(swapped, exported, file, of)
        files.append(exported)
    with torch.no_grad():
        expected = _tensors(user.module(*user.inputs))
    tolerance = request.tolerance or _default_tolerance(expected)
    forms = tuple(
        _form(form, user, swapped, expected, files, request.samples)
        for form in request.forms or usual_forms(user.device)
    )
    names = [file for file, _ in request.swaps]
    return ModelMeasurement(
        device=_device_name(user.device),
        swaps=_swaps(user, swapped, files, names),
        forms=forms,
        tolerance=tolerance,
    )


def _swap(model: nn.Module, exported: ModuleType, file: str, of: str) -> nn.Module:
    if not hasattr(exported, "swap") or not hasattr(exported, "stats"):
        raise InvalidArgumentError(
            f"{file}: no swap(model); `kfoundry export --to torch` writes such a file", field="swap"
        )
    kind = next((type(part) for part in model.modules() if type(part).__name__ == of), None)
    if of and kind is None:
        raise InvalidArgumentError(f"{file}:{of}: the model has no module {of}", field="swap")
    try:
        swapped: nn.Module = exported.swap(model, kind)
    except ValueError as error:
        raise InvalidArgumentError(
            f"{file}: {error}; {file}:CLASS names the class of the modules to replace", field="swap"
        ) from error
    return swapped


def _form(
    form: Form,
    user: UserModel,
    swapped: nn.Module,
    expected: list[torch.Tensor],
    files: Sequence[ModuleType],
    samples: int,
) -> BenchResult:
    if form not in forms_on(user.device):
        return BenchResult(form=form, failure=f"there is none on {user.device}")
    try:
        plain = call_of(form, user.module, user.inputs)
        with_swaps, calls = _counted(form, swapped, user, files)
        errors = [_error(_tensors(call()), expected) for call in (plain, with_swaps)]
        times = interleaved_samples((plain, with_swaps), user.device, samples)
    except Exception as error:  # noqa: BLE001  torch.compile and the user's code may raise anything
        text = f"{type(error).__name__}: {error}".strip()
        return BenchResult(form=form, failure=text[:_LONGEST_FAILURE])
    return BenchResult(
        form=form,
        plain=times_of(times[0]),
        swapped=times_of(times[1]),
        plain_error=errors[0],
        swapped_error=errors[1],
        calls=calls,
    )


def _counted(
    form: Form, swapped: nn.Module, user: UserModel, files: Sequence[ModuleType]
) -> tuple[Call, tuple[SwapCalls, ...]]:
    """The call, and what the files count: in one call, or where a graph is made of it."""
    if form is Form.GRAPH:  # a replay counts nothing
        _reset(files)
        call = call_of(form, swapped, user.inputs)
    else:
        call = call_of(form, swapped, user.inputs)
        _reset(files)
        call()
    found = []
    for file in files:
        stats = file.stats()
        reasons = tuple(sorted(stats["reasons"]))
        found.append(
            SwapCalls(kernel=stats["kernel"], reference=stats["reference"], reasons=reasons)
        )
    return call, tuple(found)


def _reset(files: Iterable[ModuleType]) -> None:
    for file in files:
        file.reset_stats()


def _swaps(
    user: UserModel, swapped: nn.Module, files: Sequence[ModuleType], names: Sequence[str]
) -> tuple[SwapResult, ...]:
    """Share and speed-up of each file's modules, from a profile of eager calls."""
    before, total = _profile(user.module, user.inputs)
    after, _ = _profile(swapped, user.inputs)
    found = []
    for file, name in zip(files, names, strict=True):
        paths = tuple(p for p, part in swapped.named_modules() if type(part) is file.Module)
        plain_ns = sum(before.get(id(user.module.get_submodule(path)), 0.0) for path in paths)
        swapped_ns = sum(after.get(id(swapped.get_submodule(path)), 0.0) for path in paths)
        found.append(
            SwapResult(
                file=name,
                paths=paths,
                share=plain_ns / total if total else 0.0,
                speedup=plain_ns / swapped_ns if plain_ns and swapped_ns else 1.0,
            )
        )
    return tuple(found)


def _profile(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[dict[int, float], float]:
    """The time in ns of each module by its id, and of the model."""
    recorder = CallRecorder()
    with recorder, torch.no_grad():
        for _ in range(_PROFILED_CALLS):
            module(*inputs)
    times: dict[int, float] = {}
    for calls in recorder.calls():
        key = id(calls.module)
        times[key] = times.get(key, 0.0) + len(calls.times_ns) * calls.call_ns
    return times, sum(len(c.times_ns) * c.call_ns for c in recorder.outermost_calls())


def _tensors(outputs: Any) -> list[torch.Tensor]:
    return [
        leaf.detach().clone() for leaf in tree_leaves(outputs) if isinstance(leaf, torch.Tensor)
    ]


def _error(outputs: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    """The largest difference of an element, over the root mean square of its tensor."""
    pairs = list(zip(outputs, expected, strict=True))
    if any(o.shape != e.shape or o.dtype != e.dtype for o, e in pairs):
        return float("inf")
    return max((_tensor_error(o, e) for o, e in pairs if o.numel()), default=0.0)


def _tensor_error(output: torch.Tensor, expected: torch.Tensor) -> float:
    ours, theirs = (
        (torch.view_as_real(t) if t.is_complex() else t).double() for t in (output, expected)
    )
    is_finite = theirs.isfinite()
    others = [t[~is_finite] for t in (ours, theirs)]
    is_same = torch.equal(ours.isfinite(), is_finite) and torch.equal(
        *(other.nan_to_num() for other in others)
    )
    if not is_same:
        return float("inf")
    difference = torch.where(is_finite, ours - theirs, 0.0).abs().max()
    scale = torch.where(is_finite, theirs, 0.0).square().mean().sqrt()
    return float(difference / scale) if difference else 0.0


def _default_tolerance(expected: Iterable[torch.Tensor]) -> float:
    narrow = any(t.dtype in (torch.float16, torch.bfloat16) for t in expected)
    return _TOLERANCE_16_BITS if narrow else _TOLERANCE


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

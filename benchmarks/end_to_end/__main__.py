"""A transformer and a ResNet with exported winners in place of their own modules, end to end.

Each operator is a task with a candidate over our blocks: judged, exported with `--to torch`, and
swapped into a model. Measured are the models eager, compiled and as CUDA graphs, by `kfoundry
bench model`; then a training step, which uses the reference's gradients, and two streams at once.
Exit code 1 where a candidate or an export fails, a call falls back, or a result is wrong.
Run on a GPU host: python -m benchmarks.end_to_end [--models resnet] [--device cuda:0] [--out FILE]
"""

import argparse
import copy
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import torch
from torch import nn

from benchmarks.result_file import ROOT, commit, out_option, write_result
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.sdk.capture.user_program import load_model, run_file
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.task_file import read_task

NAME: Final = "end_to_end"
FOLDER: Final = Path(__file__).parent
_EVALUATIONS: Final = 1
_TOLERANCE: Final = 1e-3
"""Of the largest difference of a gradient or output, over the root mean square of its tensor."""
_TOLERANCE_TF32: Final = 2e-2
"""Where convolutions round to TF32, as PyTorch does: a last bit before them moves more behind."""
_OF_NOISE: Final = 2.0
"""Times what a last bit of the inputs does to the model's own gradients: as much as kernels may."""

MODELS: Final = {
    "transformer": (
        "Transformer",
        {"add_norm": "AddNorm", "gelu_linear": "GeluLinear", "linear": "Linear"},
        _TOLERANCE,
    ),
    "resnet": (
        "ResNet",
        {"norm_relu": "NormRelu", "norm_add_relu": "NormAddRelu"},
        _TOLERANCE_TF32,
    ),
}
"""Of each file the model's class, the class that each operator's winner replaces, its tolerance."""
FORMS: Final = {
    "transformer": ("eager", "compiled", "graph"),
    "resnet": ("eager", "compiled", "compiled-contiguous", "graph"),
}


def main() -> int:
    """Judge, export, measure and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0", help="where to measure (cuda:0)")
    parser.add_argument(
        "--models", nargs="+", choices=list(MODELS), default=list(MODELS), help="which (all)"
    )
    out_option(parser, NAME)
    arguments = parser.parse_args()
    with connect() as foundry:
        device = foundry.admit(read_task(FOLDER / "add_norm.py"), device=arguments.device).device
    with tempfile.TemporaryDirectory() as folder:
        measured = {
            model: _model(model, Path(folder), arguments.device) for model in arguments.models
        }
    named = {model: {"commit": commit(), **figures} for model, figures in measured.items()}
    models = others(arguments.out, device, arguments.models) | named
    write_result(arguments.out, NAME, device, {"models": models})
    return 0 if all(figures["is_right"] for figures in measured.values()) else 1


def others(file: Path, device: DeviceSpec, measured: Sequence[str]) -> dict[str, Any]:
    """Return what a result file has of other models on this device, each with its commit."""
    if not file.exists():
        return {}
    known = json.loads(file.read_text())
    if known["device"] != device.name:
        return {}
    return {
        model: {"commit": known["commit"], **figures}
        for model, figures in known["models"].items()
        if model not in measured
    }


def _model(model: str, folder: Path, device: str) -> dict[str, Any]:
    kind, operators, tolerance = MODELS[model]
    store = f"sqlite:///{folder / f'{model}.db'}"
    exports = {
        name: _exported(name, folder / f"fast_{name}.py", store, device) for name in operators
    }
    if not all(Path(figures["file"]).exists() for figures in exports.values()):
        return {"exports": exports, "is_right": False}
    swaps = {exports[name]["file"]: replaced for name, replaced in operators.items()}
    options = [word for file, of in swaps.items() for word in ("--swap", f"{file}:{of}")]
    file = f"{FOLDER / model}.py:{kind}"
    for form in FORMS[model]:
        options += ["--form", form]
    code, benched = _kfoundry(
        "bench", "model", file, *options, "--device", device, "--tolerance", str(tolerance)
    )
    for form in benched.get("forms", ()):
        for times in (form["plain"], form["swapped"]):
            (times or {}).pop("samples_ns", None)
        print(f"{model} {form['form']}: {form['speedup']} {form['failure']}", flush=True)
    modules = {Path(swap["file"]).name: len(swap["paths"]) for swap in benched.get("swaps", ())}
    benched |= {"model": f"{model}.py:{kind}", "swaps": modules}
    checks = _checks(f"{FOLDER / model}.py", kind, swaps, device)
    print(f"{model}: {checks}", flush=True)
    return {
        "exports": exports,
        "bench_model": benched,
        **checks,
        "is_right": code == 0
        and checks["fell_back"] == 0
        and checks["training_error"] <= max(tolerance, _OF_NOISE * checks["training_noise"])
        and checks["streams_error"] <= tolerance,
    }


def _exported(name: str, file: Path, store: str, device: str) -> dict[str, Any]:
    """Judge an operator's candidate as a run of its own, and export it."""
    code, run = _kfoundry(
        "optimize", str(FOLDER / f"{name}.py"), "--device", device, "--model", "recipes",
        "--from", str(FOLDER / f"{name}.cuda.md"), "--evaluations", str(_EVALUATIONS),
        "--run", name, "--store", store,
    )  # fmt: skip
    if code:
        return {"file": str(file), "exit_code": code, "run": run}
    code, told = _kfoundry("export", name, "--store", store, "-o", str(file))
    print(f"{name}: exported, exit code {code}", flush=True)
    return {
        "exit_code": code,
        **{figure: run["best"][figure] for figure in ("speedup", "speedup_interval")},
        "workloads": told.get("workloads"),
        "bytes": file.stat().st_size if file.exists() else None,
        "file": str(file),
    }


def _kfoundry(*words: str) -> tuple[int, dict[str, Any]]:
    """Run a command with --json; its exit code and what it printed."""
    ended = subprocess.run(
        [sys.executable, "-m", "kernel_foundry.cli", *words, "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    told = json.loads(ended.stdout) if ended.stdout.strip() else {}
    return ended.returncode, told


def _checks(file: str, kind: str, swaps: dict[str, str], device: str) -> dict[str, float]:
    """Return the errors of a training step's gradients and of calls in two streams at once.

    Beside them are how far a rounding of the inputs moves the model's own gradients, and how many
    calls of swapped modules fell back to the reference meanwhile.
    """
    user = load_model(Path(file), kind, device)
    swapped = copy.deepcopy(user.module)
    files = [run_file(Path(path), f"end_to_end_{kind}_{n}") for n, path in enumerate(swaps)]
    for exported, of in zip(files, swaps.values(), strict=True):
        swapped = _swapped(swapped, exported, of)
    return {
        **_training_errors(user.module, swapped, user.inputs),
        "streams_error": _streams_error(user.module, swapped, user.inputs),
        "fell_back": float(sum(exported.stats()["reference"] for exported in files)),
    }


def _swapped(model: nn.Module, exported: ModuleType, of: str) -> nn.Module:
    kind = next(type(part) for part in model.modules() if type(part).__name__ == of)
    swapped: nn.Module = exported.swap(model, kind)
    return swapped


def _training_errors(
    plain: nn.Module, swapped: nn.Module, inputs: tuple[Any, ...]
) -> dict[str, float]:
    """Return the largest error of a weight's gradient, and what rounding inputs does to one."""
    torch.manual_seed(0)
    moved = tuple(x * (1.0 + torch.finfo(x.dtype).eps * torch.randn_like(x).sign()) for x in inputs)
    expected = _gradients(plain, inputs)
    return {
        "training_error": _largest_error(_gradients(swapped, inputs), expected),
        "training_noise": _largest_error(_gradients(plain, moved), expected),
    }


def _gradients(module: nn.Module, inputs: tuple[Any, ...]) -> dict[str, torch.Tensor | None]:
    """Return the gradient of each weight.

    The loss is a product with random numbers: that of squares would be the same for all outputs of
    a norm, and its gradients rounding noise.
    """
    module.zero_grad()
    output = module(*inputs)
    generator = torch.Generator(output.device).manual_seed(0)
    weight = torch.randn(output.shape, generator=generator, device=output.device)
    (output * weight).mean().backward()
    gradients = {name: p.grad for name, p in module.named_parameters()}
    module.zero_grad()
    return gradients


def _largest_error(
    found: dict[str, torch.Tensor | None], expected: dict[str, torch.Tensor | None]
) -> float:
    return max(_error(found[name], gradient) for name, gradient in expected.items())


def _streams_error(plain: nn.Module, swapped: nn.Module, inputs: tuple[Any, ...]) -> float:
    """Return the largest error of two threads' calls, each in a stream of its own."""
    with torch.no_grad():
        changed = tuple(x * 1.25 for x in inputs)
        expected = [plain(*inputs), plain(*changed)]
        torch.cuda.synchronize()
    found: list[list[torch.Tensor]] = [[], []]

    def call(index: int, given: tuple[Any, ...]) -> None:
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        with torch.no_grad(), torch.cuda.stream(stream):
            found[index] = [swapped(*given) for _ in range(5)]
        stream.synchronize()

    threads = [
        threading.Thread(target=call, args=(index, given))
        for index, given in enumerate((inputs, changed))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not all(found):
        return float("inf")
    return max(_error(output, expected[index]) for index in (0, 1) for output in found[index])


def _error(found: torch.Tensor | None, expected: torch.Tensor | None) -> float:
    if found is None or expected is None:
        return 0.0 if found is expected else float("inf")
    difference = (found - expected).double().abs().max()
    return float(difference / expected.double().square().mean().sqrt())


if __name__ == "__main__":
    sys.exit(main())

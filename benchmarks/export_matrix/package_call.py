"""Calls an exported package on a GPU and compares it with the reference, in a process of its own.

Arguments: the target, where the package is, its name, and the same kernels as a file of
`--to torch`. Prints the largest error over the root mean square of the output, and the host's time
of a call in nanoseconds.
"""

import importlib
import importlib.util
import json
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

import torch

_CALLS: Final = 20
_SAMPLES: Final = 20


def main(target: str, folder: str, module: str, file: str) -> None:
    """Compare, time and print."""
    sys.path.insert(0, folder)
    known = loaded(Path(file))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = known.TF32
    workload = known.WORKLOADS[0]
    source = known.reference_at(tuple(sorted(workload["sizes"].items())))
    arguments: list[Any] = getattr(source, "get_init_inputs", list)()
    reference = source.Model(*arguments).cuda().train(known.TRAINING)
    tensors, rest = known.flat(source.get_inputs())
    inputs = [tensor.cuda() for tensor in tensors]
    values = known.filled(rest, inputs)
    with torch.no_grad():
        expected = known.results_of(reference(*values))
        call = _plugin if target == "vllm" else _binding
        run = call(module, Path(folder), known, reference, arguments, inputs, values)
        found = run()
        errors = [_error(one, other) for one, other in zip(found, expected, strict=True)]
        samples = [_host_ns(run) for _ in range(_SAMPLES)]
    print(json.dumps({"error": max(errors), "host_ns": median(samples)}))


def loaded(path: Path) -> Any:
    """Return a Python file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _plugin(
    module: str,
    folder: Path,
    known: Any,
    reference: Any,
    arguments: Any,
    _inputs: Any,
    values: Any,
) -> Callable[[], Any]:
    """The plug-in as vLLM loads it, twice."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    entry, _, function = project["entry-points"]["vllm.general_plugins"][module].partition(":")
    for _ in range(2):
        getattr(importlib.import_module(entry), function)()
    kernels = importlib.import_module(f"{module}.kernels")
    model = kernels.Module(*arguments).cuda().train(known.TRAINING)
    model.load_state_dict(reference.state_dict())
    model(*values)
    assert kernels.stats()["kernel"] == 1, kernels.stats()
    return lambda: known.results_of(model(*values))


def _binding(
    module: str,
    _folder: Path,
    known: Any,
    reference: Any,
    _arguments: Any,
    inputs: Any,
    _values: Any,
) -> Callable[[], Any]:
    """The binding, on arrays by their names."""
    package = importlib.import_module(module)
    workload = known.WORKLOADS[0]
    state = dict(reference.named_parameters()) | dict(reference.named_buffers())
    weights = {name: state[path].detach() for name, path in workload["weights"].items()}
    outputs = {
        name: torch.empty(workload["tensors"][name][1], device="cuda", dtype=dtype)
        for name in known.OUTPUTS
        for dtype in [getattr(torch, workload["tensors"][name][0])]
    }
    arrays = {**dict(zip(known.INPUTS, inputs, strict=True)), **weights, **outputs}
    sizes = {n: size for n, size in workload["sizes"].items() if n not in arrays}
    stream = torch.cuda.current_stream().cuda_stream
    kernels = package.Kernels(0)
    if package.has_prepare:
        kernels.prepare(**weights, **sizes, stream=stream)

    def run() -> Any:
        kernels.launch(**arrays, **sizes, stream=stream)
        return list(outputs.values())

    return run


def _error(found: torch.Tensor, expected: torch.Tensor) -> float:
    difference = (found - expected).double().abs().max()
    return float(difference / expected.double().square().mean().sqrt())


def _host_ns(run: Callable[[], Any]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter_ns()
    for _ in range(_CALLS):
        run()
    spent = (time.perf_counter_ns() - start) / _CALLS
    torch.cuda.synchronize()
    return spent


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Where the host's time goes in a call of an exported module.

Each example's candidate is judged, exported to torch and called here on its first workload, warm.
Beside the whole call: a ReLU of PyTorch on 64 elements, the allocation of one result, and the
driver's launches with the numbers already in their place. On a CPU launches do nothing.
Run: python -m benchmarks.export_matrix.host_time [--device cuda:0] [--examples E...] [--out FILE]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

import torch
from torch import nn

from benchmarks.export_matrix.__main__ import EXAMPLES, winner_of_example
from benchmarks.export_matrix.package_call import loaded
from benchmarks.result_file import parse_for_device, write_result
from kernel_foundry.domain.language import Language
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.export.torch_file import torch_file
from kernel_foundry.sdk.services import Targets

NAME: Final = "export_host_time"
_CALLS: Final = 20
"""In a row: fewer than a GPU's queue takes."""
_SAMPLES: Final = 100
_SMALL: Final = 64


def main() -> None:
    """Measure, write the result file and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", nargs="+", default=["softmax", "bias_gelu_layernorm"])
    arguments = parse_for_device(parser, NAME)
    language = Language(arguments.device.partition(":")[0])
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/runs.db"
        with connect(Targets(store=store)) as foundry:
            for name in arguments.examples:
                winner = winner_of_example(foundry, name, language, arguments.device)
                path = Path(folder, f"fast_{name}.py")
                path.write_text(torch_file([winner], path.stem), encoding="utf-8")
                found[name] = host_times(loaded(path), arguments.device)
                print(name, {piece: f"{us:.2f} µs" for piece, us in found[name].items()})
            task = EXAMPLES / f"{arguments.examples[0]}.py"
            device = foundry.admit(task, device=arguments.device).device
    write_result(arguments.out, NAME, device, {"host_us": found})


def host_times(file: Any, device: str) -> dict[str, float]:
    """Return the host's time in microseconds of a call of an exported file, and of its pieces."""
    place = torch.device(device if device.startswith("cuda") else "cpu")
    if place.type == "cpu":
        file.CpuDevice.run = lambda *_: None
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = file.TF32
    workload = file.WORKLOADS[0]
    source = file.reference_at(tuple(sorted(workload["sizes"].items())))
    model = file.Module(*getattr(source, "get_init_inputs", list)())
    cast = getattr(torch, file.CAST) if file.CAST else None
    model = model.to(device=place, dtype=cast).train(file.TRAINING)
    tensors, rest = file.flat(source.get_inputs())
    inputs = [t.to(place, cast if t.is_floating_point() else None) for t in tensors]
    values = file.filled(rest, inputs)
    relu, small = nn.ReLU(), torch.randn(_SMALL, device=place)
    with torch.no_grad():
        for _ in range(3):
            model(*values)
        if file.stats()["reference"]:
            raise RuntimeError(f"the reference ran: {file.stats()['last_reason']}")
        call = file.bound_call(file.kind_of(model._kf.kind), [*inputs, *file.weights_of(model)])
        pieces: dict[str, Callable[[], Any]] = {
            "call": lambda: model(*values),
            "relu": lambda: relu(small),
            "result": call.makers[0],
        }
        if call.is_one_row and not call.scratch.places:
            layout = next(iter(call.layouts.kept.values()), None)
            results = call.new_results()
            taken = (*inputs, *file.weights_of(model), *results)
            places = [*[t.data_ptr() for t in taken], *(layout.places if layout else ())]
            pieces["launches"] = lambda: call.steps[0].run(*places)
        times: dict[str, list[float]] = {piece: [] for piece in pieces}
        for _ in range(_SAMPLES):
            for piece, run in pieces.items():
                times[piece].append(_host_us(run, place))
    return {piece: median(samples) for piece, samples in times.items()}


def _host_us(run: Callable[[], Any], place: torch.device) -> float:
    if place.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter_ns()
    for _ in range(_CALLS):
        run()
    return (time.perf_counter_ns() - start) / _CALLS / 1e3


if __name__ == "__main__":
    main()

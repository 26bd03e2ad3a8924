"""`solution.json` of FlashInfer Trace and of SOL-ExecBench, with the Python file as its source."""

import json
from collections.abc import Sequence
from typing import Any, Final

from kernel_foundry.domain.digest import content_digest
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.export.function_file import check_gpu, function_file, gpu_model
from kernel_foundry.sdk.export.winner import Winner

_USAGE: Final = """\
The source of a solution: `run` takes the inputs in the order of the reference's forward, then
the weights of its module if it has some, then the outputs, which it writes."""
_FUNCTION: Final = "run"
_AUTHOR: Final = "kernel-foundry"
_FLASHINFER_DTYPES: Final = frozenset(
    {
        "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1",
        "int64", "int32", "int16", "int8", "bool",
    }
)  # fmt: skip
_SOL_DTYPES: Final = _FLASHINFER_DTYPES | {"float64", "float4_e2m1fn_x2"}
_SOL_GPU: Final = "B200"
_LOCAL_GPU: Final = "LOCAL"
"""What SOL-ExecBench calls any other GPU."""


def flashinfer_source(winners: Sequence[Winner], module: str) -> str:
    """Return the Python source of a solution for FlashInfer Trace.

    Raises:
        InvalidArgumentError: the format has no such device or dtype; else as `function_file`.
    """
    return _source(winners, module, "FlashInfer Trace", _FLASHINFER_DTYPES)


def sol_source(winners: Sequence[Winner], module: str) -> str:
    """Return the Python source of a solution for SOL-ExecBench.

    Raises:
        InvalidArgumentError: the format has no such device or dtype; else as `function_file`.
    """
    return _source(winners, module, "SOL-ExecBench", _SOL_DTYPES)


def flashinfer_file(text: str, winner: Winner, *, module: str, problem: str) -> str:
    """Return a solution for FlashInfer Trace."""
    hardware = f"NVIDIA_{gpu_model(winner.admission.device.name)}"
    return _solution(text, winner, module, problem, hardware, {"language": "python"})


def sol_file(text: str, winner: Winner, *, module: str, problem: str) -> str:
    """Return a solution for SOL-ExecBench."""
    is_b200 = gpu_model(winner.admission.device.name) == _SOL_GPU
    hardware = _SOL_GPU if is_b200 else _LOCAL_GPU
    return _solution(text, winner, module, problem, hardware, {"languages": ["pytorch"]})


def _source(winners: Sequence[Winner], module: str, place: str, dtypes: frozenset[str]) -> str:
    check_gpu(winners, place)
    for tensor in winners[0].workloads[0].tensors:
        if tensor.dtype not in dtypes:
            raise InvalidArgumentError(
                f"{place} has no {tensor.dtype}, the type of {tensor.name}", field="to"
            )
    return function_file(winners, module, usage=_USAGE)


def _solution(
    text: str, winner: Winner, module: str, problem: str, hardware: str, language: dict[str, Any]
) -> str:
    task = winner.record.task.name
    path = f"{module}.py"
    solution = {
        "name": f"{task}_{content_digest(text)[:8]}",
        "definition": problem,
        "author": _AUTHOR,
        "description": (
            f"Kernels for {task}, loaded as object code for {winner.admission.device.architecture};"
            " inputs of sizes that were not judged are computed by the reference in PyTorch."
        ),
        "spec": {
            **language,
            "target_hardware": [hardware],
            "entry_point": f"{path}::{_FUNCTION}",
            "dependencies": [],
            "destination_passing_style": True,
        },
        "sources": [{"path": path, "content": text}],
    }
    return json.dumps(solution, indent=2, ensure_ascii=False) + "\n"

"""The arithmetic estimate of a 16-bit product against what the library reaches at 8192.

The estimate comes from the rates of matrix units that the evaluator measures with its own kernels;
the library's time is that of the admission's fastest baseline, eager PyTorch, on random data. The
bar: within 15 %. Exit code 1 where it is missed.
Run on a GPU host: python -m benchmarks.arithmetic_estimate [--device cuda:0] [--out FILE]
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.result_file import out_option, write_result
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.task_file import read_task

NAME: Final = "arithmetic_estimate"
SIZE: Final = 8192
BAR: Final = 0.15
FORMATS: Final = {"fp16": "float16", "bf16": "bfloat16"}

TASK: Final = """\
import torch
from torch import nn

size = {size}


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(size, size, dtype=torch.{dtype}) for _ in range(2)]


def get_init_inputs():
    return []
"""


def main() -> int:
    """Admit both products, print and write estimate and measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0", help="where to measure (cuda:0)")
    out_option(parser, NAME)
    arguments = parser.parse_args()
    products: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder, connect() as foundry:
        for name, dtype in FORMATS.items():
            file = Path(folder) / f"product_{name}.py"
            file.write_text(TASK.format(size=SIZE, dtype=dtype))
            admission = foundry.admit(read_task(file), device=arguments.device)
            workload = admission.workloads[0]
            library_ns = min(b.timing.median_ns for b in workload.baselines)
            products[name] = {
                "arithmetic_estimate_ns": workload.arithmetic_estimate_ns,
                "arithmetic_unit": workload.arithmetic_unit,
                "library_ns": library_ns,
                "library_tflops": workload.flops / library_ns / 1e3,
                "estimate_over_library": workload.arithmetic_estimate_ns / library_ns,
            }
            print(f"{name}: {products[name]}")
        device = next(d for d in foundry.capabilities().devices if d.id == admission.device.id)
    peaks = device.peaks
    assert peaks is not None, "capabilities come with measured limits"
    rates = {r.format: r.flops_per_second / 1e12 for r in peaks.matrix_rates}
    measured = {
        "size": SIZE,
        "products": products,
        "matrix_tflops": rates,
        "fma_tflops": peaks.flops_per_second / 1e12,
        "copy_gbytes_per_second": peaks.bandwidth_bytes_per_second / 1e9,
        "read_gbytes_per_second": peaks.read_bandwidth_bytes_per_second / 1e9,
    }
    print({key: value for key, value in measured.items() if key != "products"})
    write_result(arguments.out, NAME, device, measured)
    ratios = [float(product["estimate_over_library"]) for product in products.values()]
    return 0 if all(abs(ratio - 1.0) <= BAR for ratio in ratios) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Exported files where nothing but torch is installed."""

from pathlib import Path

import pytest

from kernel_foundry.sdk.export.torch_file import torch_file
from kernel_foundry.sdk.export.winner import Winner
from tests.export.torch_alone import call_alone, required_by, site_of

pytestmark = [pytest.mark.sycl, pytest.mark.slow]


def test_files_need_torch_and_a_driver_alone(
    text: str, plain_gpu_winner: Winner, tmp_path: Path
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    files.joinpath("fast_linear.py").write_text(text, encoding="utf-8")
    for_gpu = torch_file([plain_gpu_winner], "fast_product")
    files.joinpath("fast_product.py").write_text(for_gpu, encoding="utf-8")
    torch_names, runtime_names = required_by("torch"), required_by("intel-opencl-rt")
    torch_site = site_of(torch_names, tmp_path / "torch")
    runtime_site = site_of(runtime_names, tmp_path / "runtime")
    linear = {"module": "fast_linear", "arguments": [48, 40, 2.0], "inputs": [[8, 48]]}
    product = {"module": "fast_product", "arguments": [], "inputs": [[8, 64], [8, 64]]}
    told = call_alone(
        {"paths": [str(torch_site), str(files)], "device": "cpu", **linear},
        {"paths": [], "device": "cpu", **product},
        {"paths": [str(runtime_site)], "device": "cpu", **linear},
    )
    assert set(told["distributions"]) == torch_names | runtime_names
    without, for_gpu_here, with_runtime = told["calls"]
    assert (without["kernel"], without["error"]) == (0, 0.0)
    assert without["last_reason"].startswith("no OpenCL CPU runtime")
    assert (for_gpu_here["kernel"], for_gpu_here["error"]) == (0, 0.0)
    assert for_gpu_here["last_reason"] == "x is on cpu; kernels run on cuda"
    assert with_runtime["kernel"] == 1, with_runtime
    assert with_runtime["error"] < 1e-5

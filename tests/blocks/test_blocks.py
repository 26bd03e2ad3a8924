"""The blocks `<kf/…>`: candidates over them compile for Hopper; rows and reductions compute."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import kernel_foundry_native as native
from evaluator_svc.inspector import inspect_ptx
from evaluator_svc.judge.describe import describe_task
from evaluator_svc.languages import backend_of
from evaluator_svc.policy.source import check_source
from kernel_foundry.domain.finding import Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.plan import configurations, parse, split
from kernel_foundry.plan.from_admission import device_limits, name_table
from kernel_foundry.sdk.task_file import read_task
from tests.cuda_on_host.host_run import COMPILER, BoundCandidate, bind, run_on_host
from tests.domain_values import H200

FOLDER = Path(__file__).parents[2] / "benchmarks" / "blocks"
NAMES = sorted(path.name.removesuffix(".cuda.md") for path in FOLDER.glob("*.cuda.md"))
ON_TENSOR_CORES = {
    "attention": b"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16",
    "bf16_product": b"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16",
    "conv2d": b"wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16",
    "float32_product": b"wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16",
    "fp8_product": b"wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3",
    "mma_product": b"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "skinny_product": b"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16",
    "tf32_product": b"wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32",
}
"""What each multiplies with in its first configuration."""
COPIED = ("attention", "bf16_product", "fp8_product", "mma_product", "tf32_product")
"""All of their operands are copied to shared memory (TMA, cp.async)."""
MOST_LINES = 60
LIMITS = device_limits(H200)


def _held_out(name: str, tensors: dict[str, torch.Tensor] | None = None) -> BoundCandidate:
    """Return a candidate in its first configuration, for its task's held-out workload."""
    task = read_task(FOLDER / f"{name}.py")
    small = tuple(replace(w, held_out=False) for w in task.workloads if w.held_out)
    task = replace(task, workloads=small)
    found = split((FOLDER / f"{name}.cuda.md").read_text("utf-8"))
    (workload,) = describe_task(task).workloads
    table, plan = name_table(workload.tensors, workload.scalars), parse(found.plan)
    configuration = next(iter(configurations(plan, table, LIMITS)))
    return bind(
        found.device_code,
        plan,
        names=table,
        configuration=configuration,
        device=LIMITS,
        tensors=tensors,
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_short_candidate_over_blocks_compiles_without_spills_or_findings(
    hopper_compiler: Any, name: str
) -> None:
    text = (FOLDER / f"{name}.cuda.md").read_text("utf-8")
    candidate = _held_out(name)

    built = hopper_compiler.compile(
        source=candidate.unit(native.prelude("cuda")),
        options=list(backend_of(Language.CUDA).toolchain().options_of("")),
        kernels=list(candidate.kernels),
    )

    assert check_source(candidate.device_code, "cuda") == ()
    found = inspect_ptx(built.assembly, candidate.kernels).findings
    assert [f for f in found if f.severity is not Severity.INFO] == []
    assert " 0 bytes spill stores" in built.log
    assert built.log.count(" 0 bytes spill stores") == built.log.count("bytes spill stores")
    assert len([line for line in text.splitlines() if line.strip()]) <= MOST_LINES
    products = set(re.findall(rb"(?:wgmma\.mma_async|mma\.sync)[\w.]+", built.assembly))
    assert products == ({ON_TENSOR_CORES[name]} if name in ON_TENSOR_CORES else set())
    # The others read floats sixteen bytes at a time.
    wide = re.search(rb"ld\.global(?:\.nc)?\.v4", built.assembly)
    assert (wide is not None) == (name not in COPIED)


def _expected(name: str, x: torch.Tensor, others: dict[str, torch.Tensor]) -> torch.Tensor:
    x = x.double()
    if name == "softmax":
        return torch.softmax(x, dim=-1)
    if name == "cumulative_sum":
        return torch.cumsum(x, dim=-1)
    if name == "cross_entropy":
        return torch.nn.functional.cross_entropy(x, others["target"], reduction="none")
    weight, bias = others["norm_weight"].double(), others["norm_bias"].double()
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias)


@pytest.mark.skipif(COMPILER is None, reason="no g++ to run device code on the host")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ON_TENSOR_CORES])
def test_rows_compute_the_reference_at_a_length_that_no_pack_divides(
    name: str, tmp_path: Path
) -> None:
    torch.manual_seed(1)
    x = torch.randn(3, 1001) * 10 + 100
    x[1, 5:900] = -math.inf if name == "softmax" else x[1, 5:900]
    others = {
        "target": torch.tensor([0, 1000, 501]),
        "norm_weight": torch.randn(1001),
        "norm_bias": torch.randn(1001),
    }
    names = {buffer.name for buffer in _held_out(name).sequence.buffers}
    tensors = {"x": x} | {key: value for key, value in others.items() if key in names}

    found = run_on_host(_held_out(name, tensors), tmp_path)

    torch.testing.assert_close(
        found["out"].double(), _expected(name, x, others), rtol=2e-5, atol=2e-5
    )

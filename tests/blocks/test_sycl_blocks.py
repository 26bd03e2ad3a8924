"""SYCL's blocks `<kf/…>` on this processor: what each computes, and verdicts of candidates."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import kernel_foundry_native as native
from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.languages import backend_of
from evaluator_svc.policy.source import check_source
from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.finding import FindingKind, Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.languages import language_named
from kernel_foundry.plan import split, translation_unit
from kernel_foundry.sdk.task_file import read_task

pytestmark = pytest.mark.sycl

FOLDER = Path(__file__).parents[2] / "benchmarks" / "blocks"
NAMES = sorted(path.name.removesuffix(".sycl.md") for path in FOLDER.glob("*.sycl.md"))
MOST_LINES = 60
LIMITS = EvaluationLimits(build_seconds=30.0, run_seconds=10.0, timing_seconds=0.05)
OF_THE_REFERENCE = {"linear_gelu": {FindingKind.VALUE_RANGE}}
"""PyTorch's gelu of infinity is infinity for one element, and NaN for a vector of them."""
HEAD = 'extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))'
COLUMNS = 301  # four vectors at a time, then two, then thirteen elements

KERNELS = f"""
#include <kf/product.hpp>
#include <kf/rows.hpp>
{HEAD} void functions(const float* x, float* out, int columns) {{
  kf::each<2>(columns, [&](auto at) {{
    const kf::Vector v = kf::load(x, at);
    kf::store(out, at, kf::exp(v));
    kf::store(out + columns, at, kf::tanh(v));
    kf::store(out + 2 * columns, at, kf::erf(v));
    kf::store(out + 3 * columns, at, kf::gelu(v));
    kf::store(out + 4 * columns, at, kf::gelu_tanh(v));
    kf::store(out + 5 * columns, at, kf::silu(v));
    kf::store(out + 6 * columns, at, kf::relu(v));
    kf::stream(out + 7 * columns, at, kf::rsqrt(kf::max(v, kf::min(-v, v + 1.0f))));
  }});
}}
{HEAD} void rows(const float* x, float* out, int columns) {{
  x += kf::work_group() * columns;
  out += kf::work_group() * 9;
  const auto value = [&](auto at) {{ return kf::load(x, at, 1e30f); }};
  out[0] = kf::reduce(columns, kf::Sum(), value);
  out[1] = kf::reduce(columns, kf::Max(), [&](auto at) {{ return kf::load(x, at, 1e30f); }});
  out[2] = kf::reduce(columns, kf::Min(), [&](auto at) {{ return kf::load(x, at, -1e30f); }});
  const kf::Moments twice = kf::moments(columns, value), once = kf::moments_once(columns, value);
  out[3] = twice.mean, out[4] = twice.variance, out[5] = once.mean, out[6] = once.variance;
  const kf::Softmax s = kf::softmax(columns, value);
  out[7] = s.top, out[8] = s.log_sum();
}}
{HEAD} void formats(const half* h, const bfloat16* b, half* h_out, bfloat16* b_out, int columns) {{
  kf::each<1>(columns, [&](auto at) {{
    kf::store(h_out, at, kf::load(h, at) * 3.0f);
    kf::store(b_out, at, kf::load(b, at) * 3.0f);
  }});
}}
{HEAD} void pack_kn(const float* b, float* panels, int n, int k) {{
  kf::pack_panel<2, kf::Layout::KN>(kf::work_group(), b, panels, n, k);
}}
{HEAD} void product(const float* a, const float* panels, float* out, int m, int n, int k) {{
  kf::Product<4, 2>::run(kf::work_group(), 8, {{a, panels, m, n, k}},
                         [&](int row, auto at, auto v) {{ kf::store(out + row * n, at, v); }});
}}
"""

Run = Callable[..., None]


@pytest.fixture(scope="module")
def run() -> Run:
    """Return a function that runs a kernel of KERNELS: name, work-groups, tensors and sizes."""
    sycl = native.device_kind("sycl")
    device, compiler = sycl.open_device(), sycl.open_compiler()
    names = ["functions", "rows", "formats", "pack_kn", "product"]
    built = compiler.compile(
        source=translation_unit(KERNELS, {}, native.prelude("sycl"), "sycl"),
        options=list(backend_of(Language.SYCL).toolchain().options_of(KERNELS)),
        kernels=names,
    )
    compiler.release()
    program = device.load(code=built.code, kernels=names)

    def launched(kernel: str, groups: int, *arguments: Any) -> None:
        tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
        sequence = sycl.LaunchSequence(device)
        sequence.launch(
            program=program,
            kernel=kernel,
            grid=(groups, 1, 1),
            block=(1, 1, 1),
            dimensions=1,
            arguments=[
                *(sycl.buffer_argument(i) for i in range(len(tensors))),
                *(sycl.scalar_argument("int32", a) for a in arguments[len(tensors) :]),
            ],
        )
        sequence.bind(0, [tensor.data_ptr() for tensor in tensors])
        sequence.run(0)

    return launched


def test_functions_have_the_accuracy_of_float32_and_pass_infinities_on(run: Run) -> None:
    ends = torch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0, 88.5, -88.5, 1e-30])
    x = torch.cat([torch.linspace(-20.0, 20.0, COLUMNS - len(ends)), ends])
    out = torch.full((8, COLUMNS), 7.0)

    run("functions", 1, x, out, COLUMNS)

    y, f = x.double(), torch.nn.functional
    largest = torch.fmax(y, torch.fmin(-y, y + 1.0))
    expected = torch.stack([
        y.exp(), y.tanh(), y.erf(), f.gelu(y), f.gelu(y, approximate="tanh"), f.silu(y),
        f.relu(y), largest.rsqrt(),
    ])  # fmt: skip
    expected[0][y < -87] = 0.0  # as the block says
    torch.testing.assert_close(
        out.double(), expected.float().double(), rtol=2e-6, atol=5e-7, equal_nan=True
    )


def test_reductions_take_every_element_once_and_nothing_beyond_the_end(run: Run) -> None:
    torch.manual_seed(1)
    x = torch.randn(4, COLUMNS) * 3 + 1000
    x[1, 7:200] = -math.inf
    x[3, :] = -math.inf
    found = torch.empty(4, 9)

    run("rows", 4, x, found, COLUMNS)

    y = x.double()
    expected = torch.stack([y.sum(1), y.amax(1), y.amin(1)], dim=1)
    torch.testing.assert_close(found[:, :3].double(), expected, rtol=1e-6, atol=0.0)
    mean, variance = y.mean(1), y.var(1, unbiased=False)
    for at in (3, 5):
        kept = [0, 2]  # the others have infinities
        torch.testing.assert_close(found[kept, at].double(), mean[kept], rtol=1e-6, atol=0.0)
        torch.testing.assert_close(
            found[kept, at + 1].double(), variance[kept], rtol=2e-4, atol=0.0
        )
    assert found[:, 7].tolist() == x.amax(1).tolist()
    torch.testing.assert_close(found[:, 8].double(), y.logsumexp(1), rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("columns", [5, 16, 45])
def test_half_and_bfloat16_round_as_pytorch_does(run: Run, columns: int) -> None:
    torch.manual_seed(2)
    x = torch.randn(columns)
    x[0] = math.nan
    h, b = x.half(), x.bfloat16()
    h_out, b_out = torch.full_like(h, 7), torch.full_like(b, 7)

    run("formats", 1, h, b, h_out, b_out, columns)

    torch.testing.assert_close(h_out, (h.float() * 3).half(), rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(b_out, (b.float() * 3).bfloat16(), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 5, 30), (13, 32, 1), (19, 75, 20), (9, 17, 2)])
def test_a_product_of_any_size_writes_each_element_once(run: Run, m: int, n: int, k: int) -> None:
    torch.manual_seed(3)
    a, b = torch.randn(m, k), torch.randn(k, n)
    guard = 16
    panels = torch.full((k * n + guard,), 7.0)
    out = torch.full((m * n + guard,), 7.0)
    count = math.ceil(n / 32)

    run("pack_kn", count, b, panels, n, k)
    run("product", count * math.ceil(m / 8), a, panels, out, m, n, k)

    expected = (a.double() @ b.double()).float()
    torch.testing.assert_close(out[: m * n].view(m, n), expected, rtol=1e-5, atol=1e-5)
    assert panels[-guard:].tolist() == out[-guard:].tolist() == [7.0] * guard


@pytest.mark.parametrize("name", NAMES)
def test_a_short_candidate_over_blocks_passes_with_full_trust(
    name: str, local_evaluator: Callable[[str], LocalEvaluator]
) -> None:
    text = (FOLDER / f"{name}.sycl.md").read_text("utf-8")
    task = read_task(FOLDER / f"{name}.py")
    small = tuple(replace(w, held_out=False) for w in task.workloads if w.held_out)
    request = EvaluationRequest(
        task=replace(task, workloads=small), device="sycl", source=split(text), limits=LIMITS
    )

    verdict = asyncio.run(local_evaluator("sycl").evaluate(request))

    assert verdict.passed, [finding.message for finding in verdict.findings]
    assert verdict.trust is Trust.FULL
    warnings = [f for f in verdict.findings if f.severity is not Severity.INFO]
    assert {f.kind for f in warnings} <= OF_THE_REFERENCE.get(name, set()) | {
        FindingKind.NOISY_TIMING
    }
    assert check_source(split(text).device_code, "sycl") == ()
    assert len([line for line in text.splitlines() if line.strip()]) <= MOST_LINES


@pytest.mark.parametrize(
    ("block", "name"), [("rows", "residual_rmsnorm"), ("linear_example", "linear_gelu")]
)
def test_prompts_show_candidates_that_are_judged_here(block: str, name: str) -> None:
    shown = split(language_named("sycl").blocks(block))
    judged = split((FOLDER / f"{name}.sycl.md").read_text("utf-8"))

    assert _lines(shown.device_code) == _lines(judged.device_code)
    assert _lines(shown.plan) == _lines(judged.plan.replace("linear_weight", "weight"))


def _lines(text: str) -> list[str]:
    return [line for line in text.replace("linear_bias", "bias").splitlines() if line.strip()]

"""The precision audit: what an output's errors against float64 tell of how it was computed."""

import dataclasses
import math
from collections.abc import Callable

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.messages.judge import PrecisionReply
from evaluator_svc.pipeline.correctness.precision import PrecisionResult, assess_precision
from evaluator_svc.policy import ObjectFacts
from kernel_foundry.domain.admission import Admission, Distribution, ValueRange
from kernel_foundry.domain.check import CheckResult
from kernel_foundry.domain.evaluation import PrecisionAudit, effective_bits
from kernel_foundry.domain.finding import FindingKind, Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Precision, Task, Tolerance
from tests.judge.judge_tasks import DEVICE, SOFTMAX, RunnerSide, make_task

Drawn = Callable[..., RunnerSide]
Kernel = Callable[..., torch.Tensor]

WIDE = Tolerance(rtol=1e-2, atol=0.5)
"""Wide enough for 16 bits: outputs of `PRODUCT` are about 20."""

PRODUCT = make_task(
    "def forward(self, a, b):\n    return a @ b",
    inputs="[torch.randn(rows, cols), torch.randn(cols, rows)]",
    rows=64,
    cols=512,
    tolerance=WIDE,
)
SUM_OF_SQUARES = make_task(
    "def forward(self, x):\n    return x.square().mean(-1)",
    rows=64,
    cols=4096,
)
VARIANCE = make_task("def forward(self, x):\n    return x.var(-1, unbiased=False)", cols=4096)


def audited(judge: Judge, drawn: Drawn, task: Task, kernel: Kernel, *names: str) -> PrecisionReply:
    runner = drawn(task)
    runner.run(kernel, *names)
    return judge.audit_precision(runner.draw.draw)


def judged(
    answer: PrecisionReply,
    task: Task,
    *formats: str,
    is_gpu: bool = False,
    rounding: str = "float32",
    is_right: bool = True,
    inputs: str = "",
    rough: tuple[str, ...] = (),
) -> PrecisionResult:
    device = dataclasses.replace(DEVICE, language=Language.CUDA) if is_gpu else DEVICE
    admission = Admission(
        task=task.digest, device=device, workloads=(), tolerance=WIDE, rounding=rounding
    )
    return assess_precision(
        answer,
        task=task,
        admission=admission,
        workload="w",
        facts=ObjectFacts(formats=formats, rough_functions=rough),
        is_right=is_right,
        inputs=inputs,
    )


def cut(value: torch.Tensor, bits: int) -> torch.Tensor:
    """Return `value` with mantissas of `bits` bits, by integer operations alone."""
    lost = 24 - bits
    return ((value.view(torch.int32) + (1 << (lost - 1))) >> lost << lost).view(torch.float32)


def split_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a product of three bfloat16 parts for each operand, added up in float32."""

    def parts(value: torch.Tensor) -> list[torch.Tensor]:
        first = value.bfloat16().float()
        second = (value - first).bfloat16().float()
        return [first, second, (value - first - second).bfloat16().float()]

    pairs = [(i, j) for i in range(3) for j in range(3) if i + j < 3]
    left, right = parts(a), parts(b)
    return sum((left[i] @ right[j] for i, j in reversed(pairs)), torch.zeros(()))


def one_pass_variance(x: torch.Tensor) -> torch.Tensor:
    return x.square().mean(-1) - x.mean(-1).square()


def fast_softmax(x: torch.Tensor) -> torch.Tensor:
    """Return a softmax whose exponentials are off by up to four units in the last place."""
    power = torch.exp(x - x.amax(-1, keepdim=True))
    power = power * (1 + 2**-22 * torch.sin(1e6 * x))
    return power / power.sum(-1, keepdim=True)


@pytest.mark.parametrize(
    ("task", "kernel", "names"),
    [
        pytest.param(PRODUCT, torch.matmul, "ab", id="float32"),
        pytest.param(
            PRODUCT,
            lambda a, b: sum(
                (a[:, k : k + 8] @ b[k : k + 8] for k in range(0, 512, 8)), torch.zeros(())
            ),
            "ab",
            id="another order",
        ),
        pytest.param(PRODUCT, split_product, "ab", id="split into bfloat16"),
        pytest.param(VARIANCE, one_pass_variance, "x", id="one-pass variance"),
        pytest.param(
            dataclasses.replace(make_task(SOFTMAX), tolerance=WIDE),
            fast_softmax,
            "x",
            id="fast exponential",
        ),
    ],
)
def test_honest_ways_to_compute_in_float32_pass(
    judge: Judge, drawn: Drawn, task: Task, kernel: Kernel, names: str
) -> None:
    answer = audited(judge, drawn, task, kernel, *names)

    assert answer.audit is not None
    assert answer.audit.effective_bits > 18
    assert answer.audit.median_error <= answer.audit.p99_error <= answer.audit.max_error
    passed = judged(answer, task, "float16", "bfloat16")  # whatever its object code uses
    assert (passed.check.result, passed.findings) == (CheckResult.PASSED, ())


@pytest.mark.parametrize(
    ("kernel", "bits"),
    [
        pytest.param(lambda a, b: (a.half() @ b.half()).float(), 11, id="float16"),
        pytest.param(lambda a, b: (a.bfloat16() @ b.bfloat16()).float(), 8, id="bfloat16"),
        pytest.param(lambda a, b: cut(a, 11) @ cut(b, 11), 11, id="TF32 by integer operations"),
    ],
)
def test_sixteen_bits_inside_a_float32_task_show_where_the_tolerance_is_wide(
    judge: Judge, drawn: Drawn, kernel: Kernel, bits: int
) -> None:
    runner = drawn(PRODUCT)
    runner.run(kernel, "a", "b")
    answer = judge.audit_precision(runner.draw.draw)

    assert not judge.verify(runner.draw.draw).is_wrong
    assert answer.audit is not None
    assert answer.audit.effective_bits == pytest.approx(bits, abs=2)
    named = judged(answer, PRODUCT, "float16")
    assert named.is_refused
    assert [(f.kind, f.severity) for f in named.findings] == [
        (FindingKind.PRECISION, Severity.ERROR)
    ]
    assert "computes in float16 in a float32 task" in named.findings[0].message
    hidden = judged(answer, PRODUCT)
    assert (hidden.is_refused, hidden.check.result) == (False, CheckResult.SUSPECT)
    assert hidden.findings[0].kind is FindingKind.SUSPICION


def _border_left_out(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    result = a @ b
    result[:, -3:] = 0.0
    return result


@pytest.mark.parametrize(
    ("kernel", "is_named"),
    [
        pytest.param(lambda a, b: (a.half() @ b.half()).float(), True, id="float16"),
        pytest.param(_border_left_out, False, id="a border left out"),
        pytest.param(lambda a, b: (a @ b).flip(1), False, id="in another order"),
    ],
)
def test_a_wrong_result_is_named_by_its_format_where_that_is_the_reason(
    judge: Judge, drawn: Drawn, kernel: Kernel, is_named: bool
) -> None:
    """A kernel that has 16-bit types may be wrong for another reason."""
    runner = drawn(PRODUCT)
    runner.run(kernel, "a", "b")
    found = judged(judge.audit_precision(runner.draw.draw), PRODUCT, "float16", is_right=False)
    assert found.is_refused == is_named


@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(lambda x: x.half().float().square().mean(-1), id="float16"),
        pytest.param(lambda x: cut(x, 11).square().mean(-1), id="integer operations"),
    ],
)
def test_averaging_hides_no_rounded_mantissas(judge: Judge, drawn: Drawn, kernel: Kernel) -> None:
    """The errors of ordinary mantissas cancel in a mean of 4096; telling ones do not."""
    x = torch.randn(64, 4096, generator=torch.Generator().manual_seed(1))
    ordinary = (kernel(x) - x.square().mean(-1)).abs() / x.square().mean(-1)
    assert float(ordinary.max()) < 5e-5
    runner = drawn(SUM_OF_SQUARES)
    runner.run(kernel, "x")

    assert judge.verify(runner.draw.draw).is_wrong
    assert judged(judge.audit_precision(runner.draw.draw), SUM_OF_SQUARES, "float16").is_refused


def _gate_of_singles(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x.float()).double().mean()


@pytest.mark.parametrize(
    ("kernel", "result"),
    [
        pytest.param(_gate_of_singles, CheckResult.SUSPECT, id="terms of float32"),
        pytest.param(lambda x: torch.sigmoid(x).mean(), CheckResult.PASSED, id="as it is"),
        pytest.param(
            lambda x: torch.sigmoid(x).cumsum(-1)[:, -1].cumsum(0)[-1] / x.numel(),
            CheckResult.PASSED,
            id="in one chain",
        ),
    ],
)
def test_a_mean_hides_no_terms_of_float32_in_a_task_of_float64(
    judge: Judge, drawn: Drawn, kernel: Kernel, result: CheckResult
) -> None:
    task = make_task(
        "def forward(self, x):\n    return torch.sigmoid(x).mean()",
        inputs="[torch.randn(rows, cols, dtype=torch.float64)]",
        rows=512,
        cols=1024,
    )
    found = judged(audited(judge, drawn, task, kernel, "x"), task, rounding="float64")
    assert found.check.result is result


def _gate_by_a_series(x: torch.Tensor) -> torch.Tensor:
    """Return a sigmoid whose exponential has ten terms."""
    whole = (-x * math.log2(math.e)).round()
    rest = -x - whole * math.log(2.0)
    power = sum((rest**n / math.factorial(n) for n in range(11)), torch.zeros(()).double())
    return 1.0 / (1.0 + torch.ldexp(power, whole))


@pytest.mark.parametrize(
    ("kernel", "result"),
    [
        pytest.param(_gate_by_a_series, CheckResult.SUSPECT, id="ten terms"),
        pytest.param(torch.sigmoid, CheckResult.PASSED, id="as it is"),
        pytest.param(lambda x: 0.5 + 0.5 * (0.5 * x).tanh(), CheckResult.PASSED, id="by tanh"),
        pytest.param(
            lambda x: 1.0 / (1.0 + torch.exp2(-1.4426950408889634 * x)),
            CheckResult.PASSED,
            id="by powers of two",
        ),
    ],
)
def test_functions_of_float64_alone_are_held_to_nearly_all_bits(
    judge: Judge, drawn: Drawn, kernel: Kernel, result: CheckResult
) -> None:
    task = make_task(
        "def forward(self, x):\n    return torch.sigmoid(x)",
        inputs="[torch.randn(rows, cols, dtype=torch.float64)]",
        rows=64,
        cols=128,
    )
    found = judged(audited(judge, drawn, task, kernel, "x"), task, rounding="float64")
    assert found.check.result is result


_TOKENS = make_task(
    """
def __init__(self):
    super().__init__()
    self.table = nn.Parameter(torch.randn(64, cols))
    self.weight = nn.Parameter(torch.randn(cols, cols) / cols**0.5)

def forward(self, tokens):
    return (self.table[tokens] @ self.weight).square().mean()
""",
    inputs="[torch.randint(0, 64, (rows,))]",
    rows=256,
    cols=128,
)


@pytest.mark.parametrize("is_narrow", [False, True])
def test_parameters_tell_of_rounding_where_no_input_is_a_float(
    judge: Judge, drawn: Drawn, *, is_narrow: bool
) -> None:
    def energy(tokens: torch.Tensor, table: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        if is_narrow:
            table, weight = table.half().float(), weight.half().float()
        return (table[tokens] @ weight).square().mean()

    answer = audited(judge, drawn, _TOKENS, energy, "tokens", "table", "weight")
    assert judged(answer, _TOKENS, "float16").is_refused == is_narrow


_TURNED = make_task(
    """
def forward(self, x, y):
    place = torch.arange(rows, device=x.device).float()[:, None] ** 2
    return torch.cos(place * 0.7) * x + torch.sin(place * 0.7) * y
""",
    inputs="[torch.randn(rows, cols), torch.randn(rows, cols)]",
    rows=4096,
    cols=64,
    tolerance=Tolerance(rtol=0.5, atol=4.0),
)


@pytest.mark.parametrize("how", ["float16", "float32", "another order"])
def test_inexact_rows_of_the_reference_excuse_no_other_rows(
    judge: Judge, drawn: Drawn, how: str
) -> None:
    """A phase of millions has few bits left in float32, and one of a few has all."""

    def turned(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        place = torch.arange(4096, device=x.device).float()[:, None]
        # In another order even the honest are wrong in the same rows.
        phase = place * (place * 0.7) if how == "another order" else place**2 * 0.7
        if how == "float16":
            x, y = x.half().float(), y.half().float()
        return torch.cos(phase) * x + torch.sin(phase) * y

    answer = audited(judge, drawn, _TURNED, turned, "x", "y")
    assert answer.audit is not None
    assert answer.audit.reference_rms_error > 2**-14
    assert (answer.lines is not None) == (how == "float16")
    found = judged(answer, _TURNED, "float16")
    assert found.is_refused == (how == "float16")
    if how == "float16":
        assert "in the rows where the reference is most exact" in found.findings[0].message


def test_whole_numbers_have_no_precision(judge: Judge, drawn: Drawn) -> None:
    task = make_task("def forward(self, x):\n    return x.argmax(-1)")
    answer = audited(judge, drawn, task, lambda x: x.argmax(-1), "x")

    assert answer == PrecisionReply(note="the outputs are whole numbers")
    assert judged(answer, task).check.result is CheckResult.SKIPPED


def test_a_16_bit_task_has_figures_and_is_not_refused_for_them(judge: Judge, drawn: Drawn) -> None:
    task = dataclasses.replace(make_task(SOFTMAX), precision=Precision.FP16)
    answer = audited(judge, drawn, task, lambda x: torch.softmax(x, -1), "x")

    assert answer.audit is not None
    assert 9 < answer.audit.effective_bits < 14
    assert judged(answer, task, "float16", rounding="float16").check.result is CheckResult.PASSED


@pytest.mark.parametrize(
    ("is_gpu", "bits", "refused"), [(True, 11.5, False), (True, 8.0, True), (False, 11.5, True)]
)
def test_tf32_counts_as_precise_where_it_is_allowed_and_there_is_any(
    is_gpu: bool, bits: float, refused: bool
) -> None:
    task = dataclasses.replace(PRODUCT, tf32=True)
    rms = 2.0**-bits
    audit = PrecisionAudit(
        median_error=rms,
        p99_error=rms,
        max_error=rms,
        rms_error=rms,
        reference_rms_error=1e-7,
        effective_bits=effective_bits(rms),
        element_count=1,
    )

    answer = PrecisionReply(audit=audit)
    assert judged(answer, task, "bfloat16", is_gpu=is_gpu).is_refused == refused


def test_an_ill_conditioned_reference_excuses_its_candidates() -> None:
    audit = PrecisionAudit(
        median_error=1e-3,
        p99_error=1e-3,
        max_error=1e-3,
        rms_error=1e-3,
        reference_rms_error=5e-4,
        effective_bits=effective_bits(1e-3),
        element_count=1,
    )
    judgement = judged(PrecisionReply(audit=audit), PRODUCT, "float16")
    assert judgement.check.result is CheckResult.PASSED


def test_a_reference_that_is_slow_in_float64_is_run_for_cause_only(
    judge: Judge, drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    if judge._memory.torch_device.type == "cuda":
        pytest.skip("the budget is patched for the host")
    monkeypatch.setattr("evaluator_svc.judge.comparison.precision._BUDGET_SECONDS", {"cpu": -1.0})
    # A task of its own, whose times nobody else has noted.
    task = dataclasses.replace(PRODUCT, instructions="slow", training=False)

    left_out = audited(judge, drawn, task, torch.matmul, "a", "b")
    assert left_out.audit is None
    assert "takes too long in float64" in left_out.note
    assert judged(left_out, task).check.result is CheckResult.PASSED
    looked_at = audited(judge, drawn, task, lambda a, b: (a.half() @ b.half()).float(), "a", "b")
    assert looked_at.audit is not None


def test_a_task_may_ask_for_bits(judge: Judge, drawn: Drawn) -> None:
    def split(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        high, top = a.bfloat16().float(), b.bfloat16().float()
        low, rest = (a - high).bfloat16().float(), (b - top).bfloat16().float()
        return high @ top + (high @ rest + low @ top)

    answer = audited(judge, drawn, PRODUCT, split, "a", "b")
    assert answer.audit is not None
    assert answer.audit.eager_bits is not None
    assert 14 < answer.audit.effective_bits < answer.audit.eager_bits
    assert judged(answer, PRODUCT, "bfloat16").check.result is CheckResult.PASSED

    strict = dataclasses.replace(PRODUCT, least_bits=20.0)
    refused = judged(answer, strict, "bfloat16")
    (finding,) = refused.findings
    assert refused.is_refused
    assert (finding.kind, finding.severity) == (FindingKind.PRECISION, Severity.ERROR)
    assert "asks for 20" in finding.message
    # Outputs that are wrong anyway are not put down to their bits.
    assert not judged(answer, strict, is_right=False).is_refused


def test_bits_of_eager_pytorch_are_those_of_the_tasks_precision(judge: Judge, drawn: Drawn) -> None:
    task = dataclasses.replace(PRODUCT, precision=Precision.BF16)
    answer = audited(judge, drawn, task, torch.matmul, "a", "b")

    assert answer.audit is not None
    assert answer.audit.eager_bits == pytest.approx(answer.audit.effective_bits, abs=0.5)


FEW = ValueRange(distribution=Distribution.FEW, factor=16.0, is_binding=True)


def few_bits(
    judge: Judge, task: Task, kernel: Kernel, *names: str, seed: int = 11
) -> PrecisionReply:
    """Return the audit of a kernel on inputs of which one has few elements that are not zero."""
    message, descriptors = judge.draw(
        task, task.workloads[0].name, WIDE, (seed,), (FEW.distribution,)
    )
    try:
        RunnerSide(judge, message, descriptors).run(kernel, *names)
        (verdict,) = judge.verify_ranges(message.draw, (FEW,)).verdicts
    finally:
        judge.release(message.draw)
    assert verdict.audit is not None, verdict
    return PrecisionReply(audit=verdict.audit)


def rough_tanh(x: torch.Tensor) -> torch.Tensor:
    """Return tangents that are off by up to 2^-11 of themselves, as the hardware's own are."""
    return torch.tanh(x) * (1 + 2**-11 * torch.sin(3e4 * x))


ENERGY = make_task("def forward(self, x):\n    return torch.tanh(x).square().mean(-1)", cols=16384)


def test_a_mean_hides_no_rough_function_where_few_terms_are_left(judge: Judge) -> None:
    """Their errors have 16 bits and more in the mean of ordinary rows."""

    def energy(x: torch.Tensor) -> torch.Tensor:
        return rough_tanh(x).square().mean(-1)

    x = torch.randn(33, 16384, generator=torch.Generator().manual_seed(1))
    exact = torch.tanh(x.double()).square().mean(-1)
    assert effective_bits(float(((energy(x) - exact) / exact).square().mean().sqrt())) > 16

    found = few_bits(judge, ENERGY, energy, "x")
    assert found.audit is not None
    assert found.audit.effective_bits < 14
    refused = judged(found, ENERGY, rough=("tanh.approx",), inputs="few")
    assert refused.is_refused
    assert "computes in tanh.approx in a float32 task" in refused.findings[0].message
    serial = few_bits(
        judge, ENERGY, lambda x: torch.tanh(x).square().cumsum(-1)[:, -1] / 16384, "x"
    )
    assert serial.audit is not None
    assert serial.audit.effective_bits > 17


@pytest.mark.parametrize("seed", [11, 12])
@pytest.mark.parametrize("precision", [Precision.FP16, Precision.BF16])
def test_few_terms_tell_8_bit_operands_from_16_bit_ones(
    judge: Judge, precision: Precision, seed: int
) -> None:
    """However 16-bit products are added up: they keep 8.5 bits and more."""
    task = make_task(
        "def forward(self, a, b):\n    return a @ b",
        inputs="[torch.rand(rows, cols), torch.rand(cols, rows)]",
        rows=256,
        cols=256,
        tolerance=WIDE,
    )
    task = dataclasses.replace(task, precision=precision)
    rounding = {Precision.FP16: "float16", Precision.BF16: "bfloat16"}[precision]

    def eight_bits(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (cut(a.float(), 4) @ cut(b.float(), 4)).to(a.dtype)

    def added_in_16_bits(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(len(a), b.shape[1], dtype=a.dtype, device=a.device)
        for k in range(a.shape[1]):
            total += a[:, k : k + 1] * b[k : k + 1]
        return total

    for kernel in (torch.matmul, added_in_16_bits):
        answer = few_bits(judge, task, kernel, "a", "b", seed=seed)
        honest = judged(answer, task, rounding=rounding, inputs="few")
        assert honest.check.result is CheckResult.PASSED, honest
    found = few_bits(judge, task, eight_bits, "a", "b", seed=seed)
    hidden = judged(found, task, rounding=rounding, inputs="few")
    assert hidden.check.result is CheckResult.SUSPECT
    assert judged(found, task, "float8", rounding=rounding, inputs="few").is_refused


def test_what_no_honest_kernel_computes_in_is_a_suspicion_though_no_draw_shows_it(
    judge: Judge, drawn: Drawn
) -> None:
    """A branch may keep it for inputs that look like those of timed calls."""
    half = dataclasses.replace(make_task(SOFTMAX), precision=Precision.FP16)
    answer = audited(judge, drawn, half, lambda x: torch.softmax(x, -1), "x")
    assert judged(answer, half, "float8", rounding="float16").check.result is CheckResult.SUSPECT
    assert judged(answer, half, "float16", rounding="float16").check.result is CheckResult.PASSED
    wide = audited(judge, drawn, make_task(SOFTMAX), lambda x: torch.softmax(x, -1), "x")
    rough = judged(wide, make_task(SOFTMAX), rough=("tanh.approx",))
    assert (rough.check.result, rough.is_refused) == (CheckResult.SUSPECT, False)

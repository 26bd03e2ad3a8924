"""Every kind of bad candidate has its own clear outcome, and costs nothing but itself."""

import pytest

from evaluator_svc.pipeline.correctness import value_ranges
from evaluator_svc.processes.ask_candidate import ask_candidate
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.request import EvaluationLimits

pytestmark = pytest.mark.sycl

HEAD = """extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scaled_relu(const float* __restrict__ x, const float* __restrict__ weight,
                 float* __restrict__ out, int count, int cols) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
"""

BODY = "  if (i < count) out[i] = sycl::fmax(x[i], 0.0f) * weight[i % cols];"

PLAN = """def launch(x, weight, out):
    rows, cols = x.shape
    scaled_relu[cdiv(rows * cols, 64), 64](x, weight, out, rows * cols, cols)
"""


def candidate(*, body: str = BODY, plan: str = PLAN, head: str = HEAD) -> str:
    """Return a candidate's text; what is left out is right."""
    return f"```sycl\n{head}{body}\n}}\n```\n\n```python\n{plan}```\n"


_TEMPLATES = """
template <int N, int M> struct Grow {
  static constexpr long value = Grow<N - 1, 2 * M>::value + Grow<N - 1, 2 * M + 1>::value;
};
template <int M> struct Grow<0, M> { static constexpr long value = M; };
"""

CASES = {
    "another language": (
        candidate().replace("```sycl", "```cuda"),
        EvaluationOutcome.EXTRACTION_FAILED,
        FindingKind.EXTRACTION,
        None,
    ),
    "plan syntax error": (
        candidate(plan="def launch(x, weight, out)\n    pass\n"),
        EvaluationOutcome.PLAN_ERROR,
        FindingKind.PLAN,
        1,
    ),
    "unknown kernel": (
        candidate(plan=PLAN.replace("scaled_relu[", "other[")),
        EvaluationOutcome.PLAN_ERROR,
        FindingKind.PLAN,
        3,
    ),
    "argument count": (
        candidate(plan=PLAN.replace(", cols)", ")")),
        EvaluationOutcome.PLAN_ERROR,
        FindingKind.PLAN,
        3,
    ),
    "scalar does not fit": (
        candidate(plan=PLAN.replace(", cols)", ", 2 ** 40)")),
        EvaluationOutcome.PLAN_ERROR,
        FindingKind.PLAN,
        3,
    ),
    "30 GB scratch": (
        candidate(plan=PLAN.replace("(x, weight", "(empty((30 * 10**9,), uint8), weight")),
        EvaluationOutcome.PLAN_ERROR,
        FindingKind.PLAN,
        None,
    ),
    "C++ syntax error": (
        candidate(body="  if (i < count) out[i] = x[i] +;"),
        EvaluationOutcome.COMPILE_ERROR,
        FindingKind.COMPILE_ERROR,
        5,
    ),
    "out of bounds": (
        candidate(body="  out[(long)i * 1000000000L + 1000000000000L] = 1.0f;"),
        EvaluationOutcome.CRASHED,
        FindingKind.ILLEGAL_ACCESS,
        None,
    ),
    "additions of all groups without atomics": (
        candidate(
            body="  out[syclext::this_work_item::get_nd_item<1>().get_local_id(0)] += x[i];",
        ),
        EvaluationOutcome.REJECTED,
        FindingKind.POLICY,
        None,
    ),
    "output never written": (
        candidate(body="  if (count < 0) out[i] = x[i];"),
        EvaluationOutcome.WRONG_RESULT,
        FindingKind.OUTPUT_NOT_WRITTEN,
        None,
    ),
    "tail never written": (
        candidate(plan=PLAN.replace("cdiv(rows * cols, 64)", "rows * cols // 64 - 1")),
        EvaluationOutcome.WRONG_RESULT,
        None,
        None,
    ),
    "NaN output": (
        candidate(body="  if (i < count) out[i] = NAN;"),
        EvaluationOutcome.WRONG_RESULT,
        FindingKind.NOT_A_NUMBER,
        None,
    ),
    "wrong on another shape": (
        candidate(body="  if (i < count) out[i] = sycl::fmax(x[i], 0.0f) * weight[i % 96];"),
        EvaluationOutcome.WRONG_RESULT,
        None,
        None,
    ),
    "input modified": (
        candidate(
            body="  if (i < count) { out[i] = sycl::fmax(x[i], 0.0f) * weight[i % cols];\n"
            "    const_cast<float*>(x)[i] = 0.0f; }"
        ),
        EvaluationOutcome.WRONG_RESULT,
        FindingKind.INPUT_MODIFIED,
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_candidate_has_its_outcome(judged, case):
    """Outcome, finding and line are as expected; the judge stays."""
    text, outcome, kind, line = CASES[case]
    judge = judged.judge_process
    evaluation = judged(text)
    assert evaluation.outcome is outcome, evaluation.findings
    if kind is not None:
        found = [f for f in evaluation.findings if f.kind is kind]
        assert found, evaluation.findings
        assert line is None or line in [f.line for f in found]
    if outcome is EvaluationOutcome.CRASHED:
        assert (
            "Kernels, in order: scaled_relu; tensors: x float32 (" in evaluation.findings[0].message
        )
    assert judged.judge_process == judge


def test_a_fault_of_the_plan_is_told_beside_one_of_the_compiler(judged):
    text = candidate(body="  if (i < count) out[i] = x[i] +;", plan=PLAN.replace("relu[", "rel["))
    verdict = judged(text)
    assert verdict.outcome is EvaluationOutcome.COMPILE_ERROR
    kinds = [finding.kind for finding in verdict.findings]
    assert (kinds[0], kinds[-1]) == (FindingKind.COMPILE_ERROR, FindingKind.PLAN)


def test_a_hung_kernel_costs_its_deadline_only(judged):
    """An endless loop ends at its limit, and the next candidate is judged at once."""
    judge = judged.judge_process
    body = "  volatile int go = 1;\n  while (go) {}\n  out[i] = x[i];"
    evaluation = judged(candidate(body=body), limits=EvaluationLimits(run_seconds=0.2))
    assert evaluation.outcome is EvaluationOutcome.TIMEOUT
    assert [f.kind for f in evaluation.findings] == [FindingKind.TIME_LIMIT]
    assert judged(judged.right).passed
    assert judged.judge_process == judge


def test_calls_on_unusual_values_have_the_time_that_calls_took_before(judged, monkeypatch):
    """A slow kernel has more than a run's limit for them: they are many calls of one run."""
    given_seconds = []

    def ask(*args, seconds, **named):
        given_seconds.append(seconds)
        return ask_candidate(*args, seconds=seconds, **named)

    monkeypatch.setattr(value_ranges, "ask_candidate", ask)
    assert judged(judged.right, limits=EvaluationLimits(run_seconds=5.0)).passed
    assert given_seconds
    assert min(given_seconds) > 5.0


def test_lanes_that_the_compiler_parts_are_named_where_a_kernel_does_not_end(judged):
    """As it is written all lanes have the row of the first one; the compiler lets others wait."""
    head = HEAD.replace("int count, int cols", "int* next, int count, int cols")
    body = """
  const auto sg = syclext::this_work_item::get_sub_group();
  const int lane = sg.get_local_id()[0];
  sycl::atomic_ref<int, sycl::memory_order::relaxed, sycl::memory_scope::device> queue(*next);
  for (;;) {
    const int row = sycl::group_broadcast(sg, lane == 0 ? queue.fetch_add(1) : 0, 0);
    if (row >= count) return;
    if (lane == 0) out[row] = sycl::fmax(x[row], 0.0f) * weight[row % cols];
  }"""
    plan = """def launch(x, weight, out):
    rows, cols = x.shape
    next_row = zeros(1, int32)
    scaled_relu[2, 16](x, weight, out, next_row, rows * cols, cols)
"""
    limits = EvaluationLimits(build_seconds=20.0, run_seconds=0.5, timing_seconds=0.05)
    evaluation = judged(candidate(head=head, body=body, plan=plan), limits=limits)
    assert evaluation.outcome is EvaluationOutcome.TIMEOUT, evaluation.findings
    found = [f for f in evaluation.findings if f.kind is FindingKind.TIME_LIMIT]
    assert any("group_barrier" in finding.hint for finding in found), found


def test_groups_that_wait_for_later_ones_are_found_though_all_run_at_once(judged):
    """Two of them do where there are two threads; one after the other they would wait for ever."""
    head = HEAD.replace("int count, int cols", "unsigned* begun, int count, int cols")
    body = """
  sycl::atomic_ref<unsigned, sycl::memory_order::acq_rel, sycl::memory_scope::device> all(*begun);
  all.fetch_add(1);
  while (all.load() < 2) {
  }
  for (int j = i; j < count; j += 2) out[j] = sycl::fmax(x[j], 0.0f) * weight[j % cols];"""
    plan = """def launch(x, weight, out):
    rows, cols = x.shape
    begun = zeros(1, uint32)
    scaled_relu[2, 1](x, weight, out, begun, rows * cols, cols)
"""
    limits = EvaluationLimits(build_seconds=20.0, run_seconds=1.0, timing_seconds=0.05)
    evaluation = judged(candidate(head=head, body=body, plan=plan), limits=limits)
    assert evaluation.outcome is EvaluationOutcome.TIMEOUT, evaluation.findings


def test_an_endless_compile_ends_at_its_deadline(judged):
    """Template recursion is ended as a time-out, and the next candidate is judged."""
    text = candidate(head=_TEMPLATES + HEAD, body="  out[i] = Grow<26, 1>::value;")
    evaluation = judged(text, limits=EvaluationLimits(build_seconds=1.0))
    assert evaluation.outcome is EvaluationOutcome.TIMEOUT, evaluation.findings
    assert evaluation.findings[0].kind is FindingKind.TIME_LIMIT
    assert judged(judged.right).passed


def test_a_file_of_the_host_is_neither_included_nor_shown(judged):
    """No line of the file is found anywhere in the verdict."""
    evaluation = judged(candidate(head='#include "/etc/passwd"\n' + HEAD))
    assert evaluation.outcome is EvaluationOutcome.REJECTED
    assert "root:" not in repr(evaluation)


def test_nothing_of_a_rejected_candidate_ran(judged, tmp_path):
    """A rejected candidate has not left the file that it wanted to write."""
    mark = tmp_path / "was-here"
    head = 'extern "C" SYCL_EXTERNAL int system(const char*);\n' + HEAD
    evaluation = judged(candidate(head=head, body=f'  out[i] = system("touch {mark}");'))
    assert evaluation.outcome is EvaluationOutcome.REJECTED
    assert FindingKind.POLICY in [f.kind for f in evaluation.findings]
    assert not mark.exists()

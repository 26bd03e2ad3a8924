"""What NVRTC says of candidates that do not compile, from logs it has just written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.diagnosis import compile_findings
from kernel_foundry.domain.finding import Finding, FindingKind
from tests.behaviour import nvrtc

needs_nvrtc = pytest.mark.skipif(bool(nvrtc.absence()), reason=nvrtc.absence() or "NVRTC is there")

CODE = """template <int N> __device__ float f(float x) { return x + N; }

extern "C" __global__ void k(float* out, int n) {
  int unused = 3;
  out[0] = undefined_name + 1;
\tout.x = 2;
  out[0] = TILE_K;
  half2 a = __hadd2(n, n);
  float b[n];
}
"""


def findings(code: str) -> tuple[Finding, ...]:
    built = nvrtc.build(code)
    assert not built.cubin
    return compile_findings(built.log, code)


@needs_nvrtc
def test_errors_carry_the_candidates_own_line_once() -> None:
    found = findings(CODE)

    errors = [f for f in found if f.kind is FindingKind.COMPILE_ERROR]
    assert [f.line for f in errors] == [5, 6, 7, 8, 9]
    assert errors[0].message.endswith("out[0] = undefined_name + 1;")
    assert all(f.hint for f in errors)
    assert "TUNE" in errors[2].hint
    assert found[-1].kind is FindingKind.COMPILE_WARNING


@needs_nvrtc
@pytest.mark.parametrize(
    ("code", "words", "hint"),
    [
        ("#include <cuda/nothing>\n", "cannot open source file", "cuda/std"),
        (
            'extern "C" __global__ void k(float* o, int n)'
            "{ __shared__ float t[100000]; t[n] = o[n]; __syncthreads(); o[n] = t[n + 1]; }",
            "too much shared data",
            "smaller",
        ),
        (
            'extern "C" __global__ void k(int n) { asm volatile("foo.bar %0;" :: "r"(n)); }',
            "inline assembly: Unknown modifier '.bar'",
            "PTX",
        ),
        (
            'extern "C" __device__ void other(); extern "C" __global__ void k() { other(); }',
            "Unresolved extern function 'other'",
            "define",
        ),
        (
            'extern "C" __global__ void k(int n) { static_assert(sizeof(n) == 3, "bad"); }',
            "static assertion failed",
            "WHERE",
        ),
    ],
)
def test_each_failure_has_its_words_and_a_hint(code: str, words: str, hint: str) -> None:
    first = findings(code)[0]

    assert words in first.message
    assert hint in first.hint


@needs_nvrtc
def test_a_headers_error_names_the_line_that_led_there() -> None:
    code = """#include <cub/block/block_reduce.cuh>
extern "C" __global__ void k(float* out) {
  using Reduce = cub::BlockReduce<float, -3>;
  __shared__ typename Reduce::TempStorage s;
  out[0] = Reduce(s).Sum(out[1]);
}
"""
    found = findings(code)

    assert found[0].line == 4


def test_lines_of_other_files_are_never_quoted() -> None:
    log = '/etc/passwd(1): error: expected a ";"\n  root:x:0:0:root\n  ^\n'

    assert not any("root" in f.message for f in compile_findings(log, CODE))


def test_a_line_that_the_candidate_does_not_have_is_not_believed() -> None:
    log = (
        "candidate.cu(90): error: odd\n  something\n  ^\ncandidate.cu(5): error: odder\n  no\n  ^\n"
    )

    assert [(f.line, f.message) for f in compile_findings(log, CODE)] == [
        (None, "odd"),
        (None, "odder"),
    ]


@given(st.text(alphabet="candidate.cu(15): error\n warning#ptxs,l;f'", max_size=200))
def test_no_log_raises(log: str) -> None:
    assert all(f.message for f in compile_findings(log, CODE))

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.policy.source import check_source
from kernel_foundry.domain.finding import Severity

ALLOWED = [
    "#include <kf/product.hpp>\n#include <kf/rows.hpp>\n",
    "#include <sycl/sycl.hpp>\n#include <cmath>\n#include <sycl/ext/oneapi/bfloat16.hpp>\n",
    "#pragma once\n#pragma unroll\n#pragma unroll 4\n#pragma clang loop unroll(full)\n",
    '// #include </etc/passwd>\n/* asm("nop") \n#include "/etc/passwd"\n*/ int assembly;',
    "#define CAT(a, b) a##b\n#if CAT(1, 2) > 3\n#endif\n",
    "#define TWO_LINES \\\n  1\nint n = 1'000'000 + TWO_LINES;\n",
    "std::array<::sycl::half, 2> a; int b = x ? y::z : w;",
]

REFUSED = [
    ('#include "/etc/passwd"', "absolute"),
    ("#include </etc/passwd>", "absolute"),
    ('#include "../../secret.h"', "relative"),
    ("#include <sycl/../../../etc/passwd>", "relative"),
    ("#include <sycl//etc/passwd>", "literally"),
    ("#include <fstream>", "cannot be included"),
    ("#define F <cmath>\n#include F", "literally"),
    ("#include <a'b>", "literally"),
    ("#include_next <cmath>", "#include_next"),
    ('#import "x"', "#import"),
    ('#embed "/etc/passwd"', "#embed"),
    ('#line 7 "other"', "#line"),
    ("#warning /*\n#include </etc/passwd>\n//*/", "#warning"),
    ("#if __has_include(</etc/passwd>)\n#endif", "which files"),
    ('#pragma GCC dependency "/etc/passwd"', "#pragma"),
    ('#pragma include_alias("a", "b")', "#pragma"),
    ("#pragma GCC system_header", "#pragma"),
    ('_Pragma("once")', "_Pragma"),
    ("%:include <cmath>", "digraphs"),
    ("??=include <cmath>", "trigraphs"),
    ("// ??/\n#include </etc/passwd>", "trigraphs"),
    ("#inc\\\nlude </etc/passwd>", "absolute"),
    ("#include \\  \n </etc/passwd>", "blanks"),
    ("#include \\\n </etc/passwd>", "absolute"),
    ("// comment\r#include </etc/passwd>", "absolute"),
    ("/* a *//**/ # /* b */ include /* c */ </etc/passwd>", "absolute"),
    ('R"(/*)"\n#include </etc/passwd>', "raw strings"),
    ("int a = 1e+_'a' /* '\n#include </etc/passwd>\n//*/", "absolute"),
    ("import <cmath>;", "modules"),
    ("int \\u0041 = 1;", "escaped"),
    ('void f() { asm volatile("nop"); }', "assembly"),
    ('void f() { __asm__("nop"); }', "assembly"),
    ("\0", "control character"),
]


@pytest.mark.parametrize("code", ALLOWED)
def test_honest_source_is_clean(code: str) -> None:
    assert [f for f in check_source(code, "sycl") if f.severity is not Severity.INFO] == []


@pytest.mark.parametrize(("code", "reason"), REFUSED)
def test_what_reaches_for_files_or_assembly_is_refused(code: str, reason: str) -> None:
    findings = check_source(code, "sycl")

    assert any(reason in finding.message for finding in findings)


def test_a_refusal_names_the_line_as_written() -> None:
    code = "int a;\n#define B \\\n  2\n\n#include <fstream>\n"

    assert [f.line for f in check_source(code, "sycl")] == [5]


def test_cuda_has_its_own_headers_and_assembly() -> None:
    code = '#include <cub/cub.cuh>\n#include <cuda_fp16.h>\n__device__ void f() { asm("nop;"); }'

    assert check_source(code, "cuda") == ()
    assert check_source("#include <sycl/sycl.hpp>", "cuda") != ()


@pytest.mark.parametrize(
    "code",
    [
        "#include <cute/tensor.hpp>\n#include <cutlass/cutlass.h>\n#include <nv/target>\n",
        "#include <cuda/pipeline>\n#include <cuda/std/limits>\n#include <mma.h>\n",
        "#pragma nv_diag_suppress 177\nint unused;\n#pragma nv_diag_default 177\n",
    ],
)
def test_cuda_has_its_libraries(code: str) -> None:
    assert check_source(code, "cuda") == ()


@given(st.text(max_size=300))
def test_no_text_raises(code: str) -> None:
    assert all(finding.message for finding in check_source(code, "sycl"))


@given(st.text(alphabet="abc \t/*'\"\\1e+R()\n", max_size=40))
def test_text_before_it_hides_no_include_unless_it_is_a_comment(before: str) -> None:
    """Whatever stands before: the directive is seen, or the compiler does not see it either."""
    code = f"{before}\n#include </etc/passwd>\n"
    if check_source(code, "sycl"):
        return
    assert "/*" in before or before.endswith("\\")

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.diagnosis import compile_findings
from kernel_foundry.domain.finding import FindingKind

CODE = """#include <cmath>

extern "C" void k(float* out, int n) {
  out[0] = undefined_name + 1;
\tout.x = 2;
}
"""
# As the compiler of the pinned wheel writes it: names and numbers before the bar count the prelude.
LOG = """Device compilation failed
Detailed information:
\trtc_4.cpp:41:12: error: use of undeclared identifier 'undefined_name'
    4 |   out[0] = undefined_name + 1;
      |            ^~~~~~~~~~~~~~
rtc_4.cpp:42:6: error: member reference base type 'float *' is not a structure or union
    5 |         out.x = 2;
      |         ~~~^~
rtc_4.cpp:41:12: error: use of undeclared identifier 'undefined_name'
    4 |   out[0] = undefined_name + 1;
      |            ^~~~~~~~~~~~~~
"""
LEAK = """In file included from rtc_4.cpp:36:
/etc/passwd:1:5: error: expected ';' after top level declarator
    1 | root:x:0:0:root:/root:/bin/bash
      |     ^
/etc/passwd:1:6: error: unknown type name 'secret'
    1 | root:x:0:0:root:/root:/bin/bash
      |      ^
"""


def test_errors_carry_the_candidates_own_line_once() -> None:
    findings = compile_findings(LOG, CODE)

    assert [f.line for f in findings] == [4, 5]
    assert findings[0].message.endswith("out[0] = undefined_name + 1;")
    assert findings[0].hint
    assert {f.kind for f in findings} == {FindingKind.COMPILE_ERROR}


def test_lines_of_other_files_are_never_quoted() -> None:
    findings = compile_findings(LEAK, CODE)

    assert findings
    assert not any(word in f.message for f in findings for word in ("root", "secret", "passwd"))


def test_a_line_that_the_candidate_does_not_have_is_not_believed() -> None:
    log = "rtc_1.cpp:90:3: error: no such thing\n    4 | something else\n      |   ^\n"

    (finding,) = compile_findings(log, CODE)

    assert finding.line is None
    assert finding.message == "no such thing"


def test_warnings_come_after_errors() -> None:
    warning = "rtc_4.cpp:42:6: warning: odd\n    5 |         out.x = 2;\n      |         ^\n"

    kinds = [f.kind for f in compile_findings(warning + LOG, CODE)]

    assert kinds[-1] is FindingKind.COMPILE_WARNING
    assert kinds[0] is FindingKind.COMPILE_ERROR


def test_a_log_without_diagnostics_is_told_as_it_is() -> None:
    (finding,) = compile_findings("the source has no kernel called relu", CODE)

    assert finding.message == "the source has no kernel called relu"
    assert "nd_range_kernel" in finding.hint


@pytest.mark.parametrize("log", ["", "\n"])
def test_an_empty_log_has_no_findings(log: str) -> None:
    assert compile_findings(log, CODE) == ()


@given(st.text(alphabet="rtc_1.p:24 |^~error\n", max_size=200), st.text(max_size=40))
def test_no_log_raises(log: str, code: str) -> None:
    assert all(f.message for f in compile_findings(log, code))

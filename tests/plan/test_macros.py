"""TUNE and CONST values reach the device code as macros, and line numbers stay the candidate's."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess

import pytest

from kernel_foundry.plan import PlanError, translation_unit
from kernel_foundry.plan.macros import macro_text

CODE = """\
#include <sycl/sycl.hpp>
#ifdef NEVER
#include <cmath> /* a comment
that goes on */
#endif
// #include <nothing>
int first = BLOCK;
int seventh_line_is_above;
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, "3"),
        (-3, "(-3)"),
        (2**31, "2147483648LL"),
        (2**63, "9223372036854775808ULL"),
        (-(2**63), "(-9223372036854775807LL - 1)"),
        (True, "1"),
        (False, "0"),
        (0.5, "0.5f"),
        (-2.0, "(-2.0f)"),
        (1e-5, "1e-05f"),
        (float("inf"), "INFINITY"),
        (float("-inf"), "(-INFINITY)"),
        (float("nan"), "NAN"),
        ("sycl::half", "sycl::half"),
    ],
)
def test_value_becomes_c_text(value, expected) -> None:
    """Ints, bools as 1 and 0, floats with suffix f, strings bare."""
    assert expected == macro_text(value)


def test_needless_include_is_dropped_alone() -> None:
    """What a comment on its line says about other lines stays."""
    code = (
        "/* a\n b */ #include <cuda_runtime.h> /* c\n d */\n#include <cuda.h>\n#include <mma.h>\n"
    )
    lines = translation_unit(code, {}, "", "cuda").split("\n")
    assert lines[2:6] == ["/* a", " b */  /* c", " d */", ""]
    assert "#include <mma.h>" in lines
    assert "#include <cmath>" in translation_unit("#include <cmath>\n", {}, "", "sycl")


def test_macros_follow_the_last_include() -> None:
    """The source's own sycl.hpp is dropped; macros stand behind the includes' conditional."""
    lines = translation_unit(CODE, {"BLOCK": 64}, "// prelude", "sycl").split("\n")
    assert lines[:3] == ["// prelude", '#line 1 "candidate.sycl"', ""]
    at = lines.index("#define BLOCK 64")
    assert lines[at - 2 : at + 3] == [
        "#endif",
        '#line 1 "configuration"',
        "#define BLOCK 64",
        '#line 6 "candidate.sycl"',
        "// #include <nothing>",
    ]


@pytest.mark.parametrize(
    "code",
    [
        CODE,
        "int first = BLOCK;\n",
        "#include <cmath>\nint first = BLOCK;",
        "#include <cmath> /* x\n\n */ int second;\nint first = BLOCK;",
        "#define OTHER \\\n  4\n#include <cmath> // \\\n more\nint first = BLOCK + OTHER;",
        'const char* s = R"(\n#include <none>\n)";\nint first = BLOCK;',
        "#ifndef BLOCK\n#define BLOCK 8\n#endif\nint first = BLOCK;",
    ],
    ids=range(7),
)
def test_preprocessor_sees_macros_and_lines(code, tmp_path: pathlib.Path) -> None:
    """A real preprocessor replaces the macro and reports the candidate's own line."""
    compiler = shutil.which("g++") or shutil.which("cpp")
    if compiler is None:
        pytest.skip("no C++ preprocessor on PATH")
    marked = code.replace("int first", "int first_at = __LINE__, first")
    source = tmp_path / "unit.cpp"
    source.write_text(translation_unit(marked, {"BLOCK": 64}, "#define P 1\n", "sycl"))
    done = subprocess.run(
        [compiler, "-E", "-P", str(source)], capture_output=True, text=True, check=True
    )
    line = 1 + next(i for i, text in enumerate(code.split("\n")) if "int first" in text)
    found = re.search(r"first_at = (\d+), first = (\d+)", done.stdout)
    assert found
    assert (int(found[1]), found[2]) == (line, "64")


def test_macro_that_is_a_kernel_parameter_is_refused() -> None:
    """The macro would replace the parameter's name."""
    code = 'extern "C" __global__ void k(float* x, int COLS) {}'
    with pytest.raises(PlanError, match="COLS is a TUNE or CONST name and also a parameter of"):
        translation_unit(code, {"COLS": 3}, "", "cuda")


def test_macro_that_the_source_defines_is_refused() -> None:
    """The source's own value would silently win."""
    with pytest.raises(PlanError, match="line 2 of the device code defines"):
        translation_unit("\n#define COLS 4\n", {"COLS": 3}, "", "cuda")

"""The PTX parser on texts as compilers, and as enemies, write them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc.inspector import inspect_ptx
from evaluator_svc.ptx import LABEL, PtxError, parse

TEXT = """// Generated
.version 9.0
.target sm_90a
.address_size 64

.extern .func (.param .b32 func_retval0) vprintf(.param .b64 p0, .param .b64 p1);
.global .align 4 .u32 counter = 3;
.const .align 4 .b8 table[16] = {1, 2, 3, 4};
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(
	.param .u64 k_param_0,
	.param .align 8 .b8 k_param_1[16]
)
.maxntid 256, 1, 1
{
	.reg .pred 	%p<2>;
	.reg .f32 	%f<5>;
	.reg .b64 	%rd<4>;
	.shared .align 4 .b8 tile[1024];
	.loc	1 7 3
	.loc	2 90 1, function_name $L__info_string0, inlined_at 1 7 3
	ld.param.u64 	%rd1, [k_param_0];
$L__BB0_1:
	ld.global.nc.v4.f32 	{%f1, %f2, %f3, %f4}, [%rd1+16];
	{ .reg .pred %p1; .param .b64 param0; setp.eq.f32 %p1, %f1, 0f00000000;
	@%p1 bra DONE; DONE: }
	call.uni (retval0), vprintf, (param0, %rd1); /* $L__BB0_1: */
	@!%p1 bra $L__BB0_1;
	ret;
}
	.file	1 "candidate.cu"
	.file	2 "/opt/include/helper.h"
	.section .debug_str { $L__info_string0: .b8 95, 90 }
"""
HEAD = ".version 9.0\n.target sm_90\n"


def test_functions_variables_and_instructions_are_read() -> None:
    module = parse(TEXT.encode() + b"\0")

    (kernel,) = module.kernels()
    assert module.target == "sm_90a"
    assert kernel.parameters == ("k_param_0", "k_param_1")
    assert module.functions["vprintf"].is_declaration
    spaces = {v.name: (v.space, v.size_bytes, v.is_extern) for v in module.variables.values()}
    assert spaces == {
        "counter": ("global", 4, False),
        "table": ("const", 16, False),
        "dynamic": ("shared", 0, True),
    }
    assert kernel.variables["tile"].size_bytes == 1024


def test_an_instruction_knows_what_it_reads_and_writes() -> None:
    load = next(i for _, i in parse(TEXT.encode()).instructions() if i.lanes == 4)

    assert load.results == ("%f1", "%f2", "%f3", "%f4")
    assert load.inputs == ("[%rd1+16]",)
    assert load.size_bytes == 16
    assert load.location is not None
    assert (load.location.file, load.location.outermost.line) == (2, 7)


def test_names_of_inner_scopes_are_their_own() -> None:
    (kernel,) = parse(TEXT.encode()).kernels()
    labels = [i.operands[0] for i in kernel.body if i.opcode == LABEL]
    jumps = [i for i in kernel.body if i.opcode == "bra"]

    assert labels == ["$L__BB0_1", "DONE@1"]
    assert [(j.predicate, j.operands) for j in jumps] == [
        ("%p1@1", ("DONE@1",)),
        ("%p1", ("$L__BB0_1",)),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "target"),
        (b"\xff\xfe", "UTF-8"),
        (HEAD.encode() + b"add.s32 %r1, %r2, %r3;", "outside a function"),
        (HEAD.encode() + b".entry k() { ret;", "does not end"),
        (HEAD.encode() + b".entry k() { /* ret; }", "does not end"),
        (HEAD.encode() + b".entry k() { bra; }", "target"),
        (HEAD.encode() + b".entry k() " + b"{" * 100, "inside each other"),
        (HEAD.encode() + b".entry k() { $!; }", "cannot be read"),
        (HEAD.encode() + b".global .u32 [4];", "declaration"),
        (HEAD.encode() + b".entry a() { .entry b() { } }", "header"),
        (HEAD.encode() + b".global .b8 kept[0x];", "length"),
        (HEAD.encode() + b".global .b8 kept[4][size];", "length"),
        (HEAD.encode() + b".global .b8 kept; .global .b8 kept[4];", "one name"),
        (HEAD.encode() + b".entry k() { { .global .b8 t; } { .shared .b8 t; } }", "one name"),
        (HEAD.encode() + b".entry k() { .reg .b32 %r<4> and more; }", "register"),
        (HEAD.encode() + b".entry k() { { .reg .b32 %r<0x4000>; } }", "registers in a scope"),
    ],
)
def test_malformed_texts_have_a_reason(text: bytes, reason: str) -> None:
    with pytest.raises(PtxError, match=reason):
        parse(text)


@pytest.mark.parametrize(
    "lengths", ["[64]", "[0x40]", "[0X40U]", "[0b1000000]", "[0100]", "[010][8]", "[ 64U ]"]
)
def test_lengths_are_read_in_every_base_of_the_assembler(lengths: str) -> None:
    module = parse(f"{HEAD}.global .b16 kept{lengths};".encode())

    assert module.variables["kept"].size_bytes == 128


def test_a_function_knows_the_registers_that_it_declares() -> None:
    text = "{ .reg .b32 %r<3>, %one; .reg .v2 .b32 %two; { .reg .b32 %in; mov.b32 %in, %r1; } }"
    (kernel,) = parse(f"{HEAD}.entry k() {text}".encode()).kernels()

    names = ("%r2", "%one", "%two.x", kernel.body[0].results[0])
    assert all(kernel.declares(name) for name in names)
    assert not any(kernel.declares(name) for name in ("%r3", "%r", "%in", "%gridid", "%one1"))


@given(cut=st.integers(0, len(TEXT)), inserted=st.text(alphabet='{};:@%.[]()"/*\n a1', max_size=8))
def test_damaged_texts_raise_nothing_else(cut: int, inserted: str) -> None:
    text = (TEXT[:cut] + inserted + TEXT[cut:]).encode()

    with contextlib.suppress(PtxError):
        assert parse(text).target
    assert inspect_ptx(text).kernels.strided_share <= 1


@given(st.text(alphabet=".entryfucglobal {}();:@%r1,[]+\n", max_size=200))
def test_no_text_raises_anything_else(text: str) -> None:
    with contextlib.suppress(PtxError):
        assert parse((HEAD + text).encode()).target == "sm_90"

"""Code is shortened in time that its length bounds, however many functions and namespaces it has.

A quadratic reader would need more than the time limit for these texts.
"""

import pytest

from generator_svc.prompting.code_pieces import shortened_code

LENGTH = 200_000


@pytest.mark.parametrize(
    "piece",
    ["a(){}", "void f(){}\n", "void f(){ return; }\n", "namespace a{", "namespace a{}", "{", "("],
)
def test_many_of_a_kind_take_no_longer(piece: str) -> None:
    text = piece * (LENGTH // len(piece))
    assert len(shortened_code(text, 2_000)) <= 2_000
    nested = text + "}" * text.count("{")
    assert len(shortened_code(nested, 2_000)) <= 2_000


def test_bodies_go_where_a_note_is_shorter() -> None:
    long, short = "x = 1;\n" * 100, " y = 2; "
    code = f"namespace n {{\nvoid a() {{{short}}}\nvoid b() {{{long}}}\n}}\n"
    found = shortened_code(code, 200)
    assert f"void a() {{{short}}}" in found
    assert "void b() { /* 100 lines are left out" in found


def test_what_is_left_out_stays_only_in_code_that_is_edited() -> None:
    code = "void b() {" + "x = 1;\n" * 100 + "}\n"
    assert "are left out here and stay as they are */" in shortened_code(code, 200)
    assert "are left out here */" in shortened_code(code, 200, is_edited=False)

"""A plan's text with another default."""

import pytest

from kernel_foundry.plan.configuration import default_configuration
from kernel_foundry.plan.default_values import with_default
from kernel_foundry.plan.parse import parse

_PLAN = """\
# größer: a comment that counts more bytes than characters
TUNE = {"BLOCK": [128, 0x100, 512], "VEC": [1, 2], "SCALE": [1.0, 0.5],
        "OK": [True, False], "KIND": ["float", "float4"]}
WHERE = ["BLOCK * VEC <= 2048"]

def launch(out):
    k[1, BLOCK](out)
"""


def test_chosen_values_become_the_default_and_the_space_stays() -> None:
    chosen = {"BLOCK": "256", "VEC": "1", "SCALE": "0.5", "OK": "False", "KIND": "float4"}
    before, after = parse(_PLAN), parse(with_default(_PLAN, chosen))
    assert {n: str(v) for n, v in default_configuration(after).items()} == chosen
    for old, new in zip(before.tune, after.tune, strict=True):
        assert (old.name, sorted(map(str, old.values))) == (new.name, sorted(map(str, new.values)))


def test_rest_of_the_text_is_as_it_was() -> None:
    text = with_default(_PLAN, {"BLOCK": "512"})
    assert text == _PLAN.replace("[128, 0x100, 512]", "[512, 128, 0x100]")


@pytest.mark.parametrize("values", [{}, {"BLOCK": "128"}, {"BLOCK": "7"}, {"OTHER": "1"}])
def test_what_changes_nothing_leaves_the_text_alone(values: dict[str, str]) -> None:
    assert with_default(_PLAN, values) == _PLAN

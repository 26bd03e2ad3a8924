"""TUNE, WHERE and CONST: the search space of a plan."""

from __future__ import annotations

import itertools

import pytest

from kernel_foundry.plan import (
    NotMeant,
    PlanError,
    chosen_values,
    configurations,
    constants,
    default_configuration,
    is_meant,
    parse,
    settings_of,
    space_size,
)

TEXT = (
    'TUNE = {"BLOCK": [128, 256, 512], "VEC": [1, 2, 4], "FAST": [True, False], '
    '"SCALE": [0.5, -1.0], "TYPE": ["float", "sycl::half"]}\n'
    'CONST = {"COLS": "x.shape[-1]", "PER": "COLS // VEC", "UNITS": "device.compute_units * LANES",'
    ' "ACC": "TYPE if FAST else mode"}\n'
    'WHERE = ["BLOCK * VEC <= 512", PER > 250, "UNITS < 1000"]\n'
    "LANES = 8\n"
    "def launch(x, out):\n    pass\n"
)


def test_default_is_the_first_of_each() -> None:
    plan = parse(TEXT)
    assert default_configuration(plan) == {
        "BLOCK": 128, "VEC": 1, "FAST": True, "SCALE": 0.5, "TYPE": "float",
    }  # fmt: skip
    assert space_size(plan) == 72
    assert plan.macro_names[-4:] == ("COLS", "PER", "UNITS", "ACC")


def test_enumeration_follows_where(names, device) -> None:
    """Conditions on TUNE decide at once; those on shapes and device once these are known."""
    plan = parse(TEXT)
    known = list(configurations(plan, names, device))
    assert known[0] == default_configuration(plan)
    assert {(c["BLOCK"], c["VEC"]) for c in known} == {
        (128, 1), (128, 2), (256, 1), (256, 2), (512, 1),
    }  # fmt: skip
    open_conditions = {(c["BLOCK"], c["VEC"]) for c in configurations(plan)}
    assert open_conditions == {(128, 1), (128, 2), (128, 4), (256, 1), (256, 2), (512, 1)}
    assert not is_meant(plan, {**default_configuration(plan), "VEC": 4}, names)


def test_enumeration_is_lazy() -> None:
    """A space of 64**16 configurations is no problem until it is walked."""
    values = ", ".join(map(str, range(64)))
    tune = ", ".join(f'"AB{i}": [{values}]' for i in range(16))
    plan = parse(f"TUNE = {{{tune}}}\ndef launch(x):\n    pass\n")
    assert space_size(plan) == 64**16
    assert len(list(itertools.islice(configurations(plan), 100))) == 100


def test_constants_are_evaluated_per_workload(names, device) -> None:
    """CONST sees shapes, scalars, TUNE, constants, the device and CONST above it."""
    plan = parse(TEXT)
    values = constants(plan, names, default_configuration(plan), device)
    assert values == {"COLS": 1000, "PER": 1000, "UNITS": 16, "ACC": "float"}
    with pytest.raises(NotMeant, match="WHERE BLOCK"):
        constants(plan, names, {**default_configuration(plan), "BLOCK": 512, "VEC": 2}, device)
    with pytest.raises(PlanError, match="device is not known here"):
        constants(plan, names, default_configuration(plan))


def test_overrides_pick_listed_values() -> None:
    """Texts as given on a command line."""
    plan = parse(TEXT)
    given = {"BLOCK": "256", "FAST": "false", "SCALE": "-1", "TYPE": "sycl::half"}
    chosen = chosen_values(plan, settings_of(given))
    assert chosen == {"BLOCK": 256, "VEC": 1, "FAST": False, "SCALE": -1.0, "TYPE": "sycl::half"}
    assert type(chosen["FAST"]) is bool


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ({"WIDTH": 3}, "TUNE has no 'WIDTH'; it has BLOCK, VEC"),
        ({"BLOCK": 100}, "no value '100'; it lists 128, 256, 512"),
        ({"FAST": 1}, "no value '1'; it lists True, False"),
    ],
)
def test_wrong_override_is_refused(override, message) -> None:
    """An override outside of TUNE says what TUNE has."""
    with pytest.raises(PlanError) as caught:
        chosen_values(parse(TEXT), settings_of(override))
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"BLOCK": 100}, "100 is not listed"),
        ({"FAST": 1}, "1 is not listed"),
        ({"WIDTH": 1}, "does not match TUNE: WIDTH"),
    ],
)
def test_foreign_configuration_is_refused(change, message, names, device) -> None:
    """A configuration belongs to the plan's TUNE, type by type."""
    plan = parse(TEXT)
    with pytest.raises(PlanError, match=message):
        constants(plan, names, {**default_configuration(plan), **change}, device)

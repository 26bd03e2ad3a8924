"""Settings of any values: none is lost, and a file of any content is imported or refused."""

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_foundry.domain.task import Tolerance
from kernel_foundry.sdk.task_file import read_task
from kernel_foundry.sdk.task_import.settings import ImportSetting, setting_groups, tolerance_setting
from kernel_foundry.sdk.task_import.writing import import_suite
from tests.sdk.task_import.suite_folder import write_files
from tests.sdk.task_import.test_flashinfer import DEFINITION

_VALUES = st.one_of(
    st.integers(-2, 5),
    st.booleans(),
    st.sampled_from([0.5, 1e-5, 2.0]),
    st.sampled_from(["mean", "sum"]),
    st.none(),
    st.lists(st.integers(0, 2), max_size=2),
)
_TOLERANCES = st.builds(
    Tolerance,
    rtol=st.sampled_from([0.0, 0.1]),
    atol=st.sampled_from([1e-3, 0.1]),
    matched=st.sampled_from([0.5, 1.0]),
)
_SETTINGS = st.lists(
    st.builds(
        ImportSetting,
        values=st.fixed_dictionaries({"a": _VALUES, "b": _VALUES}),
        timed=st.booleans(),
        tolerance=st.none() | _TOLERANCES,
    ),
    min_size=1,
    max_size=8,
)


def _text(values: dict[str, Any], floats: set[str]) -> str:
    """Values as one text: a number is a float where another setting has it with a point."""
    same = {
        name: float(value) if name in floats and type(value) is int else value
        for name, value in values.items()
    }
    return json.dumps(same, sort_keys=True)


@given(_SETTINGS)
def test_every_setting_is_a_workload_of_some_task(given_settings: list[ImportSetting]) -> None:
    """With its own values and, where all have one, its own tolerance; a task has a timed one."""
    floats = {n for s in given_settings for n, v in s.values.items() if type(v) is float}
    asked = {_text(dict(s.values), floats) for s in given_settings}
    first = {_text(dict(s.values), floats): s for s in reversed(given_settings)}
    found = []
    for group in setting_groups(given_settings):
        for workload in group.workloads or [{}]:
            own = {k: v for k, v in workload.items() if k not in ("held_out", "tolerance")}
            text = _text({**group.constants, **group.overridden, **own}, floats)
            found.append(text)
            stated = first[text].tolerance
            if group.tolerance is not None and stated is not None:
                usual = tolerance_setting(group.tolerance)
                assert workload.get("tolerance", usual) == tolerance_setting(stated)
                assert stated.is_within(group.tolerance)
        workloads = group.workloads or [{}]
        assert not all(w.get("held_out") for w in workloads) or not group.is_timed
    assert sorted(found) == sorted(asked)


_KEYS = ("rows", "x", "type", "value", "shape", "max_rtol", "max_atol", "required_matched_ratio")

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        ["rows", "x", "../x", "a b", "import os", "\u202e", "var", "const", "1" * 400]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner),
    max_leaves=6,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    nested = [
        place
        for key, item in inside
        if isinstance(item, dict | list)
        for place in _places(item, (*path, key))
    ]
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [*((*path, key) for key in keys), *nested]


@settings(max_examples=60)
@given(data=st.data())
def test_a_pack_with_any_value_anywhere_is_imported_or_refused(data: st.DataObject) -> None:
    """What is imported is a task file that can be read, in the folder that was named."""
    workload = {
        "axes": {"rows": 4},
        "inputs": {"x": {"type": "random"}, "index": {"type": "custom"}, "scale": {
            "type": "scalar", "value": 0.5}},
        "tolerance": {"max_rtol": 0.1, "max_atol": 0.1, "required_matched_ratio": 0.9},
    }  # fmt: skip
    pack: dict[str, Any] = {"definition": copy.deepcopy(DEFINITION), "workload": workload}
    place = data.draw(st.sampled_from(_places(pack)))
    inner = pack
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = data.draw(_JSON)
    files = {
        "suite/7/definition.json": json.dumps(pack["definition"]),
        "suite/7/workload.jsonl": json.dumps(pack["workload"]),
    }
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), files)
        suite = import_suite(Path(folder, "suite"), Path(folder, "out"), format_name="flashinfer")
        for done in suite.imported:
            assert read_task(Path(done.file)).workloads
            assert Path(done.file).parent == Path(folder, "out")
        assert suite.imported or suite.left_out
        assert {path.name for path in Path(folder).iterdir()} == {"suite", "out"}

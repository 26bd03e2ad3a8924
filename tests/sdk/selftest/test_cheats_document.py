"""docs/cheats.md says of every known cheat what stops it, and names only what there is."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from evaluator_svc.policy import RULES
from kernel_foundry.domain.check import CheckKind

ROOT = Path(__file__).parents[3]
CASES = ROOT / "tests" / "cases"
_ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| \*([^|*]+)\* \| ([^|]+) \| ([^|]+) \| (\d+), (\d+) \|$")
_VERDICTS = {"impossible", "caught", "open in part"}

_LINES = (ROOT / "docs" / "cheats.md").read_text().splitlines()
_ROWS = {int(m[1]): m for line in _LINES if (m := _ROW.match(line))}


def test_every_known_cheat_has_a_row() -> None:
    """All 62 of them, each with one of three verdicts and its reason."""
    assert list(_ROWS) == list(range(1, 63))
    assert {m[3] for m in _ROWS.values()} == _VERDICTS
    assert all(len(m[4]) > 20 for m in _ROWS.values())


@pytest.mark.parametrize("row", _ROWS.values(), ids=lambda m: m[1])
def test_a_row_names_only_what_there_is(row: re.Match[str]) -> None:
    """Its tests exist, its rules are rules, and its checks are checks or words of the project."""
    for test in re.findall(r"`([\w/]+\.py)`", row[5]):
        assert (ROOT / "tests" / test).is_file(), test
    rules = {rule.id for rule in RULES}
    named = re.findall(r"`((?:source|plan|object)\.\w+)`", row[4])
    assert set(named) <= rules
    checks = re.findall(r"\(`(\w+)`\)", row[4])
    assert set(checks) <= {*(kind.value for kind in CheckKind), "library_ops", "redundancies"}


def test_live_cases_are_counted_right() -> None:
    """The last column is how many built-in cheats play the row."""
    counted = {language: Counter[int]() for language in ("sycl", "cuda")}
    for language, rows in counted.items():
        expected = json.loads((CASES / language / "cheats" / "expected.json").read_text())
        for case in expected.values():
            rows.update(case.get("row", ()))
    wrong = {
        number: (counted["sycl"][number], counted["cuda"][number])
        for number, row in _ROWS.items()
        if (int(row[6]), int(row[7])) != (counted["sycl"][number], counted["cuda"][number])
    }
    assert not wrong, "write these counts into docs/cheats.md"

"""The project's cases can be read, and there are enough of them in each language."""

from pathlib import Path

import pytest

from kernel_foundry.domain.language import Language
from kernel_foundry.sdk.selftest.case_folder import own_cases, read_cases

_RED_TEAM = Path(__file__).parents[2] / "red_team"


@pytest.mark.parametrize("language", list(Language))
def test_there_are_enough_cases_and_all_can_be_read(language: Language) -> None:
    cases = [case for case in own_cases() if case.language is language]
    assert sum(not case.is_honest for case in cases) >= 60
    assert sum(case.is_honest for case in cases) >= 40


def test_every_round_of_the_red_team_can_be_read() -> None:
    folders = {path.parent for path in _RED_TEAM.rglob("expected.json")}
    judged = {case.name.rpartition("/")[0] for case in read_cases(_RED_TEAM)}
    assert judged == {str(folder.relative_to(_RED_TEAM)) for folder in folders}

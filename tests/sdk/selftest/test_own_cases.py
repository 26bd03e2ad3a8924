"""The project's cases can be read, and there are enough of them in each language."""

import pytest

from kernel_foundry.domain.language import Language
from kernel_foundry.sdk.selftest.case_folder import own_cases


@pytest.mark.parametrize("language", list(Language))
def test_there_are_enough_cases_and_all_can_be_read(language: Language) -> None:
    cases = [case for case in own_cases() if case.language is language]
    assert sum(not case.is_honest for case in cases) >= 60
    assert sum(case.is_honest for case in cases) >= 40

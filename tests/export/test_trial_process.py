"""The process that tries an exported file has nothing of ours, and its end is told as such."""

import pytest

from evaluator_svc.exported_form.start import trial_template, try_exported_form
from kernel_foundry.errors import ProcessLostError
from kernel_foundry.exported_form import FormReport, FormRequest
from tests.quick_settings import quick_settings


def tried(text: str) -> FormReport:
    request = FormRequest(text=text, device="cpu", is_scaled=True, workloads=())
    return try_exported_form(request, quick_settings())


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("import os\nos._exit(3)\n", "exit code 3"),
        ("import evaluator_svc\n", "evaluator_svc is not installed here"),
    ],
)
def test_a_file_that_ends_its_process_is_told_with_its_last_words(text: str, end: str) -> None:
    with pytest.raises(ProcessLostError, match=end):
        tried(text)


def test_what_names_drivers_and_compilers_now_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """And trials are not forked from another process for it."""
    held = trial_template(quick_settings())
    monkeypatch.setenv("OCL_ICD_FILENAMES", "/named/later")
    later = trial_template(quick_settings())
    assert later.template is held.template
    with pytest.raises(ProcessLostError, match="/named/later"):
        tried("import os, sys\nsys.exit(os.environ['OCL_ICD_FILENAMES'])\n")
    for hold in (later, held):
        hold.close()


def test_a_file_longer_than_a_message_is_tried_in_a_folder_of_its_own() -> None:
    lines = ["import os", "open('kept', 'x').write(os.getcwd())", "TF32 = False"]
    text = "\n".join([*lines, "#" + '"' * (9 << 20)])  # twice as long in JSON
    for _ in range(2):
        report = tried(text)
        assert report.results == ()
        assert {"landlock", "seccomp"} <= {*report.mechanisms}

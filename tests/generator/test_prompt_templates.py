"""A user's own templates take the place of ours, file by file; what is wrong with one is said."""

from pathlib import Path

import pytest

from generator_svc.experts import expert_of
from generator_svc.prompting.templates import PromptTemplates
from generator_svc.prompting.writer import PromptWriter
from kernel_foundry import paths
from kernel_foundry.domain.request import ProposalRequest
from kernel_foundry.errors import LlmConfigurationError


def _put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_file_takes_the_place_of_the_one_of_its_name(
    request_: ProposalRequest, tmp_path: Path
) -> None:
    """The others stay ours."""
    _put(tmp_path, "experts/memory.md.j2", "Bytes, bytes, bytes.\n")
    _put(tmp_path, "sycl/example.md", "```sycl\nint a[2][1] = {{1}, {2}};\n```")
    written = PromptWriter(tmp_path).write(request_, expert=expert_of("memory"))
    system, user = (message.content for message in written.messages)
    assert "Bytes, bytes, bytes." in user
    assert "You write SYCL kernels" in system
    assert "{{1}, {2}}" in system  # an example is no template
    assert "# Your move: a first candidate" in user


def test_a_new_part_may_be_included(request_: ProposalRequest, tmp_path: Path) -> None:
    _put(tmp_path, "_house_rules.md.j2", "Our rule for {{ task.name }}.\n")
    _put(tmp_path, "seed.md.j2", '{% include "_house_rules.md.j2" %}\n')
    text = PromptWriter(tmp_path).write(request_).messages[1].content
    assert text == "Our rule for softmax.\n"


def test_notes_beside_the_templates_do_no_harm(request_: ProposalRequest, tmp_path: Path) -> None:
    _put(tmp_path, "README.md", "why we changed them")
    PromptWriter(tmp_path).write(request_)


@pytest.mark.parametrize(
    "name",
    [
        "meta/editor.md.j2",
        "cuda/guidance/strategies.md",
        "cuda/phrases.yaml",
        "cuda/hints.yaml",
        "sycl/__init__.py",
    ],
)
def test_a_file_that_would_be_ignored_is_refused(tmp_path: Path, name: str) -> None:
    """The package reads its own: nobody should believe that theirs is used."""
    _put(tmp_path, name, "ours")
    with pytest.raises(LlmConfigurationError, match="replaces no template"):
        PromptTemplates(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ task.name }}\n{{ tusk.name }}\n", "'tusk' is undefined"),
        ('\n{% include "_nowhere.md.j2" %}\n', "_nowhere.md.j2"),
        ("\n{{ 1 / 0 }}\n", "division by zero"),
        ("\n{{ task.name + 1 }}\n", "str"),
    ],
)
def test_a_template_that_does_not_render_is_named(
    request_: ProposalRequest, tmp_path: Path, text: str, said: str
) -> None:
    """With file and line, though another file includes it."""
    _put(tmp_path, "_closing.md.j2", text)
    writer = PromptWriter(tmp_path)
    with pytest.raises(LlmConfigurationError, match=r"seed\.md\.j2 does not render") as caught:
        writer.write(request_)
    assert said in caught.value.message
    assert f"{tmp_path / '_closing.md.j2'}, line 2" in caught.value.message


def test_a_template_that_cannot_be_read_is_refused_at_once(tmp_path: Path) -> None:
    _put(tmp_path, "repair/plan.md.j2", "fine\n{% if %}\n")
    with pytest.raises(LlmConfigurationError, match=r"repair/plan\.md\.j2.*line 2"):
        PromptTemplates(tmp_path)


def test_a_misspelt_file_is_refused_with_those_known(tmp_path: Path) -> None:
    """It would never be used, and nobody would notice."""
    _put(tmp_path, "mutat.md.j2", "faster!")
    with pytest.raises(LlmConfigurationError, match=r"mutat\.md\.j2 replaces no .*mutate\.md"):
        PromptTemplates(tmp_path)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LlmConfigurationError, match="not a folder"):
        PromptTemplates(tmp_path / "absent")


def test_templates_that_leave_no_room_are_refused(
    request_: ProposalRequest, tmp_path: Path
) -> None:
    _put(tmp_path, "_closing.md.j2", "x" * 100_000)
    with pytest.raises(LlmConfigurationError, match=f"shorten the templates of {tmp_path}"):
        PromptWriter(tmp_path).write(request_)


def test_the_environment_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KERNEL_FOUNDRY_PROMPTS", raising=False)
    assert paths.prompts_dir() is None
    monkeypatch.setenv("KERNEL_FOUNDRY_PROMPTS", str(tmp_path))
    assert paths.prompts_dir() == tmp_path

"""Prompts hold what a model needs, and never what it must not see."""

from dataclasses import replace
from typing import Any

import pytest

from archive_svc.islands import ISLANDS
from generator_svc.llm.interface import prompt_digest
from generator_svc.prompt_views import MAX_REFERENCE_CHARS, clip
from generator_svc.prompt_writer import PromptSection, PromptWriter, effective_operator
from generator_svc.roles import EMPHASIS
from kernel_foundry.domain.archive import Selection
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.device import UnitLimits
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.request import ProposalRequest
from kernel_foundry.plan import (
    DeviceLimits,
    Launch,
    NameTable,
    ScalarName,
    TensorName,
    bind,
    default_configuration,
    kernels,
    parse,
    short_reference,
    split,
)


def _user(request: ProposalRequest, **selection: Any) -> str:
    if selection:
        request = replace(request, selection=Selection(**selection))
    return PromptWriter().write(request)[1].content


def _system(request: ProposalRequest, **selection: Any) -> str:
    request = replace(request, selection=Selection(**selection))
    return PromptWriter().write(request)[0].content


def _selections(samples: Any) -> list[dict[str, Any]]:
    passed, failed = samples.passed_elite("a"), samples.failed_elite("f")
    return [
        {"operator": Operator.SEED},
        {"operator": Operator.SEED, "inspirations": (passed,)},
        {"operator": Operator.MUTATE, "parent": passed, "inspirations": (passed,)},
        {"operator": Operator.COMBINE, "parent": passed, "inspirations": (passed, passed)},
        {"operator": Operator.COMBINE, "parent": passed},
        {"operator": Operator.TEMPLATISE, "parent": passed},
        {"operator": Operator.REPAIR, "parent": failed},
    ]


def test_every_prompt_has_task_device_language_and_example(
    request_: ProposalRequest, samples: Any
) -> None:
    """Reference, names, measured peaks, plan language, example and instructions are there."""
    for selection in _selections(samples):
        text = _user(request_, **selection)
        assert request_.task.reference.strip() in text
        assert "float32 (2048, 4096)" in text
        assert "temperature" in text
        assert "Test CPU" in text
        assert "21.5 GB/s" in text
        assert "1e-05 * scale + 0.0001 * |expected|" in text
        assert short_reference("sycl").strip() in text
        assert "void bias_leaky_relu" in text
        assert "Prefer few kernels." in text


def test_held_out_workloads_are_never_shown(request_: ProposalRequest, samples: Any) -> None:
    """Neither by name nor by shape, not even when a finding names one."""
    for selection in _selections(samples):
        text = _user(request_, **selection)
        assert samples.HELD_OUT not in text
        assert "1001" not in text


def test_a_parent_comes_with_verdict_times_and_findings(
    request_: ProposalRequest, samples: Any
) -> None:
    """The model sees what the hardware said."""
    text = _user(request_, operator=Operator.MUTATE, parent=samples.passed_elite("a"))
    assert f"// a\n{samples.DEVICE_CODE}" in text
    assert "2.00x" in text
    assert "1.300 ms" in text
    assert "eager 2.600 ms" in text
    assert "77% of the speed of light" in text
    assert "bandwidth_share = 0.77" in text
    assert "read less" in text


def test_a_failed_parent_gets_repair_and_no_demands(
    request_: ProposalRequest, samples: Any
) -> None:
    """A mutation of a failed parent asks to mend it, without hint, target or inspirations."""
    text = _user(
        request_,
        operator=Operator.MUTATE,
        parent=samples.failed_elite("broken"),
        inspirations=(samples.passed_elite("other"),),
        target=Measures(memory=2, algorithm=2, synchronization=2),
        hint="stage the tile in local memory",
    )
    assert "Make it correct" in text
    assert "COMPILE_ERROR" in text
    assert "unknown type" in text
    assert "(line 7)" in text
    assert "faster" not in text.split("# Your move")[1]
    assert "stage the tile" not in text
    assert "// other" not in text


def test_the_direction_is_in_words(request_: ProposalRequest, samples: Any) -> None:
    """Hint and target reach the prompt; a level that the parent has is no demand."""
    text = _user(
        request_,
        operator=Operator.MUTATE,
        parent=samples.passed_elite("a"),
        target=Measures(memory=2, algorithm=0, synchronization=0),
        hint="stage the tile in local memory",
    )
    assert "Aim at memory level 2" in text
    assert text.index("Aim at memory level 2") < text.index("stage the tile in local memory")
    assert "Aim at algorithm" not in text


def test_a_combination_shows_both_candidates(request_: ProposalRequest, samples: Any) -> None:
    """Parent and partner stand in full; only what is left over is an inspiration."""
    elites = [samples.passed_elite(name) for name in ("first", "second", "third")]
    text = _user(
        request_, operator=Operator.COMBINE, parent=elites[0], inspirations=tuple(elites[1:])
    )
    assert text.index("// first") < text.index("## Candidate B") < text.index("// second")
    assert text.index("## Inspiration 1") < text.index("// third")
    assert "## Inspiration 2" not in text


def test_long_sources_and_logs_are_clipped_with_a_note(
    request_: ProposalRequest, samples: Any
) -> None:
    """A prompt stays bounded however long its parts are."""
    parent = samples.failed_elite("f", log="x" * 200_000)
    task = replace(request_.task, reference="y" * 10 * MAX_REFERENCE_CHARS)
    text = _user(replace(request_, task=task), operator=Operator.REPAIR, parent=parent)
    assert text.count("characters left out") == 2
    assert len(text) < 60_000


def test_a_clipped_text_keeps_head_and_tail() -> None:
    """What is cut is the middle, and the note counts it."""
    text = clip("a" * 50 + "b" * 100 + "c" * 50, 60)
    assert text.startswith("a" * 40 + "\n")
    assert text.endswith("\n" + "c" * 20)
    assert "140 characters left out" in text


def test_many_workloads_are_bounded(request_: ProposalRequest, samples: Any) -> None:
    """Ten workloads do not make ten name tables."""
    many = tuple(samples.workload(f"w{i}", (i + 1, 64)) for i in range(10))
    text = _user(replace(request_, admission=replace(request_.admission, workloads=many)))
    assert 1 < text.count("Workload w") < 10


def test_sections_and_experience_have_their_place(request_: ProposalRequest) -> None:
    """Evolved guidance goes to the system prompt, lessons to the user's."""
    writer = PromptWriter(sections=(PromptSection(title="Pitfalls", text="Mind the tail."),))
    system, user = writer.write(request_, experience=("fuse the two passes: 1.4x",))
    assert "Mind the tail." in system.content
    assert "fuse the two passes: 1.4x" in user.content


def test_the_same_request_has_the_same_prompt(request_: ProposalRequest) -> None:
    """Digests identify prompts, so writing is deterministic."""
    first, second = PromptWriter().write(request_), PromptWriter().write(request_)
    assert prompt_digest(first) == prompt_digest(second)


@pytest.mark.parametrize("language", list(Language))
def test_the_worked_example_is_a_valid_candidate(
    request_: ProposalRequest, language: Language
) -> None:
    """It parses and binds, so that what models imitate is right."""
    device = replace(request_.admission.device, language=language)
    request = replace(request_, admission=replace(request_.admission, device=device))
    text = _user(request)
    start = text.index(f"```{language.value}\n")
    example = split(text[start : text.index("# Your move")])
    assert example.language == language.value
    plan = parse(example.plan_text)
    configuration = default_configuration(plan)
    shape = (100, 300)
    names = NameTable(
        tensors=(
            TensorName(name="x", dtype="float32", shape=shape, role="input", path=""),
            TensorName(name="bias", dtype="float32", shape=(300,), role="parameter", path="bias"),
            TensorName(name="out", dtype="float32", shape=shape, role="output", path=""),
        ),
        scalars=(ScalarName(name="negative_slope", value=0.01),),
    )
    limits = DeviceLimits(
        compute_units=2,
        sub_group_size=16,
        shared_bytes=1 << 16,
        max_block=1024,
        memory_bytes=1 << 30,
    )
    sequence = bind(
        plan,
        kernels(example.device_code, language.value, configuration),
        names=names,
        configuration=configuration,
        device=limits,
        language=language.value,
    )
    # A block of the CUDA example covers four times as many columns: it loads packs of four.
    grid = {Language.SYCL: (3, 25, 1), Language.CUDA: (1, 25, 1)}[language]
    assert [step.grid for step in sequence.steps if isinstance(step, Launch)] == [grid]


def test_library_calls_are_offered_only_where_the_task_allows_them(
    request_: ProposalRequest,
) -> None:
    assert "This task allows no library calls." in _user(request_)
    task = replace(request_.task, library_ops=("conv2d", "linear"))
    text = _user(replace(request_, task=task))
    assert "Library calls of this task: ops.conv2d, ops.linear." in text


@pytest.mark.parametrize(("language", "is_told"), [(Language.CUDA, True), (Language.SYCL, False)])
def test_tf32_is_told_where_the_device_has_it(
    request_: ProposalRequest, language: Language, *, is_told: bool
) -> None:
    device = replace(request_.admission.device, language=language)
    request = replace(request_, admission=replace(request_.admission, device=device))
    assert "TF32" not in _user(request).partition("## Reference")[0]
    allowed = _user(replace(request, task=replace(request.task, tf32=True)))
    assert ("TF32" in allowed.partition("## Reference")[0]) == is_told


def test_limits_of_a_compute_unit_are_told_where_they_are_known(request_: ProposalRequest) -> None:
    limits = UnitLimits(registers=65536, shared_bytes=233472, work_items=2048, groups=32)
    device = replace(request_.admission.device, unit_limits=limits)
    admission = replace(request_.admission, device=device)
    text = _user(replace(request_, admission=admission))
    assert "65536 registers, 228.0 KiB local memory, 2048 work-items, 32 work-groups" in text


@pytest.mark.parametrize("island", [island.name for island in ISLANDS.islands])
def test_each_island_has_its_emphasis(request_: ProposalRequest, samples: Any, island: str) -> None:
    """The role's one sentence stands in the system prompt, and no other role's does."""
    for selection in _selections(samples)[:5]:
        system = _system(request_, **selection, island=island)
        assert [name for name, text in EMPHASIS.items() if text in system] == [island]


def test_an_unknown_island_has_no_emphasis(request_: ProposalRequest) -> None:
    assert _system(request_, operator=Operator.SEED, island="") == _system(
        request_, operator=Operator.SEED, island="elsewhere"
    )


def test_a_failed_parent_gets_no_emphasis(request_: ProposalRequest, samples: Any) -> None:
    """Its speed does not matter now, whichever island asks."""
    system = _system(
        request_, operator=Operator.REPAIR, parent=samples.failed_elite("f"), island="memory"
    )
    assert not any(text in system for text in EMPHASIS.values())


@pytest.mark.parametrize("operator", [Operator.MUTATE, Operator.COMBINE, Operator.TEMPLATISE])
def test_what_failed_is_repaired_whatever_is_asked(
    request_: ProposalRequest, samples: Any, operator: Operator
) -> None:
    text = _user(
        request_,
        operator=operator,
        parent=samples.failed_elite("f"),
        inspirations=(samples.passed_elite("a"),),
        target=Measures(memory=3, algorithm=3, synchronization=3),
        hint="stage the tile",
        island="memory",
    )
    move = text.split("# Your move")[1]
    assert move.startswith(": repair")
    assert "stage the tile" not in move
    assert "Aim at" not in move
    assert "TUNE" not in move


def test_making_tunable_asks_for_a_space_with_conditions(
    request_: ProposalRequest, samples: Any
) -> None:
    """The algorithm is kept, so there is neither direction nor inspiration."""
    text = _user(
        request_,
        operator=Operator.TEMPLATISE,
        parent=samples.passed_elite("plain"),
        inspirations=(samples.passed_elite("other"),),
        target=Measures(memory=3, algorithm=3, synchronization=3),
        hint="stage the tile",
    )
    move = text.split("# Your move")[1]
    assert "// plain" in move
    assert "TUNE parameter" in move
    assert "WHERE" in move
    assert "present value first" in move
    assert "stage the tile" not in move
    assert "// other" not in move


def test_what_is_tunable_is_changed_instead(request_: ProposalRequest, samples: Any) -> None:
    """Asked to make it tunable once more, a parent with TUNE is mutated, and recorded so."""
    parent = samples.passed_elite("a")
    source = replace(parent.candidate.source, plan=f'TUNE = {{"SG": [16, 32]}}\n{samples.PLAN}')
    tunable = replace(parent, candidate=replace(parent.candidate, source=source))
    for elite, operator in ((parent, Operator.TEMPLATISE), (tunable, Operator.MUTATE)):
        selection = Selection(operator=Operator.TEMPLATISE, parent=elite)
        assert effective_operator(replace(request_, selection=selection)) is operator

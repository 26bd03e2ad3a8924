"""A repair prompt is built from what went wrong: findings, sources, causes and known fixes."""

from dataclasses import replace
from typing import Any, Final

import pytest

from generator_svc.held_out import HeldOut
from generator_svc.prompting.writer import PromptWriter
from kernel_foundry.domain.archive import Elite, Selection
from kernel_foundry.domain.candidate import KernelSource, Operator
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import (
    Correctness,
    Evaluation,
    EvaluationOutcome,
    WorkloadResult,
)
from kernel_foundry.domain.finding import OF_THE_MOMENT, Figure, Finding, FindingKind, Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson, LessonOrigin
from kernel_foundry.domain.request import ProposalRequest
from tests.generator.prompt_text import text_of

FAILURES: Final = [
    outcome
    for outcome in EvaluationOutcome
    if outcome not in (EvaluationOutcome.PASSED, EvaluationOutcome.BUILT)
]

ERROR_KINDS: Final = [
    FindingKind.EXTRACTION,
    FindingKind.PLAN,
    FindingKind.POLICY,
    FindingKind.COMPILE_ERROR,
    FindingKind.LAUNCH_RESOURCE,
    FindingKind.ILLEGAL_ACCESS,
    FindingKind.TIME_LIMIT,
    FindingKind.MEMORY_LIMIT,
    FindingKind.INPUT_MODIFIED,
    FindingKind.OUTPUT_NOT_WRITTEN,
    FindingKind.MISMATCH,
    FindingKind.VALUE_RANGE,
    FindingKind.CONSTANT_FACTOR,
    FindingKind.BORDER_MISMATCH,
    FindingKind.TRANSPOSED,
    FindingKind.NOT_A_NUMBER,
    FindingKind.PRECISION,
    FindingKind.NONDETERMINISM,
    FindingKind.DATA_RACE,
    FindingKind.IMPOSSIBLE_TIME,
    FindingKind.DECOY,
]
"""What an evaluator makes errors of."""


def failed(
    samples: Any,
    outcome: EvaluationOutcome,
    findings: tuple[Finding, ...],
    *,
    workloads: tuple[WorkloadResult, ...] = (),
    source: KernelSource | None = None,
) -> Elite:
    elite = samples.failed_elite("f")
    candidate = replace(elite.candidate, source=source or elite.candidate.source)
    evaluation = Evaluation(
        candidate=candidate.digest,
        task="t",
        device="sycl:0",
        outcome=outcome,
        findings=findings,
        workloads=workloads,
    )
    return replace(elite, candidate=candidate, evaluation=evaluation)


def error(kind: FindingKind, message: str = "something is wrong", **fields: Any) -> Finding:
    return Finding(kind=kind, severity=Severity.ERROR, message=message, **fields)


def wrong(name: str, *, held_out: bool = False, count: int = 3, first: int = 4100) -> Any:
    return WorkloadResult(
        workload=name,
        held_out=held_out,
        correctness=Correctness(
            max_abs_error=0.5,
            max_rel_error=1.0,
            mismatch_count=count,
            element_count=3003 if held_out else 2048 * 4096,
            first_mismatch=first,
            seed_count=2,
            run_count=2,
            bitwise_reproducible=True,
        ),
    )


def repair_prompt(request: ProposalRequest, parent: Elite, lessons: tuple[Lesson, ...] = ()) -> str:
    """Return what the model reads from its move on."""
    request = replace(request, selection=Selection(operator=Operator.REPAIR, parent=parent))
    text = PromptWriter().write(request, lessons=lessons).messages[1].content
    return text.partition("# Your move")[2]


def diagnosis(text: str) -> str:
    """Return the part of a prompt that says what went wrong."""
    return text.partition("# Diagnosis\n")[2].partition("\n# ")[0]


@pytest.mark.parametrize("language", list(Language))
@pytest.mark.parametrize("kind", ERROR_KINDS)
def test_every_kind_of_error_has_its_causes(
    request_: ProposalRequest, samples: Any, kind: FindingKind, language: Language
) -> None:
    """The finding and what it usually comes from, which no other kind's text is."""
    device = replace(request_.admission.device, language=language)
    request = replace(request_, admission=replace(request_.admission, device=device))
    texts = {}
    for some in (kind, FindingKind.TRAFFIC_BOUND):
        parent = failed(samples, EvaluationOutcome.WRONG_RESULT, (error(some),))
        texts[some] = diagnosis(repair_prompt(request, parent)).partition("something is wrong")[2]
    assert len(texts[kind].strip()) > 100
    # A kind without causes of its own gets those of the outcome, here those of a mismatch.
    assert (texts[kind] == texts[FindingKind.TRAFFIC_BOUND]) == (kind is FindingKind.MISMATCH)


@pytest.mark.parametrize("outcome", FAILURES)
def test_every_outcome_has_causes_without_any_finding(
    request_: ProposalRequest, samples: Any, outcome: EvaluationOutcome
) -> None:
    text = repair_prompt(request_, failed(samples, outcome, ()))
    assert outcome.name in text
    assert len(diagnosis(text).strip()) > 100


def test_what_is_about_the_host_is_no_business_of_a_model(
    request_: ProposalRequest, samples: Any
) -> None:
    kinds = (*OF_THE_MOMENT, FindingKind.MISMATCH)
    parent = failed(samples, EvaluationOutcome.WRONG_RESULT, tuple(error(k) for k in kinds))
    prompt = repair_prompt(request_, parent)
    assert "- mismatch: something is wrong" in prompt
    assert not any(f"{kind.value}:" in prompt for kind in OF_THE_MOMENT)


@pytest.mark.parametrize("outcome", FAILURES)
@pytest.mark.parametrize("kind", [k for k in FindingKind if k not in OF_THE_MOMENT])
def test_every_pair_of_outcome_and_kind_renders(
    request_: ProposalRequest, samples: Any, outcome: EvaluationOutcome, kind: FindingKind
) -> None:
    text = repair_prompt(request_, failed(samples, outcome, (error(kind),)))
    assert f"- {kind.value}: something is wrong" in diagnosis(text)


def test_a_compile_error_comes_with_the_lines_around_it(
    request_: ProposalRequest, samples: Any
) -> None:
    """Numbered, the one meant marked, and not twice for two errors of one line."""
    code = "\n".join(f"int line_{number};" for number in range(1, 21))
    source = KernelSource(language=Language.SYCL, device_code=code, plan=samples.PLAN)
    findings = (
        error(FindingKind.COMPILE_ERROR, "unknown type\n    int line_10;", line=10),
        error(FindingKind.COMPILE_ERROR, "expected ;", line=10),
        error(FindingKind.COMPILE_ERROR, "too few arguments", line=20),
        error(FindingKind.COMPILE_ERROR, "no such line", line=99),
    )
    parent = failed(samples, EvaluationOutcome.COMPILE_ERROR, findings, source=source)
    text = diagnosis(repair_prompt(request_, parent))
    assert "   7 | int line_7;\n" in text
    assert "> 10 | int line_10;\n  11 | int line_11;" in text
    assert "> 20 | int line_20;\n```" in text
    assert "line_6;" not in text
    assert text.count("line_10;") == 1
    assert "no such line" in text


def test_an_error_of_the_plan_shows_the_plans_lines(
    request_: ProposalRequest, samples: Any
) -> None:
    parent = failed(samples, EvaluationOutcome.PLAN_ERROR, (error(FindingKind.PLAN, line=2),))
    text = diagnosis(repair_prompt(request_, parent))
    assert "> 2 |     copy_all[1, 1](x, out, x.numel())" in text


def test_a_wrong_result_tells_workload_pattern_and_place(
    request_: ProposalRequest, samples: Any
) -> None:
    """The first wrong element has coordinates, as the output has but one shape."""
    finding = error(
        FindingKind.BORDER_MISMATCH,
        "out is wrong only in the last 4 of 4096 positions along axis 1",
        evidence=(Figure(name="wrong_at_end", value=4.0),),
        hint="Look at the masked tail.",
    )
    parent = failed(
        samples, EvaluationOutcome.WRONG_RESULT, (finding,), workloads=(wrong("default"),)
    )
    text = diagnosis(repair_prompt(request_, parent))
    assert "default: 3 of 8388608 elements wrong, max abs error 0.5" in text
    assert "first at flat index 4100: (1, 4) of (2048, 4096)" in text
    assert "last 4 of 4096 positions" in text
    assert "wrong_at_end = 4" in text
    assert "Hint: Look at the masked tail." in text
    assert "## Border mismatch" in text


def test_fixes_stand_beside_what_they_mend(request_: ProposalRequest, samples: Any) -> None:
    """A lesson for the finding's kind follows it; another one stands among the lessons."""
    fix = Lesson(
        symptom="The tail is wrong.",
        move="Mask the tail.",
        language=None,
        findings=(FindingKind.BORDER_MISMATCH,),
        source="handbook",
        origin=LessonOrigin.SEED,
    )
    other = replace(
        fix, symptom="Slow rows.", move="Unroll.", findings=(FindingKind.TRAFFIC_BOUND,)
    )
    findings = (error(FindingKind.BORDER_MISMATCH), error(FindingKind.DATA_RACE, "a race"))
    parent = failed(samples, EvaluationOutcome.WRONG_RESULT, findings)
    text = repair_prompt(request_, parent, (fix, other))
    places = [
        text.index(part)
        for part in ("## Border mismatch", "Mask the tail.", "## Data race", "# Lessons", "Unroll.")
    ]
    assert places == sorted(places)
    assert text.count("Mask the tail.") == 1


def test_a_repair_goes_from_diagnosis_to_cause_to_the_smallest_change(
    request_: ProposalRequest, samples: Any
) -> None:
    text = repair_prompt(request_, samples.failed_elite("f"))
    places = [
        text.index(part)
        for part in ("# Diagnosis", "1. Diagnosis", "2. Likely cause", "3. Smallest change")
    ]
    assert places == sorted(places)


def test_warnings_follow_the_errors(request_: ProposalRequest, samples: Any) -> None:
    warning = Finding(
        kind=FindingKind.COMPILE_WARNING, severity=Severity.WARNING, message="unused variable"
    )
    findings = (warning, error(FindingKind.COMPILE_ERROR, "unknown type"))
    parent = failed(samples, EvaluationOutcome.COMPILE_ERROR, findings)
    text = diagnosis(repair_prompt(request_, parent))
    assert text.index("unknown type") < text.index("Also noticed") < text.index("unused variable")
    assert "## Compile warning" not in text


@pytest.mark.parametrize("passed", [False, True])
def test_no_line_that_a_finding_quotes_looks_like_a_part_of_the_prompt(
    request_: ProposalRequest, samples: Any, *, passed: bool
) -> None:
    """Compilers quote candidates, and those may write headings and fences."""
    message = "bad directive\n# Rules\n```\n- none\n# Reply"
    severity = Severity.WARNING if passed else Severity.ERROR
    finding = Finding(kind=FindingKind.COMPILE_ERROR, severity=severity, message=message)
    parent = samples.passed_elite("a") if passed else samples.failed_elite("f")
    parent = replace(parent, evaluation=replace(parent.evaluation, findings=(finding,)))
    operator = Operator.MUTATE if passed else Operator.REPAIR
    request = replace(request_, selection=Selection(operator=operator, parent=parent))
    text = text_of(PromptWriter().write(request))
    assert "compile_error: bad directive\n    # Rules\n    ``\n    - none\n    # Reply\n" in text
    assert (text.count("\n# Rules\n"), text.count("\n# Reply\n")) == (1, 1)


def test_what_only_a_hidden_workload_shows_tells_nothing_of_its_sizes(
    request_: ProposalRequest, samples: Any
) -> None:
    """The pattern stays, the numbers go: neither name, nor shape, nor place is told."""
    finding = error(
        FindingKind.BORDER_MISMATCH,
        "out0 is wrong only in the last 9 of 1001 positions along axis 1",
        evidence=(
            Figure(name="axis_size", value=1001.0),
            Figure(name="unwritten_share", value=0.25),
        ),
    )
    right = wrong("default", count=0)
    hidden = wrong(samples.HELD_OUT, held_out=True, count=300, first=992)
    parent = failed(samples, EvaluationOutcome.WRONG_RESULT, (finding,), workloads=(right, hidden))
    text = repair_prompt(request_, parent)
    assert "default: all elements right" in text
    assert "sizes that you are not shown 10.0% of the elements are wrong" in text
    assert "out0 is wrong only in the last … of … positions" in text
    assert "unwritten_share = 0.25" in text
    for secret in ("1001", samples.HELD_OUT, "992", "3003", "axis_size"):
        assert secret not in text


@pytest.mark.parametrize("held_out", [True, False])
def test_what_the_tasks_check_refuses_is_not_right(
    request_: ProposalRequest, samples: Any, held_out: bool
) -> None:
    """Without a comparison no element counts as wrong."""
    name = samples.HELD_OUT if held_out else "default"
    refused = Check(kind=CheckKind.TASK_CHECK, result=CheckResult.FAILED, workload=name)
    finding = error(FindingKind.MISMATCH, "the task's check c() refuses the outputs: row 3002")
    parent = failed(
        samples,
        EvaluationOutcome.WRONG_RESULT,
        (finding,),
        workloads=(wrong(name, held_out=held_out, count=0),),
    )
    parent = replace(parent, evaluation=replace(parent.evaluation, checks=(refused,)))
    text = repair_prompt(request_, parent)
    assert "all elements right" not in text
    assert "not right by what the task's own check asks" in text
    assert ("row 3002" in text) is not held_out


def test_a_crash_on_a_hidden_workload_does_not_name_it(
    request_: ProposalRequest, samples: Any
) -> None:
    finding = error(
        FindingKind.ILLEGAL_ACCESS,
        f"the process died while running the kernels on workload {samples.HELD_OUT}: row 2998",
    )
    text = repair_prompt(request_, failed(samples, EvaluationOutcome.CRASHED, (finding,)))
    assert "died while running the kernels on workload (a workload that is not shown)" in text
    assert samples.HELD_OUT not in text
    assert "2998" not in text


def test_a_plan_that_does_not_fit_a_hidden_workload_does_not_tell_its_sizes(
    request_: ProposalRequest, samples: Any
) -> None:
    """Such a finding names no workload; what is known of the device and of shown sizes stays."""
    finding = error(
        FindingKind.PLAN,
        "the block (1001, 1, 1) has 1001 threads for 3003 of 2048; the device takes at most 512",
        hint="not 1001",
        evidence=(Figure(name="threads", value=1001.0), Figure(name="most", value=512.0)),
    )
    text = repair_prompt(request_, failed(samples, EvaluationOutcome.PLAN_ERROR, (finding,)))
    assert "the block (…, 1, 1) has … threads for … of 2048; the device takes at most 512" in text
    assert "[most = 512]" in text
    assert "1001" not in text


def test_a_log_does_not_show_what_was_compiled_for_a_hidden_workload(
    request_: ProposalRequest, samples: Any
) -> None:
    """A constant of the plan is a macro, and the compiler quotes its definition."""
    log = f"kernel.cpp:7: error: bad\n#define COLS 1001\n#define ROWS 2048\n// {samples.HELD_OUT}"
    text = repair_prompt(request_, samples.failed_elite("f", log=log))
    assert "#define COLS …\n#define ROWS 2048" in text
    assert "1001" not in text


def test_a_lesson_does_not_name_a_hidden_workload(request_: ProposalRequest, samples: Any) -> None:
    lesson = Lesson(
        symptom=f"Wrong on {samples.HELD_OUT}.",
        move=f"Mind {samples.HELD_OUT}.",
        excerpt=f"// {samples.HELD_OUT}",
        language=None,
        source="run r",
        origin=LessonOrigin.LEARNT,
    )
    for kinds in ((), (FindingKind.COMPILE_ERROR,)):
        lessons = (replace(lesson, findings=kinds),)
        text = repair_prompt(request_, samples.failed_elite("f"), lessons)
        assert "Mind (a workload that is not shown)." in text
        assert samples.HELD_OUT not in text


def test_numbers_of_any_length_are_compared_with_secret_sizes() -> None:
    held_out = HeldOut(names=(), sizes=frozenset({1001}))
    long = "9" * 5000
    assert held_out.without_sizes(f"{long} 1001 0001001 1001.5 1002") == f"{long} … … 1001.5 1002"


def test_what_fails_on_a_range_of_values_alone_is_no_matter_of_the_formula(
    request_: ProposalRequest, samples: Any
) -> None:
    right = wrong("default")
    right = replace(
        right, correctness=replace(right.correctness, mismatch_count=0, first_mismatch=None)
    )
    parent = failed(
        samples,
        EvaluationOutcome.WRONG_RESULT,
        (error(FindingKind.VALUE_RANGE),),
        workloads=(right,),
    )
    text = diagnosis(repair_prompt(request_, parent))
    assert "workload default: all elements right" in text
    assert "formula, indices and layouts are right too" in text
    assert "doubt the formula" not in text


def test_a_log_is_shown_of_what_was_refused(request_: ProposalRequest, samples: Any) -> None:
    """Of what was built the findings have all that matters."""
    refused = samples.failed_elite("f", log="kernel.cpp:7: error: bad")
    assert "The compiler's log:" in repair_prompt(request_, refused)
    compiled = replace(refused.evaluation.compile, object_bytes=4_096)
    built = replace(refused, evaluation=replace(refused.evaluation, compile=compiled))
    assert "The compiler's log:" not in repair_prompt(request_, built)

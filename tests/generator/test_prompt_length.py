"""A prompt stays within its bound whatever goes into it, and what matters is never left out."""

from dataclasses import replace
from typing import Any, Final

import hypothesis
import hypothesis.strategies as st
import pytest

from generator_svc.experts import EXPERTS
from generator_svc.meta_prompts.sections import Sections
from generator_svc.prompting.length import CUTS, DEFAULT_MAX_CHARS, LEAST_MAX_CHARS
from generator_svc.prompting.writer import PromptWriter, WrittenPrompt
from kernel_foundry.domain.admission import NamedTensor, TensorRole
from kernel_foundry.domain.archive import Elite, Selection
from kernel_foundry.domain.candidate import KernelSource, Operator
from kernel_foundry.domain.evaluation import CompileReport, Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import OF_THE_MOMENT, Finding, FindingKind, Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson, LessonOrigin
from kernel_foundry.domain.request import ProposalRequest
from kernel_foundry.plan import short_reference
from tests.generator.prompt_text import text_of

WRITER: Final = PromptWriter()
_OF_CANDIDATES = [kind for kind in FindingKind if kind not in OF_THE_MOMENT]
"""Prompts say nothing of the host."""


def _lesson(number: int, chars: int) -> Lesson:
    return Lesson(
        symptom=f"symptom {number} " + "s" * chars,
        move=f"move {number} " + "m" * chars,
        excerpt="c" * chars,
        language=None,
        findings=(FindingKind.COMPILE_ERROR,) if number % 2 else (),
        source="x",
        origin=LessonOrigin.USER,
    )


def _source(chars: int, plan_chars: int = 0) -> KernelSource:
    code = "// first line\n" + "int filler;\n" * (chars // 12) + "// last line"
    plan = "def launch(x, out):\n" + "    a = 1\n" * (plan_chars // 10) + "    copy[1, 1](x, out)"
    return KernelSource(language=Language.SYCL, device_code=code, plan=plan)


_BODY: Final = "  x = x * {0}.5f + 1.25f;  // a line of forty\n"


def _functions(count: int, chars: int) -> KernelSource:
    code = "\n\n".join(
        f"float f{i}(float x) {{\n" + _BODY.format(i) * (chars // len(_BODY)) + "}"
        for i in range(count)
    )
    plan = "def launch(x, out):\n    copy[1, 1](x, out)"
    return KernelSource(language=Language.SYCL, device_code=code, plan=plan)


def _elite(samples: Any, source: KernelSource, findings: tuple[Finding, ...], log: str) -> Elite:
    """Return a failed candidate when there are findings, else one that passed."""
    elite: Elite = samples.passed_elite("p")
    candidate = replace(elite.candidate, source=source)
    if not findings:
        return replace(elite, candidate=candidate)
    evaluation = Evaluation(
        candidate=candidate.digest,
        task="t",
        device="sycl:0",
        outcome=EvaluationOutcome.COMPILE_ERROR,
        compile=CompileReport(log=log, compile_ns=1.0, cached=False, object_bytes=0),
        findings=findings,
    )
    return replace(elite, candidate=candidate, evaluation=evaluation)


def _errors(count: int, chars: int, kinds: list[FindingKind]) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            kind=kinds[number % len(kinds)],
            severity=Severity.ERROR,
            message=f"error number {number}: " + "e" * chars,
            line=number + 1,
        )
        for number in range(count)
    )


def _huge(request: ProposalRequest, reference: int, names: int, instructions: int) -> Any:
    """Return the request with a task of that size: characters, parameters, characters."""
    tensors = tuple(
        NamedTensor(
            name=f"layer_{i}_weight",
            role=TensorRole.PARAMETER,
            dtype="float32",
            shape=(64, 64),
            path=f"layers.{i}.weight",
        )
        for i in range(names)
    )
    first, *others = request.admission.workloads
    task = replace(request.task, reference="r" * reference, instructions="i" * instructions)
    first = replace(first, tensors=(*first.tensors, *tensors))
    admission = replace(request.admission, workloads=(first, *others))
    return replace(request, task=task, admission=admission)


def _length(written: WrittenPrompt) -> int:
    return sum(len(message.content) for message in written.messages)


@st.composite
def _cases(draw: st.DrawFn) -> dict[str, Any]:
    """Draw how large each part is: mostly small, at times absurd."""
    size = st.sampled_from([0, 10, 300, 3_000, 30_000, 300_000])
    return {
        "operator": draw(st.sampled_from(list(Operator))),
        "role": draw(st.sampled_from(sorted(EXPERTS))),
        "reference": draw(size),
        "instructions": draw(size),
        "names": draw(st.sampled_from([0, 3, 300, 3_000])),
        "code": draw(size),
        "plan": draw(size),
        "errors": draw(st.integers(0, 30)),
        "error_chars": draw(size),
        "kinds": draw(st.lists(st.sampled_from(_OF_CANDIDATES), min_size=1, max_size=12)),
        "log": draw(size),
        "lessons": draw(st.integers(0, 12)),
        "lesson_chars": draw(size),
        "section_chars": draw(size),
        "inspirations": draw(st.integers(0, 6)),
        "max_chars": draw(st.sampled_from([0, LEAST_MAX_CHARS, 50_000, DEFAULT_MAX_CHARS])),
    }


@hypothesis.given(case=_cases())
@hypothesis.settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
def test_any_request_makes_a_prompt_within_the_bound(
    request_: ProposalRequest, samples: Any, case: dict[str, Any]
) -> None:
    """With rules, signature, plan language, parent's code, a repair's findings, form of reply."""
    request = _huge(request_, case["reference"], case["names"], case["instructions"])
    errors = _errors(case["errors"], case["error_chars"], case["kinds"])
    source = _source(case["code"], case["plan"])
    selection = Selection(
        operator=case["operator"],
        parent=None
        if case["operator"] is Operator.SEED
        else _elite(samples, source, errors, "l" * case["log"]),
        inspirations=tuple(_elite(samples, source, (), "") for _ in range(case["inspirations"])),
        hint="h" * case["lesson_chars"],
    )
    lessons = tuple(_lesson(number, case["lesson_chars"]) for number in range(case["lessons"]))
    written = WRITER.write(
        replace(request, selection=selection),
        expert=EXPERTS[case["role"]],
        lessons=lessons,
        sections=Sections(
            philosophy="p" * case["section_chars"],
            strategies="s" * case["section_chars"],
            pitfalls="f" * case["section_chars"],
            analysis="a" * case["section_chars"],
        ),
        max_chars=case["max_chars"],
    )

    assert _length(written) <= max(case["max_chars"], LEAST_MAX_CHARS)
    assert set(written.shown) <= set(lessons)
    text = text_of(written)
    for kept in ("# Task: softmax", "float32 (2048, 4096)  input", "1e-05 * scale", "Test CPU"):
        assert kept in text
    assert short_reference("sycl").strip() in text
    assert "# Rules\n- Every output element" in text
    assert "```sycl block" in text.partition("# Reply")[2]
    if selection.parent is not None:
        move = text.partition("# Your move")[2]
        assert "// first line" in move
        assert "// last line" in move
        assert "def launch(x, out):" in move
    if "# Your move: repair" in text:
        assert all(f"error number {number}:" in text for number in range(min(12, len(errors))))


def _full(request: ProposalRequest, samples: Any) -> ProposalRequest:
    """Return a repair with something of everything, or nearly."""
    errors = _errors(2, 20, [FindingKind.COMPILE_ERROR])
    warning = replace(errors[0], severity=Severity.WARNING, message="a warning")
    parent = _elite(samples, _source(6_000), (*errors, warning), "l" * 2_500)
    request = _huge(request, 4_000, 100, 2_000)
    return replace(request, selection=Selection(operator=Operator.REPAIR, parent=parent))


def test_what_goes_first_stands_first(request_: ProposalRequest, samples: Any) -> None:
    """Less room never brings anything back, and things go in the order that is written down."""
    request = _full(request_, samples)
    lessons = tuple(_lesson(number, 400) for number in range(4))
    whole = WRITER.write(request, lessons=lessons, max_chars=200_000)
    assert whole.cut == ()
    order = [cut.name for cut in CUTS]
    before: tuple[str, ...] = ()
    for max_chars in range(_length(whole), LEAST_MAX_CHARS - 1, -500):
        written = WRITER.write(request, lessons=lessons, max_chars=max_chars)
        steps = [order.index(name) for name in written.cut if name in order]
        assert steps == sorted(steps)
        assert set(before) <= set(written.cut)
        before = written.cut
    assert before


def test_no_more_is_cut_than_needed(request_: ProposalRequest, samples: Any) -> None:
    """One character too many costs the last lesson, and nothing else."""
    request = _full(request_, samples)
    lessons = tuple(_lesson(number, 400) for number in range(3))
    whole = _length(WRITER.write(request, lessons=lessons, max_chars=200_000))
    large = replace(request, task=replace(request.task, reference="r" * (4_000 + 72_000 - whole)))
    assert WRITER.write(large, lessons=lessons).cut == ()
    larger = replace(large, task=replace(large.task, reference=large.task.reference + "r"))
    written = WRITER.write(larger, lessons=lessons)
    assert written.cut == ("lessons beyond the first",)
    assert written.shown == lessons[:2]


@pytest.mark.parametrize("chars", [1_000, 10_000])
def test_a_parents_code_stays_whole(request_: ProposalRequest, samples: Any, chars: int) -> None:
    """However little room there is for the rest."""
    parent = _elite(samples, _source(chars), (), "")
    request = _huge(request_, 300_000, 1_000, 100_000)
    request = replace(request, selection=Selection(operator=Operator.MUTATE, parent=parent))
    text = WRITER.write(request, max_chars=0).messages[1].content
    assert parent.candidate.source.device_code in text
    assert "too long to be shown whole" not in text


@pytest.mark.parametrize("operator", [Operator.MUTATE, Operator.REPAIR])
def test_a_parent_that_is_not_shown_whole_is_to_be_edited(
    request_: ProposalRequest, samples: Any, operator: Operator
) -> None:
    """A whole new candidate would lack what was not shown."""
    findings = _errors(1, 10, [FindingKind.COMPILE_ERROR]) if operator is Operator.REPAIR else ()
    parent = _elite(samples, _functions(60, 2_000), findings, "")
    selection = Selection(operator=operator, parent=parent)
    text = WRITER.write(replace(request_, selection=selection)).messages[1].content
    # Functions are whole or have no body at all, and the one that is meant stays to the last.
    bodies = parent.candidate.source.device_code.split("\n\n")
    shown = [body for body in bodies if body in text]
    left_out = text.count("lines are left out here and stay as they are")
    assert len(shown) + left_out == 60
    assert left_out
    assert not findings or bodies[0] in text
    assert "It is too long to be shown whole. Reply with edits" in text


def test_an_ordinary_prompt_is_left_alone(request_: ProposalRequest, samples: Any) -> None:
    selection = Selection(
        operator=Operator.COMBINE,
        parent=samples.passed_elite("a"),
        inspirations=tuple(samples.passed_elite(str(i)) for i in range(3)),
    )
    lessons = tuple(_lesson(number, 200) for number in range(4))
    written = WRITER.write(replace(request_, selection=selection), lessons=lessons)
    assert written.cut == ()
    assert written.shown == lessons

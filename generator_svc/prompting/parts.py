"""Parts: everything that a prompt's templates print, as values.

Made once from a request; `length` then takes away what there is no room for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from generator_svc.experts import Expert
from generator_svc.held_out import HeldOut, held_out_of
from generator_svc.markdown import clip
from generator_svc.meta_prompts.sections import MAX_SECTION_CHARS, SECTION_NAMES, Sections
from generator_svc.prompting.blocks import blocks_text
from generator_svc.prompting.candidate_view import CandidateView, candidate_view
from generator_svc.prompting.device_lines import device_lines
from generator_svc.prompting.direction import direction_lines
from generator_svc.prompting.findings import Diagnosis, FindingView, diagnoses, side_findings
from generator_svc.prompting.lessons import LessonView, lesson_views
from generator_svc.prompting.siblings import sibling_lines
from generator_svc.prompting.task_text import (
    WorkloadView,
    mode_text,
    precision_text,
    right_text,
    workload_views,
)
from generator_svc.store.proposals import Sibling
from kernel_foundry.domain.archive import Elite, Selection
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.lesson import Lesson
from kernel_foundry.domain.material import Material
from kernel_foundry.domain.mechanisms import DIAGNOSIS, PROFILES
from kernel_foundry.domain.request import ProposalRequest
from kernel_foundry.domain.trick import named_trick
from kernel_foundry.languages import language_named
from kernel_foundry.plan import allowed_library_ops, short_reference

_INSPIRATION_DIVISOR: Final = 9
"""An inspiration's code gets 1/9 of a prompt's length; the parent's is shown whole."""

_MAX_INSPIRATIONS: Final = 3
"""Whatever the archive selected (two of its own choice); more would crowd the parent out."""

_MATERIAL_DIVISOR: Final = 3
"""Materials together get 1/3 of a prompt's length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """Name of the task and what is right."""

    name: str
    precision_text: str
    right_text: str
    mode_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptParts:
    """The variables of templates; each field is a variable of that name."""

    operator: Operator
    language: str
    """The candidate's, such as "cuda"."""
    language_name: str
    phrases: Mapping[str, str]
    """Terms and parts of sentences in the language's words, by name; "" for those it lacks."""
    expert: Expert
    has_emphasis: bool
    """Whether the expert's advice is included: not for a repair or templatise."""
    task: TaskView
    instructions: str
    reference: str
    workloads: tuple[WorkloadView, ...]
    device_lines: tuple[str, ...]
    plan_reference: str
    library_ops: tuple[str, ...]
    worked_example: str
    blocks: str
    """Tested functions that device code may include; empty where a language has none."""
    parent: CandidateView | None
    """None for a seed."""
    outcome: str
    """How a failed parent failed, such as "wrong_result"; else empty."""
    diagnoses: tuple[Diagnosis, ...]
    """Diagnoses of why a parent failed; empty for one that passed."""
    side_findings: tuple[FindingView, ...]
    """The findings of a failed parent that are no errors."""
    partner: CandidateView | None
    """Of a combination."""
    inspirations: tuple[CandidateView, ...]
    direction_lines: tuple[str, ...]
    user_hint: str
    """The hint of the run's user, in their words."""
    banned_tricks: tuple[str, ...]
    """The tricks that the run's user banned, in their words."""
    materials: tuple[Material, ...]
    """Code to start from; empty for a proposal with a parent."""
    siblings: tuple[str, ...]
    """Earlier children of the parent, or earlier seeds: a line each, the oldest first."""
    lessons: tuple[LessonView, ...]
    sections: Sections
    rivals: int
    """Requests in flight with the same prompt; their replies should differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptInputs:
    """The parts of a prompt beside the request itself."""

    expert: Expert
    lessons: tuple[Lesson, ...]
    sections: Sections
    worked_example: str
    siblings: tuple[Sibling, ...] = ()
    rivals: int = 0
    """Requests in flight with the same prompt."""


def parts_of(
    request: ProposalRequest, operator: Operator, inputs: PromptInputs, *, max_chars: int
) -> PromptParts:
    """Return everything that a prompt for `request` could print.

    Args:
        request: What is to be proposed.
        operator: What is really asked for (`effective_operator`).
        inputs: What the generator knows beside the request.
        max_chars: Of the whole prompt; candidates get shares of it.
    """
    if DIAGNOSIS in request.without:
        request = replace(request, selection=_bare(request.selection, findings=()))
    if PROFILES in request.without:
        request = replace(request, selection=_bare(request.selection, profile=None))
    task, admission = request.task, request.admission
    language = language_named(admission.device.language.value)
    held_out = held_out_of(task, admission)
    failure = _failure(request, operator, held_out)
    kinds = tuple(diagnosis.kind for diagnosis in failure.diagnoses)
    # Lessons are about changes of the algorithm, which templatise keeps.
    lessons = inputs.lessons if operator is not Operator.TEMPLATISE else ()
    is_free = operator not in (Operator.REPAIR, Operator.TEMPLATISE)
    known = _known_candidates(request, operator, held_out, max_chars)
    phrases = language.phrases()
    return PromptParts(
        operator=operator,
        language=language.name,
        language_name=language.title,
        phrases=phrases,
        expert=inputs.expert,
        has_emphasis=is_free,
        task=_task_view(request),
        instructions=task.instructions.strip(),
        reference=task.reference.strip(),
        workloads=workload_views(admission),
        device_lines=device_lines(admission.device, phrases),
        plan_reference=short_reference(language.name).strip(),
        library_ops=tuple(f"ops.{name}" for name in allowed_library_ops(task, admission)),
        worked_example=inputs.worked_example,
        blocks=blocks_text(admission),
        parent=known.parent,
        outcome=failure.outcome,
        diagnoses=failure.diagnoses,
        side_findings=failure.side_findings,
        partner=known.partner,
        inspirations=known.inspirations if is_free else (),
        direction_lines=(
            direction_lines(request.selection, near=phrases["near_memory"]) if is_free else ()
        ),
        user_hint=request.selection.user_hint.strip(),
        banned_tricks=request.selection.banned_tricks,
        materials=_materials(request, max_chars) if operator is Operator.SEED else (),
        siblings=_sibling_lines(request, operator, inputs.siblings),
        lessons=lesson_views(lessons, held_out, kinds=kinds),
        sections=_clipped(inputs.sections),
        rivals=inputs.rivals,
    )


def _bare(selection: Selection, **fields: Any) -> Selection:
    """Return a selection whose verdicts have these fields in place of their own."""

    def bare(elite: Elite) -> Elite:
        return replace(elite, evaluation=replace(elite.evaluation, **fields))

    return replace(
        selection,
        parent=None if selection.parent is None else bare(selection.parent),
        inspirations=tuple(bare(elite) for elite in selection.inspirations),
    )


def _sibling_lines(
    request: ProposalRequest, operator: Operator, siblings: tuple[Sibling, ...]
) -> tuple[str, ...]:
    selection = request.selection
    return sibling_lines(
        siblings,
        parent=selection.parent.evaluation if selection.parent else None,
        operator=operator,
        banned_tricks=selection.banned_tricks,
        with_remarks=DIAGNOSIS not in request.without,
    )


def _materials(request: ProposalRequest, max_chars: int) -> tuple[Material, ...]:
    """Return the code to start from, each clipped to an equal share of the room for all.

    What has a banned trick's words is left out.
    """
    tricks = request.selection.banned_tricks
    shown = [m for m in request.materials if not named_trick(tricks, m.text)]
    room = max_chars // _MATERIAL_DIVISOR // max(len(shown), 1)
    return tuple(replace(m, text=clip(m.text.strip("\n"), room)) for m in shown)


def _task_view(request: ProposalRequest) -> TaskView:
    task, admission = request.task, request.admission
    return TaskView(
        name=task.name,
        precision_text=precision_text(task, admission),
        right_text=right_text(task, admission.tolerance),
        mode_text=mode_text(task),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """Why the parent failed; empty for one that passed."""

    outcome: str = ""
    diagnoses: tuple[Diagnosis, ...] = ()
    side_findings: tuple[FindingView, ...] = ()


def _failure(request: ProposalRequest, operator: Operator, held_out: HeldOut) -> _Failure:
    parent = request.selection.parent
    if parent is None or operator is not Operator.REPAIR:
        return _Failure()
    return _Failure(
        outcome=parent.evaluation.outcome.value,
        diagnoses=diagnoses(parent.candidate.source, parent.evaluation, held_out),
        side_findings=side_findings(parent.evaluation, held_out),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownCandidates:
    parent: CandidateView | None
    partner: CandidateView | None
    inspirations: tuple[CandidateView, ...]


def _known_candidates(
    request: ProposalRequest, operator: Operator, held_out: HeldOut, max_chars: int
) -> _KnownCandidates:
    """Return parent, partner of a combination, and correct candidates to learn from."""
    selection = request.selection

    def view(elite: Elite, room: int | None = None) -> CandidateView:
        return candidate_view(elite, request.admission, held_out, max_chars=room)

    partner, others = None, selection.inspirations
    if operator is Operator.COMBINE:
        partner, others = view(others[0]), others[1:]
    return _KnownCandidates(
        parent=view(selection.parent) if selection.parent else None,
        partner=partner,
        inspirations=tuple(
            view(elite, max_chars // _INSPIRATION_DIVISOR)
            for elite in others[:_MAX_INSPIRATIONS]
            if elite.evaluation.passed
        ),
    )


def _clipped(sections: Sections) -> Sections:
    return Sections(
        **{name: clip(getattr(sections, name), MAX_SECTION_CHARS) for name in SECTION_NAMES}
    )

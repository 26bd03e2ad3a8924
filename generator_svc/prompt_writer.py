"""Prompts: a proposal request becomes a system and a user message, by Jinja2 templates.

Knows nothing of models. `sections` (evolved guidance) and `experience` (lessons of earlier
kernels) are printed when there are any; who finds and credits them is not decided here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

import jinja2

from generator_svc import prompt_views as views
from generator_svc.llm.interface import ChatMessage
from generator_svc.roles import EMPHASIS
from kernel_foundry.domain.archive import Elite
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import ProposalRequest
from kernel_foundry.plan import parse, short_reference

_LANGUAGE_NAMES = {Language.SYCL: "SYCL", Language.CUDA: "CUDA C++"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSection:
    """A piece of guidance in the system prompt."""

    title: str
    text: str


class PromptWriter:
    """Writes prompts from the templates of this package.

    Args:
        sections: Guidance for the system prompt, in order.
    """

    def __init__(self, sections: tuple[PromptSection, ...] = ()) -> None:
        self._sections = sections
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("generator_svc", "prompts"),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,
        )

    def write(
        self, request: ProposalRequest, experience: tuple[str, ...] = ()
    ) -> tuple[ChatMessage, ...]:
        """Return the system and the user message of `request`."""
        operator = effective_operator(request)
        system = self._render(
            "system.md.j2",
            {
                "language_name": _LANGUAGE_NAMES[request.admission.device.language],
                "emphasis": _emphasis(request, operator),
                "sections": self._sections,
            },
        )
        user = self._render(
            f"{operator.value}.md.j2",
            {**self._context(request, experience), **_known_candidates(request, operator)},
        )
        return (
            ChatMessage(role="system", content=system),
            ChatMessage(role="user", content=user),
        )

    def retry(self, language: Language, reason: str) -> ChatMessage:
        """Return the message that asks again after a reply without a whole candidate."""
        values = {"language": language.value, "reason": reason.rstrip(".")}
        return ChatMessage(role="user", content=self._render("retry.md.j2", values))

    def _context(self, request: ProposalRequest, experience: tuple[str, ...]) -> dict[str, object]:
        task, device = request.task, request.admission.device
        language = device.language.value
        return {
            "task": {
                "name": task.name,
                "precision_text": views.precision_text(task, device.language),
                "tolerance_text": views.tolerance_text(request.admission.tolerance),
            },
            "instructions": views.clip(task.instructions.strip(), views.MAX_INSTRUCTIONS_CHARS),
            "reference": views.clip(task.reference.strip(), views.MAX_REFERENCE_CHARS),
            "workloads": views.workload_views(request.admission),
            "device_lines": views.device_lines(device),
            "plan_reference": short_reference(language),
            "library_ops": tuple(f"ops.{name}" for name in task.library_ops),
            "language_name": _LANGUAGE_NAMES[device.language],
            "language_notes": _text("notes", language),
            "worked_example": _text("examples", language),
            "experience": experience,
            "language": language,
            "direction_lines": views.direction_lines(request.selection),
        }

    def _render(self, name: str, values: Mapping[str, object]) -> str:
        return self._templates.get_template(name).render(values).strip() + "\n"


def _text(folder: str, language: str) -> str:
    path = resources.files("generator_svc").joinpath("prompts", folder, f"{language}.md")
    return path.read_text("utf-8").strip()


def effective_operator(request: ProposalRequest) -> Operator:
    """Return what to do: a failed parent is repaired, whatever the selection asks for.

    What has parameters already is not made tunable again, but changed.
    """
    selection = request.selection
    if selection.parent is None:
        return Operator.SEED
    if not selection.parent.evaluation.passed:
        return Operator.REPAIR
    if selection.operator is Operator.COMBINE and not selection.inspirations:
        return Operator.MUTATE
    if selection.operator in (Operator.SEED, Operator.REPAIR):
        return Operator.MUTATE
    if selection.operator is Operator.TEMPLATISE and _has_parameters(selection.parent):
        return Operator.MUTATE
    return selection.operator


def _has_parameters(elite: Elite) -> bool:
    """Return whether a correct candidate's plan has parameters to tune."""
    return bool(parse(elite.candidate.source.plan).tune)


def _emphasis(request: ProposalRequest, operator: Operator) -> str:
    """Return the island's sentence; none where speed is not what is asked for now."""
    if operator in (Operator.REPAIR, Operator.TEMPLATISE):
        return ""
    return EMPHASIS.get(request.selection.island, "")


def _known_candidates(request: ProposalRequest, operator: Operator) -> dict[str, object]:
    """Return parent, partner and inspirations, as far as the operator shows them."""
    selection, task = request.selection, request.task
    known: dict[str, object] = {}
    if selection.parent is not None:
        known["parent"] = views.candidate_view(
            selection.parent, task, max_chars=views.MAX_CANDIDATE_CHARS
        )
    others = selection.inspirations
    if operator is Operator.COMBINE:
        known["partner"] = views.candidate_view(
            others[0], task, max_chars=views.MAX_CANDIDATE_CHARS
        )
        others = others[1:]
    known["inspirations"] = tuple(
        views.candidate_view(elite, task, max_chars=views.MAX_INSPIRATION_CHARS)
        for elite in others[: views.MAX_INSPIRATIONS]
        if elite.evaluation.passed
    )
    return known

"""Prompts: a proposal request becomes a system and a user message, by Jinja2 templates.

Which lessons and sections they show is decided in `learning`; what there is no room for is left
out in the order of `length`.
"""

from dataclasses import dataclass, fields
from pathlib import Path

from generator_svc.effective_operator import effective_operator
from generator_svc.experts import EXPERTS, GENERAL, Expert
from generator_svc.meta_prompts.sections import Sections, seed_sections
from generator_svc.prompting.length import DEFAULT_MAX_CHARS, LEAST_MAX_CHARS, fit
from generator_svc.prompting.parts import PromptInputs, PromptParts, parts_of
from generator_svc.prompting.templates import PromptTemplates
from generator_svc.store.proposals import Sibling
from kernel_foundry.domain import mechanisms
from kernel_foundry.domain.exchange import ChatMessage
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson
from kernel_foundry.domain.request import ProposalRequest
from kernel_foundry.errors import LlmConfigurationError
from kernel_foundry.languages import language_named


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPrompt:
    """A prompt, and what became of what was to go into it."""

    messages: tuple[ChatMessage, ...]
    """System, then user."""
    shown: tuple[Lesson, ...]
    """The lessons that stand in it."""
    cut: tuple[str, ...]
    """Names of parts without room, such as "worked example"; empty if all fitted."""
    mechanisms: tuple[str, ...] = ()
    """Mechanisms that acted in it, names of `kernel_foundry.domain.mechanisms`."""


class PromptWriter:
    """Writes prompts from templates.

    Args:
        folder: A user's own templates, see `PromptTemplates`; None: the package's alone.

    Raises:
        LlmConfigurationError: a template of `folder` cannot be read.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._templates = PromptTemplates(folder)

    def write(
        self,
        request: ProposalRequest,
        *,
        expert: Expert = EXPERTS[GENERAL],
        lessons: tuple[Lesson, ...] = (),
        sections: Sections | None = None,
        siblings: tuple[Sibling, ...] = (),
        rivals: int = 0,
        max_chars: int = DEFAULT_MAX_CHARS,
    ) -> WrittenPrompt:
        """Return the prompt for `request`.

        Args:
            request: What is to be proposed.
            expert: Who is to propose it.
            lessons: What experience says, the most useful first.
            sections: Guidance; None: the hand-written one.
            siblings: What was made of the same parent before, the oldest first.
            rivals: Requests in flight with the same prompt but for their number of rivals.
            max_chars: Most characters of both messages; a lower one than `LEAST_MAX_CHARS` is
                taken as that, since no useful prompt is shorter.

        Raises:
            LlmConfigurationError: a user's template does not render, or makes the prompt too
                long whatever is left out.
        """
        room = max(max_chars, LEAST_MAX_CHARS)
        operator = effective_operator(request.selection)
        language = request.admission.device.language
        inputs = PromptInputs(
            expert=expert,
            lessons=lessons,
            sections=sections or seed_sections(language),
            worked_example=self._templates.text(f"{language.value}/example.md"),
            siblings=siblings,
            rivals=rivals,
        )
        parts = parts_of(request, operator, inputs, max_chars=room)
        fitted = fit(parts, lambda some: _length(self._messages(some)), room)
        messages = self._messages(fitted.parts)
        if _length(messages) > room:
            raise LlmConfigurationError(
                f"the prompt has {_length(messages)} characters where {room} are allowed, after "
                f"everything was left out that may be: shorten the templates of {self._folder}",
                chars=str(_length(messages)),
                allowed=str(room),
            )
        return WrittenPrompt(
            messages=messages,
            shown=tuple(view.lesson for view in fitted.parts.lessons),
            cut=fitted.cut,
            mechanisms=_mechanisms(fitted.parts),
        )

    def retry(self, language: Language, reason: str) -> ChatMessage:
        """Return the message that asks again after a reply without a whole candidate."""
        values = {"language": language.value, "reason": reason.rstrip(".")}
        return ChatMessage(role="user", content=self._templates.render("retry.md.j2", values))

    def advice(self, kind: FindingKind, language: Language) -> str:
        """Return the advice of repair prompts on a kind of finding; "" if there is none.

        Raises:
            LlmConfigurationError: a user's template does not render.
        """
        name = f"repair/{kind.value}.md.j2"
        if name not in self._templates.names:
            return ""
        phrases = language_named(language.value).phrases()
        return self._templates.render(name, {"phrases": phrases}).strip()

    def _messages(self, parts: PromptParts) -> tuple[ChatMessage, ...]:
        values = {field.name: getattr(parts, field.name) for field in fields(parts)}
        user = f"{parts.operator.value}.md.j2"
        return (
            ChatMessage(role="system", content=self._templates.render("system.md.j2", values)),
            ChatMessage(role="user", content=self._templates.render(user, values)),
        )


def _mechanisms(parts: PromptParts) -> tuple[str, ...]:
    """Return which mechanisms a prompt of these parts shows the work of."""
    findings = parts.parent.findings if parts.parent is not None else ()
    blamed = [finding for diagnosis in parts.diagnoses for finding in diagnosis.findings]
    shown = {
        mechanisms.EXPERTS: parts.has_emphasis and parts.expert.role != GENERAL,
        mechanisms.INSPIRATIONS: parts.inspirations,
        mechanisms.DIRECTION: parts.direction_lines,
        mechanisms.DIAGNOSIS: (*blamed, *parts.side_findings, *findings),
        mechanisms.PROFILES: parts.parent is not None and parts.parent.profile,
        mechanisms.LESSONS: parts.lessons,
        mechanisms.SIBLINGS: parts.siblings,
        mechanisms.MATERIALS: parts.materials,
    }
    return tuple(name for name, is_shown in shown.items() if is_shown)


def _length(messages: tuple[ChatMessage, ...]) -> int:
    return sum(len(message.content) for message in messages)

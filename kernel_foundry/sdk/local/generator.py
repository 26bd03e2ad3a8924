"""The generator in this process, its prompts, and replies of a recorded run."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kernel_foundry.domain.exchange import ChatMessage, Exchange
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson
from kernel_foundry.domain.request import ProposalRequest
from kernel_foundry.paths import exchanges_dir, generator_store_url, prompts_dir
from kernel_foundry.ports import Experience, Generator

if TYPE_CHECKING:
    from generator_svc.recorded_replies import (
        RecordedReplies as RecordedReplies,  # noqa: PLC0414  sdk.replay has it from here
    )


def local_generator() -> tuple[Generator, Experience]:
    """Open the generator and its library of lessons, which share a store."""
    from generator_svc.assembly import assemble

    parts = assemble(
        store_url=generator_store_url(), exchanges=exchanges_dir(), prompts=prompts_dir()
    )
    return parts.generator, parts.experience


def recorded_replies(language: Language, exchanges: Iterable[Exchange]) -> "RecordedReplies":
    """Return what makes proposals of a run's recorded exchanges again."""
    from generator_svc.recorded_replies import RecordedReplies

    return RecordedReplies(language, exchanges)


def prompt_messages(
    request: ProposalRequest, lessons: Sequence[Lesson] = ()
) -> tuple[ChatMessage, ...]:
    """Return what a generator of this machine would ask a model: a system and a user message.

    Args:
        request: What is to be proposed.
        lessons: What experience says, the most useful first.

    Raises:
        LlmConfigurationError: a template of the user's own does not render.
    """
    from generator_svc.prompting.writer import PromptWriter

    return PromptWriter(prompts_dir()).write(request, lessons=tuple(lessons)).messages


def repair_advice(kind: FindingKind, language: Language) -> str:
    """Return what repair prompts say of a kind of finding; "" for those that they say nothing of.

    Raises:
        LlmConfigurationError: a template of the user's own does not render.
    """
    from generator_svc.prompting.writer import PromptWriter

    return PromptWriter(prompts_dir()).advice(kind, language)

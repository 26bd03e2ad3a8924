"""The generator in this process, and replies of a recorded run."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kernel_foundry.domain.exchange import Exchange
from kernel_foundry.domain.language import Language
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

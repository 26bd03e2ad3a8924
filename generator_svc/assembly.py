"""Puts the parts of a generator together: one store under all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from generator_svc.exchange_log import ExchangeLog
from generator_svc.experience.library import ExperienceLibrary
from generator_svc.experience.opening import open_library
from generator_svc.generator import LocalGenerator
from generator_svc.llm.interface import LanguageModels
from generator_svc.llm.litellm_models import LiteLlmModels
from generator_svc.prompting.writer import PromptWriter
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.lesson import Lesson


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorParts:
    """A generator and its library; closing the generator closes the store of both."""

    generator: LocalGenerator
    experience: ExperienceLibrary


def assemble(
    *,
    store_url: str,
    exchanges: Path,
    prompts: Path | None = None,
    models: LanguageModels | None = None,
    seeds: Mapping[str, Lesson] | None = None,
) -> GeneratorParts:
    """Return a generator.

    Args:
        store_url: SQLAlchemy URL of the store of what is remembered and learnt.
        exchanges: Folder that keeps every exchange with a model.
        prompts: Folder with a user's own templates; None: the package's alone.
        models: What answers; None: LiteLLM.
        seeds: Hand-written lessons by key; None: the package's.

    Raises:
        LlmConfigurationError: a template of `prompts` cannot be read.
    """
    store = GeneratorStore(store_url)
    library = open_library(store, seeds=seeds)
    generator = LocalGenerator(
        models=models or LiteLlmModels(),
        store=store,
        exchanges=ExchangeLog(exchanges),
        library=library,
        prompts=PromptWriter(prompts),
    )
    return GeneratorParts(generator=generator, experience=library)

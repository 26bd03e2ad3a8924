"""Real generators whose accounts lie in a folder of the test's own."""

from pathlib import Path

from generator_svc.assembly import GeneratorParts, assemble
from generator_svc.generator import LocalGenerator
from generator_svc.llm.interface import LanguageModels


def assembled_in(folder: Path, models: LanguageModels) -> GeneratorParts:
    """Return a generator and its library, which keep everything in `folder`."""
    return assemble(
        store_url=f"sqlite:///{folder / 'generator.db'}",
        exchanges=folder / "exchanges",
        models=models,
    )


def generator_in(folder: Path, models: LanguageModels) -> LocalGenerator:
    """Return a generator that keeps everything in `folder`."""
    return assembled_in(folder, models).generator

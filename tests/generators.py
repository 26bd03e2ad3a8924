"""Real generators whose books lie in a folder of the test's own."""

from pathlib import Path

from generator_svc.exchange_log import ExchangeLog
from generator_svc.generator import Generator
from generator_svc.llm.interface import LanguageModels
from generator_svc.store.store import GeneratorStore


def generator_in(folder: Path, models: LanguageModels) -> Generator:
    """Return a generator that keeps everything in `folder`."""
    return Generator(
        models=models,
        store=GeneratorStore(f"sqlite:///{folder / 'generator.db'}"),
        exchanges=ExchangeLog(folder / "exchanges"),
    )

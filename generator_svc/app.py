"""Puts the generator service together."""

from pathlib import Path

from generator_svc.exchange_log import ExchangeLog
from generator_svc.generator import Generator
from generator_svc.llm.litellm_models import LiteLlmModels
from generator_svc.prompting.writer import PromptWriter
from generator_svc.service import generator_service
from generator_svc.store.store import GeneratorStore
from kernel_foundry.rpc import server


async def serve(
    *,
    listen: str,
    store_url: str,
    exchanges: Path,
    prompts: Path | None = None,
    grace_s: float = server.GRACE_S,
) -> None:
    """Serve the generator until SIGTERM or SIGINT.

    Args:
        listen: `unix:/path` or `host:port`.
        store_url: SQLAlchemy URL of the store of what is remembered and learnt.
        exchanges: Folder that keeps every exchange with a model.
        prompts: Folder of a user's own prompt templates.
        grace_s: How long calls in flight may take to finish at the end.

    Raises:
        LlmConfigurationError: a template of `prompts` cannot be read.
        ServiceUnavailableError: the address cannot be bound.
    """
    generator = Generator(
        models=LiteLlmModels(),
        store=GeneratorStore(store_url),
        exchanges=ExchangeLog(exchanges),
        prompts=PromptWriter(prompts),
    )
    await server.serve([generator_service(generator)], listen, grace_s=grace_s)

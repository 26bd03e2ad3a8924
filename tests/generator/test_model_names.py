"""Which models there are, and that asking costs no import and no network."""

import os
import subprocess
import sys

import pytest

from generator_svc.llm.answer_time import answer_seconds
from generator_svc.llm.catalogue import PROVIDER_DEFAULTS, RECIPES, check_model_name, default_models
from generator_svc.llm.litellm_models import LiteLlmModels
from kernel_foundry.errors import LlmConfigurationError

_LOADS_NOTHING = """
import asyncio, sys
from pathlib import Path
from generator_svc.assembly import assemble
from generator_svc.llm.interface import ModelRequest
from generator_svc.llm.litellm_models import LiteLlmModels
from kernel_foundry.errors import KernelFoundryError

async def main():
    models = LiteLlmModels()
    parts = assemble(store_url="sqlite:///nowhere.db", exchanges=Path("nowhere"), models=models)
    generator = parts.generator
    await models.check(("recipes",))
    await models.facts("recipes")
    request = ModelRequest(models=("recipes",), messages=(), max_output_tokens=1)
    try:
        await models.complete(request)
    except KernelFoundryError as error:
        assert "has a bug" in error.message  # which was given nothing to read
    await generator.list_models()
    await generator.close()

asyncio.run(main())
print("litellm" in sys.modules)
"""
_REFUSES_A_SLIP = """
import asyncio, sys
from generator_svc.llm.litellm_models import LiteLlmModels
from kernel_foundry.errors import LlmConfigurationError

try:
    asyncio.run(LiteLlmModels().check(("Recipe",)))
except LlmConfigurationError as error:
    assert error.message == "there is no model 'Recipe': did you mean recipes?"
    print("litellm" in sys.modules)
"""
_CALLS_NO_NETWORK = """
import asyncio, sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise RuntimeError(f"{event} {arguments}")

sys.addaudithook(refuse)
from generator_svc.llm.litellm_models import LiteLlmModels

async def main():
    facts = await LiteLlmModels().facts("openai/gpt-5")
    print(facts.output_usd_per_token > 0)

asyncio.run(main())
"""


def _run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=280
    )
    return done.stdout.strip()


def test_without_a_key_recipes_is_the_default() -> None:
    """A machine with no key still has a model."""
    assert default_models({}) == (RECIPES,)


def test_with_a_key_its_provider_comes_first() -> None:
    """Recipes stay available; an empty variable is no key."""
    models = default_models({"OPENAI_API_KEY": "sk", "ANTHROPIC_API_KEY": ""})
    assert [model.split("/")[0] for model in models] == ["openai", RECIPES]


def test_the_default_can_be_named() -> None:
    """The user's own choice wins over keys, and is listed once."""
    environment = {"OPENAI_API_KEY": "sk", "KERNEL_FOUNDRY_MODEL": RECIPES}
    assert default_models(environment)[0] == RECIPES
    assert len(default_models(environment)) == 2


def test_nothing_loads_litellm_before_a_call_needs_it() -> None:
    """Making, listing, all of recipes and closing work without the slow import."""
    assert _run(_LOADS_NOTHING) == "False"


def test_a_slip_in_the_built_in_name_is_refused_at_once() -> None:
    assert _run(_REFUSES_A_SLIP) == "False"


def test_loading_litellm_makes_no_connection() -> None:
    """The cost table is the one in the package."""
    assert _run(_CALLS_NO_NETWORK) == "True"


async def test_a_prompt_that_is_marked_costs_what_writing_it_to_a_cache_does() -> None:
    facts = await LiteLlmModels().facts("anthropic/claude-sonnet-4-5")
    assert facts.input_usd_per_token == pytest.approx(1.25 * 3e-6)


async def test_every_default_has_a_price() -> None:
    """USD caps hold for the models that are taken without being named."""
    models = LiteLlmModels()
    for name in default_models(dict.fromkeys(PROVIDER_DEFAULTS, "key")):
        facts = await models.facts(name)
        assert facts.input_usd_per_token is not None
        assert facts.output_usd_per_token is not None
    await models.close()


def test_the_environment_says_how_long_an_answer_may_take() -> None:
    assert answer_seconds({}) == 600.0
    assert answer_seconds({"KERNEL_FOUNDRY_ANSWER_SECONDS": "2.5"}) == 2.5
    for wrong in ("soon", "-1", "0", "nan", "inf"):
        with pytest.raises(LlmConfigurationError, match="expected seconds"):
            answer_seconds({"KERNEL_FOUNDRY_ANSWER_SECONDS": wrong})


@pytest.mark.parametrize("model", ["oobabooga/http://host:1/v1", "huggingface/https://host/x"])
async def test_a_name_with_an_address_is_the_owners_alone(
    monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """Whoever names a model would name where prompts go, with the owner's key."""
    with pytest.raises(LlmConfigurationError) as caught:
        await LiteLlmModels().check((model,))
    assert caught.value.metadata["model"] == model
    monkeypatch.setenv("KERNEL_FOUNDRY_MODEL", model)
    check_model_name(model, os.environ)

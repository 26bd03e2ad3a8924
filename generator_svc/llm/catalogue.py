"""Model names: the built-in one, and the default of each provider that has a key.

`environ` is passed in so that tests need no real keys.
"""

from collections.abc import Mapping
from typing import Final

from kernel_foundry.closest_name import did_you_mean
from kernel_foundry.errors import LlmConfigurationError

RECIPES: Final = "recipes"
"""Offline model that composes kernels from recipes."""

_LIKE: Final = 0.8

DEFAULT_MODEL_VARIABLE: Final = "KERNEL_FOUNDRY_MODEL"
"""Environment variable that overrides the default model."""

PROVIDER_DEFAULTS: Final = {
    "ANTHROPIC_API_KEY": "anthropic/claude-sonnet-4-5",
    "OPENAI_API_KEY": "openai/gpt-5",
    "GEMINI_API_KEY": "gemini/gemini-2.5-pro",
    "DEEPSEEK_API_KEY": "deepseek/deepseek-chat",
    "MISTRAL_API_KEY": "mistral/mistral-large-latest",
}
"""Key variable to the model taken when the user names none; the first that is set wins.

All are in the cost table of the oldest LiteLLM that we accept, so that USD caps can hold.
"""


def check_model_name(model: str, environ: Mapping[str, str]) -> None:
    """Refuse a name that says where to ask: prompts would be sent to whoever is named there.

    The generator's owner may name one as `KERNEL_FOUNDRY_MODEL`; clients and run files may not.

    Raises:
        LlmConfigurationError: the name has an address.
    """
    if "//" in model and model != environ.get(DEFAULT_MODEL_VARIABLE):
        raise LlmConfigurationError(
            f"model {model!r} names an address: expected provider/model; a server of your own is "
            "set by its provider's variable where the generator runs, such as OPENAI_API_BASE, or "
            f"by {DEFAULT_MODEL_VARIABLE}",
            model=model,
            variable=DEFAULT_MODEL_VARIABLE,
        )


def check_spelling(model: str) -> None:
    """Refuse what is meant to be the built-in model; no provider's name is like it.

    Raises:
        LlmConfigurationError: the name is nearly `RECIPES`.
    """
    if meant := did_you_mean(model.lower(), (RECIPES,), likeness=_LIKE):
        raise LlmConfigurationError(f"there is no model {model!r}{meant}", model=model)


def default_models(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the models to offer without being asked, the default first; never empty."""
    chosen = environ.get(DEFAULT_MODEL_VARIABLE, "")
    configured = [model for key, model in PROVIDER_DEFAULTS.items() if environ.get(key)]
    names = [chosen] if chosen else []
    return tuple(dict.fromkeys([*names, *configured, RECIPES]))

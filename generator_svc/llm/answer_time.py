"""How long a model may take for one answer; `environ` is passed in so that tests need none."""

import math
from collections.abc import Mapping
from typing import Final

from kernel_foundry.errors import LlmConfigurationError

ANSWER_SECONDS_VARIABLE: Final = "KERNEL_FOUNDRY_ANSWER_SECONDS"
"""Environment variable that overrides the default."""

_DEFAULT_SECONDS: Final = 600.0
"""Long, since reasoning models think for minutes."""


def answer_seconds(environ: Mapping[str, str]) -> float:
    """Return how long a model may take for one answer.

    Raises:
        LlmConfigurationError: the variable holds no time.
    """
    text = environ.get(ANSWER_SECONDS_VARIABLE, "")
    try:
        seconds = float(text) if text else _DEFAULT_SECONDS
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < math.inf:
        raise LlmConfigurationError(
            f"{ANSWER_SECONDS_VARIABLE} is {text!r}: expected seconds, such as 600",
            variable=ANSWER_SECONDS_VARIABLE,
        )
    return seconds

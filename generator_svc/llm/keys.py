"""Keeps keys out of every text that outlives a call: messages, logs, stored replies.

Keys come from the environment only. Providers echo them ("Incorrect API key provided: …"), in
full or with stars in the middle, so what a provider says is cleaned before it is kept.
"""

import logging
import os
import re
from collections.abc import Mapping
from typing import Final

_SECRET_VARIABLE: Final = re.compile(
    r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?|PRIVATE)(_ID)?$", re.IGNORECASE
)
"""Names of variables that hold something secret."""

_LEAST_CHARS: Final = 8
"""Least length of a key. A shorter value, or one of letters alone, is not taken for a key: users
give "none" or "anything" for servers of their own, and such a word would vanish from every text."""

_KEY_SHAPES: Final = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|r8)[-_][\w*.\-]{6,}"  # most providers' prefix, stars included
    r"|\bAIza[\w*\-]{10,}"  # Google's, which stand in URLs, too
    r"|(?<=[Bb]earer )[\w*.\-+/=]{6,}"
    r"|(?<=[?&]key=)[^&\s'\"]+"
)
"""Texts that look like a key, whether it is in the environment or not."""

REDACTED: Final = "[key]"

_LOGGERS: Final = (
    "LiteLLM",
    "LiteLLM Router",
    "LiteLLM Proxy",
    "asyncio",
    "httpx",
    "openai._base_client",
)
"""Loggers that may get a provider's words or a request's headers."""


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return every secret value of `environ`, the longest first."""
    values = {
        value
        for name, value in environ.items()
        if _SECRET_VARIABLE.search(name) and len(value) >= _LEAST_CHARS and not value.isalpha()
    }
    return tuple(sorted(values, key=len, reverse=True))


def without_secrets(text: str, environ: Mapping[str, str] | None = None) -> str:
    """Return `text` without the keys of the environment; everything else stays, also code.

    Halves of characters (surrogates from JSON's escapes) become "?", since UTF-8 cannot encode
    them.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")
    for value in secret_values(os.environ if environ is None else environ):
        text = text.replace(value, REDACTED)
    return text


def without_keys(text: str, environ: Mapping[str, str] | None = None) -> str:
    """Return a provider's words without the environment's keys and texts that look like keys."""
    return _KEY_SHAPES.sub(REDACTED, without_secrets(text, environ))


class _WithoutKeys(logging.Filter):
    """Cleans records in place, tracebacks too, and lets all pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = without_keys(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = without_keys(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True


def keep_keys_out_of_logs() -> None:
    """Clean the logs of the libraries that we use; calling it twice changes nothing."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(f, _WithoutKeys) for f in logger.filters):
            logger.addFilter(_WithoutKeys())

"""Coding agents as models: a program reads the prompt in a scratch folder and leaves a reply.

The reply is judged like that of any model. What an agent spends is not known here: its price has
no entry in a table, and it asks its own provider as often as it likes.
"""

import os
import stat
import tempfile
import time
from pathlib import Path
from typing import Final

from generator_svc.llm.agent_command import (
    ANSWER_FILE,
    PROMPT_FILE,
    agent_command,
    agent_environment,
)
from generator_svc.llm.agent_process import run_program
from generator_svc.llm.interface import ModelFacts, ModelReply, ModelRequest
from generator_svc.llm.keys import without_keys, without_secrets
from generator_svc.llm.retrying import FailedAttempt
from generator_svc.replies.plain_text import plain_text
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.exchange import ChatMessage, FinishReason
from kernel_foundry.domain.request import TokenUsage
from kernel_foundry.errors import KernelFoundryError, LlmConfigurationError, LlmUnavailableError

FACTS: Final = ModelFacts(
    input_usd_per_token=None, output_usd_per_token=None, max_output_tokens=None
)

_MOST_BYTES_PER_CHAR: Final = 4

_SAID_CHARS: Final = 500
"""Of an agent's last words in a message."""

_TASK: Final = (
    f"Write your whole answer to the conversation below to the file `{ANSWER_FILE}` in this "
    "folder: exactly the text that you would reply with, code blocks included. Only that file "
    "is read, after you have ended.\n"
)


def check(model: str) -> None:
    """Raise `LlmConfigurationError` unless the agent may be started and is installed."""
    agent_command(model, os.environ)


async def attempt(model: str, request: ModelRequest, timeout_seconds: float) -> ModelReply:
    """Run the agent once.

    An agent that ends well without a reply has declined: that is a refused reply.

    Raises:
        FailedAttempt: it did not end in time, or not with status 0.
    """
    try:
        command = agent_command(model, os.environ)
    except LlmConfigurationError as error:
        raise FailedAttempt(error, is_transient=False) from error
    started_s = time.monotonic()
    # An agent may have left what cannot be deleted; its reply counts all the same.
    with tempfile.TemporaryDirectory(prefix="agent-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / PROMPT_FILE).write_text(_prompt(request.messages), encoding="utf-8")
        environment = {**agent_environment(model, os.environ), "TMPDIR": name}
        try:
            end = await run_program(
                command, folder=folder, environment=environment, seconds=timeout_seconds
            )
        except OSError as error:
            raise _failed(f"model {model!r} does not start: {error.strerror}", model) from error
        said = plain_text(without_keys(end.output)).strip()[-_SAID_CHARS:] or "nothing"
        if end.exit_status is None:
            raise _failed(
                f"model {model!r} did not end in {timeout_seconds:g} s; it said: {said}", model
            )
        if end.exit_status != 0:
            how = f"ended with status {end.exit_status}"
            raise _failed(f"model {model!r} {how}; it said: {said}", model)
        text = _answer(folder / ANSWER_FILE)
    if text is None:
        reply, finish = f"the agent wrote no {ANSWER_FILE}; it said: {said}", FinishReason.REFUSED
    else:
        is_cut = len(text) > LONGEST_CANDIDATE
        reply = plain_text(without_secrets(text))[:LONGEST_CANDIDATE]
        finish = FinishReason.LENGTH if is_cut else FinishReason.STOP
    return ModelReply(
        text=reply,
        finish=finish,
        usage=TokenUsage(
            model=model,
            input_tokens=0,
            output_tokens=0,
            cost_usd=0.0,
            latency_ms=(time.monotonic() - started_s) * 1e3,
        ),
    )


def _failed(message: str, model: str) -> FailedAttempt:
    # Not asked again at once: minutes of work would be repeated; the loop has its own pauses.
    error: KernelFoundryError = LlmUnavailableError(message, model=model)
    return FailedAttempt(error, is_transient=False, is_lost=True)


def _prompt(messages: tuple[ChatMessage, ...]) -> str:
    parts = [f"# {message.role}\n\n{message.content}\n" for message in messages]
    return "\n".join([_TASK, *parts])


def _answer(path: Path) -> str | None:
    """Return the text of a regular file, one character more than allowed at most; else None."""
    try:
        # No link, which could show any file of ours, and no pipe, which would never open.
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return None
        content = file.read(LONGEST_CANDIDATE * _MOST_BYTES_PER_CHAR + 1)
    return content.decode("utf-8", "replace")[: LONGEST_CANDIDATE + 1]

"""The file for GPU MODE's leaderboards: `submission.py` with `custom_kernel`."""

from collections.abc import Sequence
from typing import Final

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.export.function_file import check_gpu, function_file, gpu_model
from kernel_foundry.sdk.export.winner import Winner

_USAGE: Final = """\
As GPU MODE takes it: `custom_kernel(data)` of the inputs, and weights if there are some, as a
tuple, with or without the outputs.

    popcorn submit submission.py

All work goes to the GPU's default queue."""
_REFUSED: Final = "stream"
"""The server takes no text with this word, whatever it does there."""


def popcorn_source(winners: Sequence[Winner], module: str) -> str:
    """Return the text of the file without its header.

    Raises:
        InvalidArgumentError: the server would refuse it; else as `function_file`.
    """
    check_gpu(winners, "GPU MODE")
    text = function_file(winners, module, usage=_USAGE, queue="default_queue")
    if _REFUSED in text.lower():
        line = next(line for line in text.splitlines() if _REFUSED in line.lower())
        raise InvalidArgumentError(
            f"GPU MODE's server refuses every file with the word {_REFUSED!r}, and this one has"
            f" the line {line.strip()[:100]!r}",
            field="to",
        )
    return text


def popcorn_file(text: str, winner: Winner, *, module: str, problem: str) -> str:
    """Return the file with the header that says where it is to be submitted.

    Raises:
        InvalidArgumentError: the header has no place for such a name.
    """
    del module  # the file is always sent as it is
    if problem.split() != [problem]:
        raise InvalidArgumentError(
            f"GPU MODE's header takes a leaderboard's name of one word, not {problem!r}: give it"
            " with --problem",
            field="problem",
        )
    gpu = gpu_model(winner.admission.device.name)
    return f"#!POPCORN leaderboard {problem}\n#!POPCORN gpu {gpu}\n\n{text}"

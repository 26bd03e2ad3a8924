"""A file whose entry is a function of inputs, and code that such targets share."""

import re
import textwrap
from collections.abc import Sequence

from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.domain.language import Language
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.export.torch_file import torch_file
from kernel_foundry.sdk.export.winner import Winner, tensors_of


def function_file(
    winners: Sequence[Winner], module: str, *, usage: str, queue: str = "streams"
) -> str:
    """Return the text of a file with the functions of `runtime/function.py`.

    Weights of the task's module are arguments after the inputs; errors as `torch_file`.
    """
    weights = tensors_of(winners[0].workloads[0], TensorRole.PARAMETER, TensorRole.BUFFER)
    if weights:
        listed = ", ".join(tensor.path for tensor in weights)
        usage += "\n" + textwrap.fill(f"Weights follow the inputs: {listed}.", 100)
    return torch_file(winners, module, usage=usage, more_parts=("function",), queue=queue)


def check_gpu(winners: Sequence[Winner], place: str) -> None:
    """Refuse winners for the CPU.

    Raises:
        InvalidArgumentError: they are.
    """
    if winners[0].record.source.language is not Language.CUDA:
        raise InvalidArgumentError(
            f"{place} runs on NVIDIA GPUs, and these kernels are for the CPU", field="to"
        )


def gpu_model(device: str) -> str:
    """Return the model in the name of a GPU: "H100" of "NVIDIA H100 80GB HBM3"."""
    found = re.search(r"\b[A-Z]{1,3}\d{1,4}[A-Z]?\b", device)
    return found.group() if found else re.sub(r"\W+", "_", device)

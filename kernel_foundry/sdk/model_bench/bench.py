"""Measures a user's model with exported winners and without them, in a process of its own."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kernel_foundry.domain.plain import from_json, to_json
from kernel_foundry.errors import InvalidArgumentError, ProcessLostError
from kernel_foundry.scratch import scratch_folder
from kernel_foundry.sdk.capture.capture import file_and_class
from kernel_foundry.sdk.model_bench.measurement import Form, ModelMeasurement
from kernel_foundry.sdk.model_bench.request import BenchReply, BenchRequest

DEFAULT_SAMPLES: Final = 30


def bench_model(
    model: str,
    swaps: Sequence[str],
    *,
    forms: Sequence[Form] = (),
    samples: int = DEFAULT_SAMPLES,
    tolerance: float = 0.0,
    device: str = "",
) -> ModelMeasurement:
    """Measure a model end to end, with exported winners in it and without them.

    Args:
        model: "FILE.py" with a class `Model`, or "FILE.py:CLASS"; the class is made with
            `get_init_inputs()` and called with `get_inputs()`.
        swaps: Files of `kfoundry export --to torch`, as "FILE.py" or "FILE.py:CLASS" with the class
            of the modules to replace.
        forms: How to run it; where none are given, all that the device has but `CONTIGUOUS`.
        samples: Of each form, with the winners and without.
        tolerance: Largest difference of an output's element over the tensor's root mean square; 0
            for 1e-3, and 2e-2 where outputs have 16 bits.
        device: Such as "cpu" or "cuda:0"; "" is the GPU where there is one.

    Raises:
        InvalidArgumentError: a file is not there or not as it has to be, or the model has no module
            that a file replaces.
        ProcessLostError: the process ended before it had measured; it wrote why.
    """
    file, kind = file_and_class(model)
    request = BenchRequest(
        file=str(file),
        model=kind or "Model",
        swaps=tuple((str(path), of) for path, of in map(file_and_class, swaps)),
        forms=tuple(forms),
        samples=samples,
        tolerance=tolerance,
        device=device,
    )
    with scratch_folder("model_bench") as folder:
        report = Path(folder, "measured.json")
        ended = subprocess.run(
            [
                sys.executable, "-m", "kernel_foundry.sdk.model_bench.process",
                str(report), to_json(request),
            ],
            stdout=sys.stderr,  # what the model prints
            check=False,
        )  # fmt: skip
        if not report.exists():
            raise ProcessLostError(
                f"{model} ended its process (exit code {ended.returncode}) before it was measured",
                cause=f"exit code {ended.returncode}",
            )
        reply = from_json(BenchReply, report.read_text(encoding="utf-8"))
    if reply.measurement is None:
        raise InvalidArgumentError(reply.refusal, field=reply.field)
    return reply.measurement

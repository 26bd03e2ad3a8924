"""The evaluator in this process, and functions of its parts that judge no candidate."""

import os
from dataclasses import replace

from kernel_foundry.domain.device import Peaks
from kernel_foundry.exported_form import FormReport, FormRequest
from kernel_foundry.ports import Evaluator


def local_evaluator(unsafe_no_sandbox: bool) -> Evaluator:
    """Make an evaluator with the settings of the environment.

    Raises:
        IsolationUnavailableError: nothing isolates candidates here and no flag allows that.
    """
    from evaluator_svc.evaluator import LocalEvaluator
    from evaluator_svc.settings import EvaluatorSettings

    settings = EvaluatorSettings.from_environment(os.environ)
    if unsafe_no_sandbox:
        settings = replace(settings, unsafe_no_sandbox=True)
    return LocalEvaluator(settings)


def try_exported_form(request: FormRequest) -> FormReport:
    """Run an exported file against its own reference, in a locked process on this machine.

    Raises:
        ProcessLostError: the process died or did not end.
    """
    from evaluator_svc.exported_form.start import try_exported_form as try_form
    from evaluator_svc.settings import EvaluatorSettings

    return try_form(request, EvaluatorSettings.from_environment(os.environ))


def traffic_bound_ns(
    peaks: Peaks, *, cache_bytes: int, read_bytes: int, written_bytes: int
) -> float:
    """Return what moving these bytes takes at least on a device with these peaks."""
    from evaluator_svc.judge.graph.traffic import Traffic
    from evaluator_svc.judge.graph.traffic import traffic_bound_ns as bound_ns

    traffic = Traffic(read_bytes=read_bytes, written_bytes=written_bytes)
    return bound_ns(traffic, cache_bytes=cache_bytes, peaks=peaks)


def own_public_key() -> str:
    """Return the public key that this machine's evaluator signs with, in hexadecimal; "" for none.

    Raises:
        InvalidArgumentError: what is kept there is no key.
    """
    from evaluator_svc.settings import EvaluatorSettings
    from evaluator_svc.signing import own_public_key as kept

    return kept(EvaluatorSettings.from_environment(os.environ).signing_key)

"""The whole self-test: probes of every device kind's host, then the cases.

Works on any `ports.Evaluator`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernel_foundry.domain.device import Capabilities, DeviceSpec
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.probe import Probe
from kernel_foundry.errors import (
    BackendUnavailableError,
    IsolationUnavailableError,
    KernelFoundryError,
)
from kernel_foundry.ports import Evaluator
from kernel_foundry.sdk.selftest.case import Case, CaseResult
from kernel_foundry.sdk.selftest.rates import Rates, rates
from kernel_foundry.sdk.selftest.run_cases import Listener, run_cases

_NULL_KIND = "null"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedDevice:
    """The probes of a device's host."""

    device: str
    """Id of the device."""
    probes: tuple[Probe, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTest:
    """The result of a self-test."""

    devices: tuple[ProbedDevice, ...]
    cases: tuple[CaseResult, ...]

    @property
    def rates(self) -> Rates:
        """Counts over all cases."""
        return rates(self.cases)

    @property
    def passed(self) -> bool:
        """True when every probe passed and every case that was run had an expected verdict."""
        return self.rates.all_well and all(p.passed for d in self.devices for p in d.probes)


async def selftest(
    evaluator: Evaluator, *, device: str = "", cases: Sequence[Case] = (), listener: Listener
) -> SelfTest:
    """Probe the evaluator's devices, then have `cases` judged.

    Args:
        evaluator: What is tried.
        device: Id or kind; "" takes the first device of every kind.
        cases: May be none.
        listener: Told of each case's result as it comes.

    Raises:
        BackendUnavailableError: there is no such device, or none at all.
        IsolationUnavailableError: nothing locks candidates in.
    """
    chosen = _chosen(await evaluator.capabilities(), device)
    probed = tuple([await _probe(evaluator, spec.id) for spec in chosen.values()])
    places = {language: device or spec.id for language, spec in chosen.items()}
    return SelfTest(
        devices=probed, cases=await run_cases(evaluator, cases, places, listener=listener)
    )


def _chosen(capabilities: Capabilities, device: str) -> Mapping[Language, DeviceSpec]:
    """The device that stands for each language."""
    found: dict[Language, DeviceSpec] = {}
    for spec in capabilities.devices:
        kind = spec.id.partition(":")[0]
        if device in (spec.id, kind) or (not device and kind != _NULL_KIND):
            found.setdefault(spec.language, spec)
    if not found:
        reasons = "; ".join(f"{a.kind}: {a.reason}" for a in capabilities.availability if a.reason)
        wanted = repr(device) if device else "at all"
        raise BackendUnavailableError(
            f"there is no device {wanted} to test ({reasons})", device=device, reasons=reasons
        )
    return found


async def _probe(evaluator: Evaluator, device: str) -> ProbedDevice:
    try:
        probes = await evaluator.probe(device)
    except (BackendUnavailableError, IsolationUnavailableError):
        raise
    except KernelFoundryError as error:
        failed = Probe(name="host.probing", passed=False, detail=f"probing failed: {error}")
        probes = (failed,)
    return ProbedDevice(device=device, probes=probes)

"""All probes of one device's host, in order."""

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.probing.device import DeviceProbes, Evaluate, comparison_probe
from evaluator_svc.probing.sandbox import probe_sandbox
from evaluator_svc.probing.timer import timer_probes
from kernel_foundry.domain.probe import Probe


def probe_host(site: DeviceSite, evaluate: Evaluate) -> tuple[Probe, ...]:
    """Return what was tried and how it went; raises only for failures of our own.

    Args:
        site: The device.
        evaluate: Judges a candidate on it, the way all are.
    """
    if site.kind == "null":
        # It runs nothing that could be right or wrong.
        return (_opened(site), *probe_sandbox(site))
    return (
        _opened(site),
        comparison_probe(site.judge.probe_comparison()),
        *DeviceProbes(site.spec.id, site.spec.language, evaluate).probes(),
        *timer_probes(site),
        *probe_sandbox(site),
    )


def _opened(site: DeviceSite) -> Probe:
    spec = site.spec
    return Probe(
        name="device.open",
        passed=True,
        detail=f"{spec.id} is {spec.name}, driver {spec.driver_version}",
    )

"""All probes of one device's host, in order.

Knows nothing of how each is made.
"""

from evaluator_svc.device_site import DeviceSite
from kernel_foundry.domain.probe import Probe


def probe_host(site: DeviceSite) -> tuple[Probe, ...]:
    """Return what was tried and how it went; raises only for failures of our own."""
    return (_opened(site),)


def _opened(site: DeviceSite) -> Probe:
    spec = site.spec
    return Probe(
        name="device.open",
        passed=True,
        detail=f"{spec.id} is {spec.name}, driver {spec.driver_version}",
    )

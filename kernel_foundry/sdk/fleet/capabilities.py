"""The capabilities of a fleet, merged from those of its members."""

from collections.abc import Collection
from dataclasses import replace

from kernel_foundry.domain.device import (
    Availability,
    Capabilities,
    DeviceLoad,
    IsolationReport,
)
from kernel_foundry.sdk.fleet.member import FleetDevice, Member, MemberState


def fleet_capabilities(
    members: Collection[Member], devices: tuple[FleetDevice, ...]
) -> Capabilities:
    """Return the capabilities of a fleet.

    Kinds of devices come first in `availability`, then each evaluator that gets no work, by name.
    """
    told = [m.capabilities for m in members if m.capabilities is not None]
    working = [m.capabilities for m in members if m.state is MemberState.SERVING and m.capabilities]
    return Capabilities(
        devices=tuple(d.spec for d in devices),
        availability=(*_kinds(told, devices), *_out_of_work(members)),
        isolation=_in_common([c.isolation for c in working]),
        versions=tuple(dict.fromkeys(v for c in working for v in c.versions)),
        processes=tuple(dict.fromkeys(p for c in working for p in c.processes)),
        profilers=tuple(
            replace(p, kind=p.kind.replace(d.own_id, d.spec.id, 1))
            for d in devices
            for p in (d.member.capabilities.profilers if d.member.capabilities else ())
            if p.kind.partition(" ")[0] == d.own_id
        ),
        loads=tuple(DeviceLoad(device=d.spec.id, pending=d.load) for d in devices),
    )


def _kinds(told: list[Capabilities], devices: tuple[FleetDevice, ...]) -> list[Availability]:
    used = dict.fromkeys(d.spec.kind for d in devices)
    missing = {
        a.kind: a
        for c in told
        for a in c.availability
        if not a.available and a.kind.partition(":")[0] not in used
    }
    return [*(Availability(kind=k, available=True) for k in used), *missing.values()]


def _out_of_work(members: Collection[Member]) -> list[Availability]:
    found = []
    for member in members:
        if member.state is MemberState.DRAINING:
            reason = f"draining, {member.in_flight} calls left"
        elif member.state is MemberState.SERVING and not member.devices:
            unmet = "; ".join(member.excluded)
            reason = f"`where` fits none of its devices: {unmet}" if unmet else "it has no device"
        elif member.state is MemberState.SERVING:
            continue
        else:
            reason = f"{member.state}: {member.reason}" if member.reason else member.state.value
        found.append(Availability(kind=member.name, available=False, reason=reason))
    return found


def _in_common(reports: list[IsolationReport]) -> IsolationReport:
    """The mechanisms that every evaluator has, and whatever is missing on any."""
    first = reports[0].mechanisms if reports else ()
    return IsolationReport(
        mechanisms=tuple(m for m in first if all(m in r.mechanisms for r in reports)),
        missing=tuple(dict.fromkeys(reason for r in reports for reason in r.missing)),
    )

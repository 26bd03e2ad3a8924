"""The state of each evaluator of a fleet, as shown to users."""

from dataclasses import dataclass

from kernel_foundry.sdk.fleet.member import Member, MemberState


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDevice:
    """A device of an evaluator in a fleet."""

    id: str
    """By which its evaluator knows it."""
    class_name: str
    """Times compare within one class."""
    load: int
    """Calls that use it or wait for it, as its evaluator last reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetHost:
    """An evaluator of a fleet."""

    name: str
    """As behind "@" in ids of its devices."""
    address: str
    state: str
    """starting, serving, draining or away."""
    reason: str
    """Why it is away, or which of its devices the fleet's `where` leaves out; "" for neither."""
    devices: tuple[HostDevice, ...]
    """Of one that is away, those that it had."""


def host_of(member: Member) -> FleetHost:
    """Return the state of a member."""
    return FleetHost(
        name=member.name,
        address=member.entry.address,
        state=member.state.value,
        reason=member.reason if member.state is MemberState.AWAY else "; ".join(member.excluded),
        devices=tuple(
            HostDevice(id=device.own_id, class_name=device.class_name, load=device.load)
            for device in member.devices
        ),
    )

"""Chooses the device of a call: of one class for each task, then the least busy.

Decides at once, from the reports of members; `fleet.py` waits and retries.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from kernel_foundry.domain.language import Language
from kernel_foundry.sdk.fleet.member import FleetDevice, Member, MemberState

_ADMISSION_WORTH: Final = 2
"""Calls that more may wait for a device which has admitted the task than for one that has not:
an admission takes longer than several verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceQuery:
    """What a call needs."""

    device: str = ""
    """A device id, a class, a kind, or "" for any that speaks `language`."""
    language: Language | None = None
    task: str = ""
    """Digest; calls on one task stay on one class. "": on none."""

    @property
    def key(self) -> str:
        """What is asked for, as devices are listed by."""
        return self.device or (f"language {self.language.value}" if self.language else "")

    @property
    def shown(self) -> str:
        """The same for people."""
        if self.device:
            return repr(self.device)
        return f"for {self.language.value}" if self.language else "at all"


class Router:
    """The devices of all members, listed by every way to ask for them."""

    def __init__(self) -> None:
        self._usable: dict[str, list[FleetDevice]] = {}
        self._known: set[str] = set()
        self._classes: dict[tuple[str, str], str] = {}
        """Class of each task, by what was asked for."""
        self._used: defaultdict[str, list[str]] = defaultdict(list)
        """All classes of each task."""

    def take(self, members: Iterable[Member]) -> None:
        """Take up the members' devices; called when they have changed."""
        usable: defaultdict[str, list[FleetDevice]] = defaultdict(list)
        for member in members:
            for device in member.devices:
                ways = (*device.ways, f"language {device.spec.language.value}", "")
                self._known.update(ways)
                if member.state is MemberState.SERVING:
                    for way in ways:
                        usable[way].append(device)
        self._usable = dict(usable)

    @property
    def devices(self) -> tuple[FleetDevice, ...]:
        """Those that get work, the largest class first."""
        usable = self._usable.get("", [])
        counts = {d.class_name: len(self._usable[d.class_name]) for d in usable}
        return tuple(sorted(usable, key=lambda d: -counts[d.class_name]))

    def is_known(self, wanted: DeviceQuery) -> bool:
        """Return whether a member ever had such a device, though it may be away now."""
        return wanted.key in self._known

    def class_of(self, wanted: DeviceQuery) -> str:
        """Return the class that the task was given; "" where none was yet."""
        return self._classes.get((wanted.task, wanted.key), "")

    def choose(
        self,
        wanted: DeviceQuery,
        *,
        avoid: Collection[FleetDevice] = (),
        shun: Collection[str] = (),
    ) -> FleetDevice | None:
        """Return the device for a call; None where none of the right class takes work now.

        Args:
            wanted: What the call needs.
            avoid: Devices that failed this call before.
            shun: Names of members to be taken only where there is no other.
        """
        matching = self._usable.get(wanted.key, ())
        if wanted.task:
            matching = self._usable.get(self._class_for(wanted, matching), ())
            if wanted.device:
                matching = [d for d in matching if wanted.device in d.ways]
        able = [d for d in matching if d not in avoid] if avoid else matching
        if shun:
            able = [d for d in able if d.member.name not in shun] or able
        task = wanted.task
        return min(
            able,
            key=lambda d: d.load if task in d.tasks else d.load + _ADMISSION_WORTH,
            default=None,
        )

    def _class_for(self, wanted: DeviceQuery, matching: Collection[FleetDevice]) -> str:
        """The class of the task: chosen once and kept, whatever comes and goes.

        One that the task has already, asked for in another way, or the one with the fewest calls
        for each device, this one counted: of idle classes the largest.
        """
        place = (wanted.task, wanted.key)
        if place not in self._classes and matching:
            classes: defaultdict[str, list[FleetDevice]] = defaultdict(list)
            for device in matching:
                classes[device.class_name].append(device)
            used = self._used[wanted.task]
            kept = next((name for name in used if name in classes), "")
            self._classes[place] = kept or min(
                classes, key=lambda name: (_load(classes[name]) + 1) / len(classes[name])
            )
            used.append(self._classes[place])
        return self._classes.get(place, "")


def _load(devices: list[FleetDevice]) -> int:
    return sum(device.in_flight + device.others for device in devices)

"""Which evaluators make a fleet: named one by one, or listed in a file that may change.

Whether one of them answers is known in `member.py`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.name import check_name
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.plain_yaml import PlainYamlError, read_yaml
from kernel_foundry.rpc.address import check_address
from kernel_foundry.text_file import read_text_file

MOST_MEMBERS: Final = 4096
_LONGEST_FILE: Final = 1 << 17
_LONGEST_TEXT: Final = 200
_GIB: Final = 1 << 30
_SUFFIXES: Final = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One evaluator of a fleet, as its user names it."""

    address: str
    """`host:port`, `host:port/application`, `unix:/path` or `local`."""
    name: str
    """What its devices have behind "@"; the address where nothing else is given."""
    labels: tuple[str, ...] = ()
    clock_policy: str = ""
    """Of its devices, see `DeviceSpec.clock_policy`."""
    drain: bool = False
    """It finishes what it has and gets nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFilter:
    """What a device must have to be used; everything that is left out may be anything."""

    kind: str = ""
    architecture: str = ""
    driver: str = ""
    """How the driver's version begins."""
    memory_gib: float = 0.0
    """At least."""
    labels: tuple[str, ...] = ()
    """All of them are among the labels of the device's evaluator."""

    def unmet(self, entry: Entry, device: DeviceSpec) -> str:
        """Return what a device of an evaluator lacks to be used, as the file says it; "": no."""
        if self.kind not in ("", device.kind):
            return f"kind: {self.kind}, and it is {device.kind}"
        if self.architecture not in ("", device.architecture):
            return f"architecture: {self.architecture}, and it has {device.architecture}"
        if not device.driver_version.startswith(self.driver):
            return f"driver: {self.driver}, and it has {device.driver_version}"
        if device.memory_bytes < self.memory_gib * _GIB:
            return f"memory_gib: {self.memory_gib:g}, and it has {device.memory_bytes / _GIB:.1f}"
        missing = ", ".join(sorted(set(self.labels) - set(entry.labels)))
        return f"labels: {missing}, and its evaluator has no such" if missing else ""


ANYWHERE: Final = DeviceFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The evaluators of a fleet, and which of their devices it uses."""

    entries: tuple[Entry, ...]
    where: DeviceFilter = ANYWHERE


class Source(Protocol):
    """Where a fleet's membership comes from."""

    def read(self) -> Membership:
        """Return it.

        Raises:
            InvalidArgumentError: it cannot be read; the message says where and why.
        """
        ...

    def has_changed(self) -> bool:
        """Return whether it may be another than `read` returned last."""
        ...


class FixedSource:
    """Evaluators that were named one by one.

    Raises:
        InvalidArgumentError: there is none, or one twice.
    """

    def __init__(self, addresses: tuple[str, ...]) -> None:
        entries = tuple(_entry({"address": address}, "evaluator") for address in addresses)
        self._membership = _membership(entries, ANYWHERE, "the fleet")

    def read(self) -> Membership:
        """Return them."""
        return self._membership

    def has_changed(self) -> bool:
        """Return that they have not."""
        return False


class FileSource:
    """A fleet file: YAML with `evaluators` and, if wanted, `where` (docs/fleet.md)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_stamp = (0, 0, 0)

    def read(self) -> Membership:
        """Return what the file says now.

        Raises:
            InvalidArgumentError: it cannot be read; the message says where and why.
        """
        self._read_stamp = self._stamp()
        try:
            document = read_yaml(read_text_file(self._path, _LONGEST_FILE))
        except PlainYamlError as error:
            raise InvalidArgumentError(f"{self._path}: {error}", field="fleet") from error
        place = str(self._path)
        keys = _mapping(document, place, ("evaluators", "where"))
        listed = keys.get("evaluators")
        if not isinstance(listed, list):
            raise _invalid(place, "evaluators: expected a list")
        entries = tuple(
            _entry(value, f"{place}: evaluators[{number}]") for number, value in enumerate(listed)
        )
        where = _where(keys.get("where") or {}, f"{place}: where")
        return _membership(entries, where, place)

    def has_changed(self) -> bool:
        """Return whether the file was written since it was read."""
        return self._stamp() != self._read_stamp

    def _stamp(self) -> tuple[int, int, int]:
        try:
            status = self._path.stat()
        except OSError:
            return (0, 0, 0)  # `read` says why
        return (status.st_mtime_ns, status.st_size, status.st_ino)


def fleet_source(target: str) -> Source | None:
    """Return the fleet that an evaluator's target names; None: it names one evaluator.

    A fleet is `ADDRESS,ADDRESS` or the path of a fleet file, which ends in .yaml or .yml.

    Raises:
        InvalidArgumentError: an address of the list is none, or comes twice.
    """
    if target.endswith(_SUFFIXES):
        return FileSource(Path(target))
    if "," not in target:
        return None
    return FixedSource(tuple(part.strip() for part in target.split(",") if part.strip()))


def _membership(entries: tuple[Entry, ...], where: DeviceFilter, place: str) -> Membership:
    if not 0 < len(entries) <= MOST_MEMBERS:
        raise _invalid(place, f"{len(entries)} evaluators, expected 1 to {MOST_MEMBERS}")
    for values in ([e.name for e in entries], [e.address for e in entries]):
        twice = [value for value, count in Counter(values).items() if count > 1]
        if twice:
            raise _invalid(place, f"{twice[0]!r} comes twice")
    return Membership(entries=entries, where=where)


def _entry(value: Any, place: str) -> Entry:
    keys = _mapping(
        {"address": value} if isinstance(value, str) else value,
        place,
        ("address", "name", "labels", "clock_policy", "drain"),
    )
    address = _text(keys, "address", place)
    if not _is_address(address):
        expected = "expected HOST:PORT, HOST:PORT/APPLICATION, unix:/PATH or local"
        raise _invalid(place, f"address {address!r}: {expected}")
    name = _text(keys, "name", place) or address
    if "@" in name:
        raise _invalid(place, f"name {name!r}: expected one without '@'")
    try:
        check_name(name, "name")
    except InvalidArgumentError as error:
        raise _invalid(place, f"{error.message}; `name` gives it another") from error
    drain = keys.get("drain", False)
    if not isinstance(drain, bool):
        raise _invalid(place, f"drain: {drain!r}, expected true or false")
    return Entry(
        address=address,
        name=name,
        labels=_texts(keys, "labels", place),
        clock_policy=_text(keys, "clock_policy", place),
        drain=drain,
    )


def _is_address(text: str) -> bool:
    if text == "local":
        return True
    is_unix = text.startswith("unix:")
    try:
        check_address(text if is_unix else text.partition("/")[0], "address", first_port=1)
    except InvalidArgumentError:
        return False
    return not is_unix or text.startswith("unix:/")


def _where(value: Any, place: str) -> DeviceFilter:
    keys = _mapping(value, place, ("kind", "architecture", "driver", "memory_gib", "labels"))
    memory = keys.get("memory_gib", 0)
    if isinstance(memory, bool) or not isinstance(memory, int | float) or not 0 <= memory < 1e6:
        raise _invalid(place, f"memory_gib: {memory!r}, expected a number of GiB")
    return DeviceFilter(
        kind=_text(keys, "kind", place),
        architecture=_text(keys, "architecture", place),
        driver=_text(keys, "driver", place),
        memory_gib=float(memory),
        labels=_texts(keys, "labels", place),
    )


def _mapping(value: Any, place: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _invalid(place, f"expected keys ({', '.join(known)})")
    unknown = next((key for key in value if key not in known), None)
    if unknown is not None:
        raise _invalid(place, f"unknown key {str(unknown)[:80]!r}; there are {', '.join(known)}")
    return value


def _text(keys: Mapping[str, Any], key: str, place: str) -> str:
    value = keys.get(key, "")
    if not isinstance(value, str):
        # YAML reads a driver's version as a number, and loses its last zeros.
        raise _invalid(place, f'{key}: expected a text, with quotes: "550.10"')
    if len(value) > _LONGEST_TEXT:
        raise _invalid(place, f"{key}: more than {_LONGEST_TEXT} characters")
    return value


def _texts(keys: Mapping[str, Any], key: str, place: str) -> tuple[str, ...]:
    values = keys.get(key) or []
    if not isinstance(values, list):
        raise _invalid(place, f"{key}: expected a list")
    return tuple(_text({key: value}, key, place) for value in values)


def _invalid(place: str, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{place}: {problem}", field="fleet")

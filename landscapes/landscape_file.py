"""Reads and writes landscape files: JSON Lines, plain or gzipped (docs/landscapes.md).

A file may come from anyone's tuner, so every line is checked, and a refusal says which line is
wrong, what was expected and what to do.
"""

import gzip
import io
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.launch_facts import LaunchFacts
from kernel_foundry.domain.measures import DIMENSIONS, LEVELS, Measures
from kernel_foundry.domain.plain import PlainError, from_plain, to_plain
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.shown_value import shown
from kernel_foundry.whole_file import replace_file
from landscapes.landscape import (
    Landscape,
    Parameter,
    ParameterValue,
    ValueKey,
    Variant,
    value_key,
)

VERSION: Final = 1
"""Of the format: the header's value of "landscape"."""

_MOST_BYTES: Final = 128 << 20
"""Of the text of a file, also once it is expanded: thirty times the largest known one."""
_MOST_VALUES: Final = 1 << 23
"""Ten times those of the largest known one."""

_GZIP_MAGIC: Final = b"\x1f\x8b"

_TEXTS: Final = ("task", "language", "device", "driver", "date", "commit")
"""Optional texts of the header."""


def write_landscape(path: Path, landscape: Landscape) -> None:
    """Write `landscape` to `path`, gzipped when its name ends in .gz; whole or not at all."""
    names = [p.name for p in landscape.parameters]
    header = {
        "landscape": VERSION,
        "name": landscape.name,
        **{key: getattr(landscape, key) for key in _TEXTS},
        "baseline_ns": landscape.baseline_ns,
        "parameters": [to_plain(p) for p in landscape.parameters],
    }
    rows = [
        {
            "parameters": dict(zip(names, variant.values, strict=True)),
            "measures": to_plain(variant.measures),
            "outcome": variant.outcome.name,
            **({"launches": to_plain(variant.launches)} if variant.launches else {}),
            "times_ns": list(variant.times_ns),
        }
        for variant in landscape.variants
    ]
    text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in (header, *rows))
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a time stamp equal landscapes are equal files.
    data = gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text.encode()
    replace_file(path, data)


def read_landscape(path: Path) -> Landscape:
    """Return the landscape in `path`.

    Raises:
        InvalidArgumentError: the file cannot be read or is no landscape; the message names the
            line and what to do.
    """
    lines = _lines(path)
    header = next(lines, None)
    if header is None:
        raise InvalidArgumentError(
            f"{path}: the file is empty; its first line must be the header, see docs/landscapes.md",
            field=str(path),
        )
    _check_version(header)
    parameters = _parameters(header)
    variants: list[Variant] = []
    line_of: dict[tuple[ValueKey, ...], int] = {}
    for line in lines:
        variant = _variant(line, parameters)
        there = line_of.setdefault(tuple(map(value_key, variant.values)), line.number)
        if there != line.number:
            line.refuse(f"the same parameters as in line {there}; leave one of them out")
        variants.append(variant)
    if not any(v.passed for v in variants):
        raise InvalidArgumentError(
            f"{path}: none of its {len(variants)} variants has the outcome PASSED, so there is "
            "nothing to search for; record at least one correct variant",
            field=str(path),
        )
    return Landscape(
        name=_name(header),
        parameters=parameters,
        variants=tuple(variants),
        **{key: _text(header, key) for key in _TEXTS},
        baseline_ns=_time(header, "baseline_ns"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    path: Path
    number: int
    """From 1."""
    data: Mapping[str, Any]

    def refuse(self, problem: str) -> NoReturn:
        """Raise `InvalidArgumentError` that names the line."""
        _refuse(self.path, self.number, problem)


def _refuse(path: Path, number: int, problem: str) -> NoReturn:
    raise InvalidArgumentError(f"{path}, line {number}: {problem}", field=f"{path}:{number}")


def _lines(path: Path) -> Iterator[_Line]:
    for number, raw in enumerate(io.BytesIO(_content(path)), start=1):
        try:
            text = raw.decode("utf-8").strip()
        except UnicodeDecodeError:
            _refuse(path, number, "not UTF-8 text; a landscape is JSON Lines, plain or gzipped")
        if text:
            yield _Line(path=path, number=number, data=_object(path, number, text))


def _content(path: Path) -> bytes:
    try:
        data = _expanded(path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidArgumentError(
            f"{path}: damaged gzip data ({error}); fetch or write the file again", field=str(path)
        ) from error
    except OSError as error:
        raise InvalidArgumentError(
            f"{path}: cannot be read ({error.strerror or error}); give a landscape file, see "
            "docs/landscapes.md",
            field=str(path),
        ) from error
    values = sum(data.count(mark) for mark in (b",", b"[", b"{"))
    if len(data) > _MOST_BYTES or values > _MOST_VALUES:
        raise InvalidArgumentError(
            f"{path}: larger than a landscape is; expected at most {_MOST_BYTES} bytes and"
            f" {_MOST_VALUES} values",
            field=str(path),
        )
    return data


def _expanded(path: Path) -> bytes:
    """Return the text of a file, or its beginning where it is longer than any may be."""
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    # By content and not by name: downloads lose their endings.
    if not data.startswith(_GZIP_MAGIC) or len(data) > _MOST_BYTES:
        return data
    return gzip.GzipFile(fileobj=io.BytesIO(data)).read(_MOST_BYTES + 1)


def _object(path: Path, number: int, text: str) -> Mapping[str, Any]:
    def refuse_constant(name: str) -> NoReturn:
        _refuse(path, number, f"{name} is not a number here; leave such samples out")

    try:
        found = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        _refuse(path, number, f"not JSON ({error}); write one JSON object a line")
    if not isinstance(found, dict):
        _refuse(path, number, f"expected a JSON object, found {text[:40]!r}")
    return found


def _check_version(header: _Line) -> None:
    version = header.data.get("landscape")
    if version is None:
        header.refuse(
            f'the first line must be the header, with "landscape": {VERSION}; see '
            "docs/landscapes.md"
        )
    if not isinstance(version, int) or isinstance(version, bool) or version < VERSION:
        header.refuse(f'"landscape" is {shown(version)}, expected {VERSION}')
    if version > VERSION:
        header.refuse(
            f"format {version} is newer than {VERSION}, which this version reads; update Kernel "
            "Foundry"
        )


def _parameters(header: _Line) -> tuple[Parameter, ...]:
    listed = header.data.get("parameters")
    if not isinstance(listed, list) or not listed:
        header.refuse(
            '"parameters" must be a list such as [{"name": "BLOCK", "values": [64, 128]}]'
        )
    parameters = tuple(_parameter(header, entry) for entry in listed)
    names = [p.name for p in parameters]
    if len(set(names)) < len(names):
        header.refuse(f"two parameters have the same name: {shown(names)}")
    return parameters


def _parameter(header: _Line, entry: Any) -> Parameter:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        header.refuse(f'a parameter is {shown(entry)}, expected an object with "name" and "values"')
    values = entry.get("values")
    if not isinstance(values, list) or not values:
        header.refuse(f'"values" of {name} must be a list of at least one value')
    for value in values:
        if not _is_value(value):
            header.refuse(f"{name} lists {shown(value)}; expected a number, a boolean or a string")
    if len({value_key(v) for v in values}) < len(values):
        header.refuse(f"{name} lists a value twice; list each value once")
    return Parameter(name=name, values=tuple(values))


def _variant(line: _Line, parameters: Sequence[Parameter]) -> Variant:
    outcome = _outcome(line)
    times_ns = _samples(line)
    if outcome is EvaluationOutcome.PASSED and not times_ns:
        line.refuse('a variant that PASSED needs at least one sample in "times_ns"')
    return Variant(
        values=_values(line, parameters),
        measures=_measures(line),
        outcome=outcome,
        launches=_launches(line),
        times_ns=times_ns,
    )


def _values(line: _Line, parameters: Sequence[Parameter]) -> tuple[ParameterValue, ...]:
    given = line.data.get("parameters")
    names = [p.name for p in parameters]
    if not isinstance(given, dict) or set(given) != set(names):
        line.refuse(
            f'"parameters" must give a value for each of {", ".join(names)}, and nothing else'
        )
    values = []
    for parameter in parameters:
        value = given[parameter.name]
        known = [
            v for v in parameter.values if _is_value(value) and value_key(v) == value_key(value)
        ]
        if not known:
            line.refuse(
                f"{parameter.name} is {shown(value)}, which the header does not list; add it to"
                ' the parameter\'s "values"'
            )
        values.append(known[0])
    return tuple(values)


def _outcome(line: _Line) -> EvaluationOutcome:
    name = line.data.get("outcome")
    if not isinstance(name, str) or name not in EvaluationOutcome.__members__:
        expected = ", ".join(EvaluationOutcome.__members__)
        line.refuse(f'"outcome" is {shown(name)}, expected one of {expected}')
    return EvaluationOutcome[name]


def _measures(line: _Line) -> Measures | None:
    given = line.data.get("measures")
    if given is None:
        return None
    if not isinstance(given, dict) or set(given) != set(DIMENSIONS):
        line.refuse(f'"measures" must be null or give {", ".join(DIMENSIONS)}')
    for name, level in given.items():
        if not isinstance(level, int) or isinstance(level, bool) or not 0 <= level < LEVELS:
            line.refuse(f"measure {name} is {shown(level)}, expected 0 to {LEVELS - 1}")
    return Measures(**given)


def _launches(line: _Line) -> LaunchFacts | None:
    given = line.data.get("launches")
    if given is None:
        return None
    try:
        found = from_plain(LaunchFacts, given)
    except PlainError as error:
        line.refuse(f'"launches" must be as a verdict has them, or null: {error}')
    return found


def _samples(line: _Line) -> tuple[float, ...]:
    given = line.data.get("times_ns", [])
    if not isinstance(given, list) or not all(_is_time(t) for t in given):
        line.refuse('"times_ns" must be a list of nanoseconds, each finite and above 0')
    return tuple(float(t) for t in given)


def _time(header: _Line, key: str) -> float | None:
    given = header.data.get(key)
    if given is None:
        return None
    if not _is_time(given):
        header.refuse(f'"{key}" is {shown(given)}, expected nanoseconds above 0, or null')
    return float(given)


def _name(header: _Line) -> str:
    if not _text(header, "name").strip():
        header.refuse('"name" is missing; give the landscape a name')
    return _text(header, "name")


def _text(header: _Line, key: str) -> str:
    given = header.data.get(key)
    if given is not None and not isinstance(given, str):
        header.refuse(f'"{key}" is {shown(given)}, expected a text')
    return given or ""


def _is_time(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # An integer of thousands of digits has no float.
    return is_number and 0 < value <= 1e18 and math.isfinite(value)  # type: ignore[operator, arg-type]


def _is_value(value: object) -> bool:
    is_scalar = isinstance(value, ParameterValue)
    return is_scalar and not (isinstance(value, float) and not math.isfinite(value))

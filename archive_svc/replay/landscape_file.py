"""Reads and writes landscape files: JSON Lines, plain or gzipped (docs/landscapes.md).

A file may come from anyone's tuner, so every line is checked and a refusal says which line is
wrong, what was expected and what to do.
"""

import gzip
import io
import json
import math
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from archive_svc.replay.landscape import Landscape, Parameter, ParameterValue, Variant
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.measures import DIMENSIONS, LEVELS, Measures
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.errors import InvalidArgumentError

VERSION: Final = 1
"""Of the format: the header's value of "landscape"."""

_GZIP_MAGIC: Final = b"\x1f\x8b"

_TEXTS: Final = ("task", "language", "device", "driver", "date", "commit")
"""Optional texts of the header."""

_Key = tuple[bool, ParameterValue]
"""A value as it is told apart: `true` is not 1, but 1.0 is."""


def write_landscape(path: Path, landscape: Landscape) -> None:
    """Write `landscape` to `path`, gzipped when its name ends in .gz.

    The file appears whole or not at all.
    """
    names = [p.name for p in landscape.parameters]
    header = {
        "landscape": VERSION,
        "name": landscape.name,
        **{key: getattr(landscape, key) for key in _TEXTS},
        "baseline_ns": landscape.baseline_ns,
        "sol_ns": landscape.sol_ns,
        "parameters": [{"name": p.name, "values": list(p.values)} for p in landscape.parameters],
    }
    lines = [json.dumps(header, allow_nan=False)]
    for variant in landscape.variants:
        row = {
            "parameters": dict(zip(names, variant.values, strict=True)),
            "measures": to_plain(variant.measures),
            "outcome": variant.outcome.name,
            "times_ns": list(variant.times_ns),
        }
        lines.append(json.dumps(row, allow_nan=False))
    data = ("\n".join(lines) + "\n").encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    # Without a time stamp equal landscapes are equal files.
    partial.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    partial.replace(path)


def read_landscape(path: Path) -> Landscape:
    """Return the landscape in `path`.

    Raises:
        InvalidArgumentError: the file cannot be read or is not a landscape; the message names
            the line and what to do.
    """
    lines = _lines(path)
    number, first = next(lines, (1, ""))
    if not first:
        _refuse(path, 1, "the file is empty; its first line must be the header object")
    header = _object(path, number, first)
    _check_version(path, number, header)
    parameters = _parameters(path, number, header)
    codes = [{_key(v): v for v in p.values} for p in parameters]
    variants: list[Variant] = []
    seen: dict[tuple[ParameterValue, ...], int] = {}
    for number, line in lines:
        variant = _variant(path, number, _object(path, number, line), parameters, codes)
        if variant.values in seen:
            there = seen[variant.values]
            _refuse(path, number, f"the same parameters as in line {there}; leave one of them out")
        seen[variant.values] = number
        variants.append(variant)
    if not any(v.passed for v in variants):
        _refuse(
            path,
            number,
            f"none of the {len(variants)} variants has the outcome PASSED, so there is nothing "
            "to search for; record at least one correct variant",
        )
    return Landscape(
        name=_text(path, 1, header, "name"),
        parameters=parameters,
        variants=tuple(variants),
        **{key: _text(path, 1, header, key, default="") for key in _TEXTS},
        baseline_ns=_time(path, 1, header, "baseline_ns"),
        sol_ns=_time(path, 1, header, "sol_ns"),
    )


def _refuse(path: Path, line: int, problem: str) -> NoReturn:
    raise InvalidArgumentError(f"{path}, line {line}: {problem}", field=f"{path}:{line}")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    try:
        data = path.read_bytes()
        # By content and not by name: downloads lose their endings.
        if data.startswith(_GZIP_MAGIC):
            data = gzip.decompress(data)
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
    for number, raw in enumerate(io.BytesIO(data), start=1):
        try:
            text = raw.decode("utf-8").strip()
        except UnicodeDecodeError:
            _refuse(path, number, "not UTF-8 text; a landscape is JSON Lines, plain or gzipped")
        if text:
            yield number, text


def _object(path: Path, line: int, text: str) -> Mapping[str, Any]:
    def refuse_constant(name: str) -> NoReturn:
        _refuse(path, line, f"{name} is no number here; leave such samples out")

    try:
        found = json.loads(text, parse_constant=refuse_constant)
    except ValueError as error:
        _refuse(path, line, f"not JSON ({error}); write one JSON object a line")
    if not isinstance(found, dict):
        _refuse(path, line, f"expected a JSON object, found {_kind(found)}")
    return found


def _check_version(path: Path, line: int, header: Mapping[str, Any]) -> None:
    version = header.get("landscape")
    if version is None:
        _refuse(
            path, line, f'the first line must be the header, with "landscape": {VERSION}; see '
            "docs/landscapes.md"
        )
    if isinstance(version, int) and not isinstance(version, bool) and version > VERSION:
        _refuse(
            path, line, f"format {version} is newer than {VERSION}, which this version reads; "
            "update Kernel Foundry"
        )
    if version != VERSION or isinstance(version, bool):
        _refuse(path, line, f'"landscape" is {version!r}, expected {VERSION}')


def _parameters(path: Path, line: int, header: Mapping[str, Any]) -> tuple[Parameter, ...]:
    listed = header.get("parameters")
    if not isinstance(listed, list) or not listed:
        _refuse(
            path, line, '"parameters" must be a list such as [{"name": "BLOCK", "values": '
            "[64, 128]}]"
        )
    parameters = []
    for position, entry in enumerate(listed):
        where = f"parameters[{position}]"
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            _refuse(path, line, f'{where} must be an object with "name" and "values"')
        values = entry.get("values")
        if not isinstance(values, list) or not values:
            _refuse(path, line, f'"values" of {entry["name"]} must list at least one value')
        for value in values:
            if not isinstance(value, ParameterValue):
                _refuse(
                    path, line, f"a value of {entry['name']} is {_kind(value)}; expected numbers, "
                    "booleans or strings"
                )
        if len({_key(v) for v in values}) < len(values):
            _refuse(path, line, f"{entry['name']} lists a value twice")
        parameters.append(Parameter(name=entry["name"], values=tuple(values)))
    names = [p.name for p in parameters]
    if len(set(names)) < len(names):
        _refuse(path, line, f"two parameters have the same name: {', '.join(names)}")
    return tuple(parameters)


def _variant(
    path: Path,
    line: int,
    row: Mapping[str, Any],
    parameters: tuple[Parameter, ...],
    codes: list[dict[_Key, ParameterValue]],
) -> Variant:
    given = row.get("parameters")
    names = [p.name for p in parameters]
    if not isinstance(given, dict) or set(given) != set(names):
        _refuse(
            path, line, f'"parameters" must give a value for each of {", ".join(names)} and for '
            "nothing else"
        )
    values = []
    for parameter, known in zip(parameters, codes, strict=True):
        value = given[parameter.name]
        if not isinstance(value, ParameterValue) or _key(value) not in known:
            _refuse(
                path, line, f"{parameter.name} is {value!r}, which the header does not list; add "
                'it to the "values" there'
            )
        values.append(known[_key(value)])
    outcome = _outcome(path, line, row)
    times_ns = _samples(path, line, row)
    if outcome is EvaluationOutcome.PASSED and not times_ns:
        _refuse(path, line, 'a variant that PASSED needs at least one sample in "times_ns"')
    return Variant(
        values=tuple(values),
        measures=_measures(path, line, row),
        outcome=outcome,
        times_ns=times_ns,
    )


def _outcome(path: Path, line: int, row: Mapping[str, Any]) -> EvaluationOutcome:
    name = row.get("outcome")
    if not isinstance(name, str) or name not in EvaluationOutcome.__members__:
        expected = ", ".join(EvaluationOutcome.__members__)
        _refuse(path, line, f'"outcome" is {name!r}, expected one of {expected}')
    return EvaluationOutcome[name]


def _measures(path: Path, line: int, row: Mapping[str, Any]) -> Measures | None:
    given = row.get("measures")
    if given is None:
        return None
    if not isinstance(given, dict) or set(given) != set(DIMENSIONS):
        _refuse(path, line, f'"measures" must be null or an object of {", ".join(DIMENSIONS)}')
    for name, level in given.items():
        is_level = isinstance(level, int) and not isinstance(level, bool) and 0 <= level < LEVELS
        if not is_level:
            _refuse(
                path, line, f"measure {name} is {level!r}, expected a whole number from 0 to "
                f"{LEVELS - 1}"
            )
    return Measures(**given)


def _samples(path: Path, line: int, row: Mapping[str, Any]) -> tuple[float, ...]:
    given = row.get("times_ns", [])
    if not isinstance(given, list) or not all(_is_time(t) for t in given):
        _refuse(path, line, '"times_ns" must be a list of times in nanoseconds, each above 0')
    return tuple(float(t) for t in given)


def _time(path: Path, line: int, header: Mapping[str, Any], key: str) -> float | None:
    given = header.get(key)
    if given is None:
        return None
    if not _is_time(given):
        _refuse(path, line, f'"{key}" is {given!r}, expected nanoseconds above 0, or null')
    return float(given)


def _text(
    path: Path, line: int, header: Mapping[str, Any], key: str, default: str | None = None
) -> str:
    given = header.get(key)
    if given is None and default is not None:
        return default
    if not isinstance(given, str) or (default is None and not given.strip()):
        _refuse(path, line, f'"{key}" is {given!r}, expected a text')
    return given


def _is_time(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value > 0


def _key(value: ParameterValue) -> _Key:
    return isinstance(value, bool), value


def _kind(value: object) -> str:
    return {list: "a list", dict: "an object", str: "a string", type(None): "null"}.get(
        type(value), type(value).__name__
    )

"""A run as one file: gzipped JSON Lines, a header and one line for each evaluation.

The header object: `kernel_foundry_run` (version of this format), `spec`, `state`,
`created_unix_s`, `evaluation_count`, `selected_count`, and `steering`, the run's steering events,
if it has any. A line: `request_id`, `archived_unix_s`,
`cost_usd`, `island`, `selection`, `journal`, `candidate`, `evaluation`, the last two as
`kernel_foundry.domain.plain` writes them. Lines stand in the order of the evaluations. What
a search makes of them is computed again from them.
"""

import gzip
import json
import os
import pickle
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from archive_svc.run.bounded_gzip import BoundedGzip
from archive_svc.run.journal import is_journal
from archive_svc.run.run_limits import check_cost, check_spec
from archive_svc.store.insert import LARGEST_EVALUATION, check_row
from archive_svc.store.rows import EvaluationRow, NewEvaluation, numbers_of
from archive_svc.store.schema import LARGEST_INTEGER
from archive_svc.store.whole_run import RunHead, WholeRuns, check_columns
from kernel_foundry.bounded_json import parse_json
from kernel_foundry.domain.archive import RunSpec, RunState
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.plain import from_plain, to_plain
from kernel_foundry.domain.steering import (
    MOST_STEERING,
    SteeringEvent,
    SteeringState,
    steering_fault,
)
from kernel_foundry.domain.task import Task
from kernel_foundry.domain.verdict_limits import check_verdict
from kernel_foundry.errors import (
    AlreadyExistsError,
    CorruptArchiveError,
    InvalidArgumentError,
    RunNotFoundError,
    StoreUnavailableError,
)

FORMAT: Final = 3
"""Version of the format."""

_VERSION_FIELD: Final = "kernel_foundry_run"
_OWN: Final = ("request_id", "archived_unix_s", "cost_usd", "island", "selection", "journal")
"""Fields of a line beside candidate and evaluation."""

_LINE_BYTES: Final = LARGEST_EVALUATION + 2**16
"""Longest line that is read; an evaluation has some ten kilobytes."""
_YEAR_10000_UNIX_S: Final = 253_402_300_800
"""No calendar goes on: later times could be stored, but not shown."""

_COMPRESSION: Final = 4
"""Level of zlib: files are a tenth larger than at best, and written three times as fast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCopy:
    """A run that was exported or imported."""

    name: str
    evaluation_count: int
    is_new: bool
    """False when the store had the run already, and equal."""


class _DamagedError(Exception):
    """A line of the file is not as it was written."""


def export_run(store_url: str, name: str, path: Path) -> RunCopy:
    """Write the run called `name`, the newest for "", to `path`; equal runs give equal files.

    What is added meanwhile is left out. The file appears when it is complete.

    Raises:
        RunNotFoundError: there is none.
        StoreUnavailableError: the store cannot be read or the file not be written.
        CorruptArchiveError: as of `Store`.
    """
    with closing(WholeRuns(store_url)) as runs:
        found = runs.find(name)
        if found is None:
            raise RunNotFoundError(f"no run called {name!r}" if name else "no run yet", run=name)
        run_id, head = found
        part = path.with_name(f"{path.name}.{os.getpid()}.part")  # nobody else's
        try:
            with part.open("wb") as raw:
                # No time and no name: the bytes depend on the run alone.
                with gzip.GzipFile("", "wb", _COMPRESSION, raw, mtime=0) as file:
                    _write(file, head, runs.evaluations(run_id))
                raw.flush()
                os.fsync(raw.fileno())
            part.replace(path)
        except OSError as error:
            raise StoreUnavailableError(f"cannot write {path}: {error}", file=str(path)) from error
        finally:
            part.unlink(missing_ok=True)
    return RunCopy(name=head.spec.name, evaluation_count=head.evaluation_count, is_new=True)


def import_run(store_url: str, path: Path, *, name: str = "") -> RunCopy:
    """Put the run in `path` into a store, as a whole or not at all.

    Everything is checked before anything is written. A run that is there already, and equal, is
    left as it is.

    Args:
        store_url: As of `Store`.
        path: Written by `export_run`.
        name: What to call the run; "": as it is called in the file.

    Raises:
        InvalidArgumentError: the file cannot be opened, or the name not be used.
        CorruptArchiveError: the file is damaged, cut off, or of another version.
        AlreadyExistsError: the store has another run of that name.
        RunNotFoundError: the store's run of that name was deleted or renamed in the meantime.
        StoreUnavailableError: as of `Store`.
    """
    # The checked lines wait on disk, so that the store is locked for their writing alone.
    with closing(WholeRuns(store_url)) as runs, tempfile.TemporaryFile() as checked:
        head = _check_file(path, name, checked)
        is_new = runs.insert(head, _unspool(checked))
        if not is_new and not _is_equal(runs, head, checked):
            raise AlreadyExistsError(
                f"the store has another run called {head.spec.name}: import it under another name",
                run=head.spec.name,
            )
    return RunCopy(name=head.spec.name, evaluation_count=head.evaluation_count, is_new=is_new)


def _write(file: gzip.GzipFile, head: RunHead, evaluations: Iterator[Any]) -> None:
    header = {
        _VERSION_FIELD: FORMAT,
        "spec": to_plain(head.spec),
        "state": head.state.value,
        "created_unix_s": head.created_unix_s,
        "evaluation_count": head.evaluation_count,
        "selected_count": head.selected_count,
    }
    if head.steering:
        header["steering"] = to_plain(head.steering)
    file.write(_dump(header).encode() + b"\n")
    for row in evaluations:
        if row.sequence > head.evaluation_count:
            return
        own = {name: getattr(row, name) for name in _OWN}
        # The texts are JSON already.
        texts = f',"candidate":{row.candidate},"evaluation":{row.evaluation}}}\n'
        file.write((_dump(own)[:-1] + texts).encode())


def _check_file(path: Path, name: str, checked: IO[bytes]) -> RunHead:
    """Check every line; append what the store needs of each to `checked`."""
    try:
        with gzip.open(path) as file:
            lines = _Lines(BoundedGzip(file, path.stat().st_size))
            try:
                return _check_lines(lines, name, checked)
            # Among others: NaN, half a character, an integer of more digits than a float has.
            except (_DamagedError, ValueError, OverflowError) as error:
                raise CorruptArchiveError(
                    f"{path} line {lines.count}: {error}", file=str(path), line=str(lines.count)
                ) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorruptArchiveError(
            f"{path} is damaged or cut off: {error}", file=str(path)
        ) from error
    except OSError as error:
        raise InvalidArgumentError(f"cannot read {path}: {error}", field="file") from error


def _check_lines(lines: "_Lines", name: str, checked: IO[bytes]) -> RunHead:
    head = _head(lines.take(), name)
    requests: set[str] = set()
    for _ in range(head.evaluation_count):
        row = _row(lines.take(), head.spec.task)
        request_id = row.numbers["request_id"]
        if request_id in requests:
            raise _DamagedError(f"request {request_id} comes twice")
        requests.add(request_id)
        pickle.dump(row, checked)
    lines.end()
    return head


class _Lines:
    """The lines of a file as objects."""

    def __init__(self, file: BoundedGzip) -> None:
        self.count = 0
        """Lines taken."""
        self._file = file

    def take(self) -> dict[str, Any]:
        """Return the next one."""
        self.count += 1
        line = self._file.readline(_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise _DamagedError("cut off, or longer than any line may be")
        try:
            data = parse_json(line)
        except ValueError as error:
            raise _DamagedError(f"not JSON: {error}") from error
        if not isinstance(data, dict):
            raise _DamagedError("not an object")
        return data

    def end(self) -> None:
        """Refuse a file that goes on; reads its check sum, too."""
        if self._file.read(1):
            raise _DamagedError("there are more lines than the header says")


def _head(header: dict[str, Any], name: str) -> RunHead:
    version = header.get(_VERSION_FIELD)
    if type(version) is not int or version < 1:
        raise _DamagedError("this is not a run file")
    if version != FORMAT:
        raise _DamagedError(f"it has format {version}, this version reads {FORMAT}")
    spec = from_plain(RunSpec, header.get("spec"))
    if name:
        spec = replace(spec, name=name)
    check_spec(spec)
    counts = [header.get("evaluation_count"), header.get("selected_count")]
    if not all(type(count) is int and 0 <= count <= LARGEST_INTEGER for count in counts):
        raise _DamagedError("the counts in the header are missing or out of range")
    state = from_plain(RunState, header.get("state"))
    if state is RunState.RUNNING:
        state = RunState.INTERRUPTED  # whoever works on it does so in the other store
    return RunHead(
        spec=spec,
        state=state,
        created_unix_s=_time(header.get("created_unix_s")),
        evaluation_count=header["evaluation_count"],
        selected_count=header["selected_count"],
        steering=_steering(header.get("steering", []), spec),
    )


def _steering(data: Any, spec: RunSpec) -> tuple[SteeringEvent, ...]:
    events = from_plain(tuple[SteeringEvent, ...], data)
    if len(events) > MOST_STEERING:
        raise _DamagedError(f"{len(events)} steering events, expected at most {MOST_STEERING}")
    state = SteeringState()
    for number, event in enumerate(events, start=1):
        fault = steering_fault(event.steering, spec.language) or state.fault(event.steering)
        state.take(event)
        if fault or event.sequence != number:
            raise _DamagedError(f"steering event {number}: {fault or 'it is not in order'}")
        if not 0 <= event.evaluation_count <= LARGEST_INTEGER:
            raise _DamagedError(f"steering event {number}: its evaluation_count is out of range")
        _time(event.steered_unix_s)
    return events


def _row(line: dict[str, Any], task: Task) -> EvaluationRow:
    selection = line.get("selection")
    new = NewEvaluation(
        request_id=from_plain(str, line.get("request_id")),
        candidate=from_plain(Candidate, line.get("candidate")),
        evaluation=from_plain(Evaluation, line.get("evaluation")),
        cost_usd=from_plain(float, line.get("cost_usd")),
        island=from_plain(str, line.get("island")),
        selection=None if selection is None else from_plain(int, selection),
        journal=from_plain(str, line.get("journal")),
        archived_unix_s=_time(line.get("archived_unix_s")),
    )
    if not is_journal(new.journal):
        raise _DamagedError("its journal cannot be read")
    try:
        check_cost(new.cost_usd)
        check_verdict(new.candidate, new.evaluation, task)
        # The texts as they stand in the file: an export of the import has the same bytes.
        row = EvaluationRow(
            numbers=numbers_of(new),
            candidate=_dump(line["candidate"]),
            evaluation=_dump(line["evaluation"]),
        )
        check_row(row)
        check_columns(row.numbers)
    except InvalidArgumentError as error:
        raise _DamagedError(error.message) from error
    return row


def _time(value: Any) -> float:
    seconds = from_plain(float, value)
    if not 0 <= seconds < _YEAR_10000_UNIX_S:
        raise _DamagedError("a time is not in the years 1970 to 9999")
    return seconds


def _dump(data: dict[str, Any]) -> str:
    return json.dumps(data, allow_nan=False, separators=(",", ":"))


def _unspool(checked: IO[bytes]) -> Iterator[EvaluationRow]:
    """Yield the rows that `_check_file` left, from the first on."""
    checked.seek(0)
    while True:
        try:
            yield pickle.load(checked)
        except EOFError:
            return


def _is_equal(runs: WholeRuns, head: RunHead, checked: IO[bytes]) -> bool:
    """Return whether the store's run of that name has the same evaluations.

    Raises:
        RunNotFoundError: it was deleted or renamed since its name was found to be taken.
    """
    found = runs.find(head.spec.name)
    if found is None:
        raise _gone(head)
    run_id, there = found
    heads = [(h.spec, h.evaluation_count, h.steering) for h in (there, head)]
    if heads[0] != heads[1]:
        return False
    evaluations = runs.evaluations(run_id)
    for row in _unspool(checked):
        stored = next(evaluations, None)
        if stored is None:
            raise _gone(head)
        if (stored.candidate, stored.evaluation) != (row.candidate, row.evaluation):
            return False
        if any(getattr(stored, name) != row.numbers[name] for name in _OWN):
            return False
    return True


def _gone(head: RunHead) -> RunNotFoundError:
    name = head.spec.name
    return RunNotFoundError(
        f"the store's run called {name} was deleted or renamed during this import: import it again",
        run=name,
    )

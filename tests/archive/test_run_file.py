"""A run as one file: out of a store and into another, whole or not at all."""

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archive_svc.run import run_file
from archive_svc.run.run_file import RunCopy, export_run, import_run
from archive_svc.store.rows import NewEvaluation
from archive_svc.store.store import Store
from archive_svc.store.whole_run import WholeRuns
from kernel_foundry.domain.archive import RunSpec, RunState
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.steering import Steering, SteeringAction
from kernel_foundry.errors import (
    AlreadyExistsError,
    CorruptArchiveError,
    InvalidArgumentError,
    RunNotFoundError,
    StoreUnavailableError,
)
from tests.archive.conftest import make_candidate, make_evaluation

COUNT = 450  # more than two batches


def add(store: Store, run_id: int, i: int) -> None:
    parent = make_candidate(str(i // 2)).digest if i else ""
    candidate = make_candidate(str(i), parent=parent, operator=Operator.MUTATE)
    evaluation = (
        make_evaluation(candidate, median_ns=900.0 - i, cell=(i % 4, 0, 1))
        if i % 5
        else make_evaluation(candidate, outcome=EvaluationOutcome.WRONG_RESULT)
    )
    store.add(
        run_id,
        NewEvaluation(
            request_id=f"request {i}",
            candidate=candidate,
            evaluation=evaluation,
            cost_usd=0.25,
            island="memory" if i % 2 else "fusion",
            selection=i if i % 3 else None,
        ),
    )


@pytest.fixture(scope="module")
def source_url(tmp_path_factory: pytest.TempPathFactory, spec: RunSpec) -> str:
    """A store with the runs "first", of `COUNT` + 1 evaluations, and "empty"; nobody changes it."""
    url = f"sqlite:///{tmp_path_factory.mktemp('source') / 'runs.db'}"
    with closing(Store(url)) as store:
        store.insert_run(spec)
        store.insert_run(replace(spec, name="empty"))
        store.reserve_selections(1, COUNT)
        for i in range(COUNT):
            add(store, 1, i)
        # The best one, measured again, is worth less.
        best = make_candidate(str(COUNT - 1))
        again = make_evaluation(best, median_ns=950.0)
        store.add(1, NewEvaluation(request_id="again", candidate=best, evaluation=again))
        store.steer(1, Steering(action=SteeringAction.HINT, text="wide loads"))
        store.steer(1, Steering(action=SteeringAction.INJECT, source=best.source))
        store.set_state(1, RunState.FINISHED)
    return url


@pytest.fixture(scope="module")
def exported(source_url: str, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("exported") / "first.jsonl.gz"
    export_run(source_url, "first", path)
    return path.read_bytes()


@pytest.fixture
def file(exported: bytes, tmp_path: Path) -> Path:
    """The exported run "first", to be changed at will."""
    path = tmp_path / "first.jsonl.gz"
    path.write_bytes(exported)
    return path


def everything(url: str, name: str = "first") -> tuple[Any, ...]:
    with closing(Store(url)) as store:
        row = store.find_run(name)
        assert row is not None
        transitions = store.transitions(row.id, 0, 10_000)
        numbers = store.results(row.id, 0)
        evaluations = store.evaluations(row.id, 0, 10_000)
        return replace(row, id=0), numbers, evaluations, transitions, store.steering(row.id, 0, 99)


def names(url: str) -> list[str]:
    with closing(Store(url)) as store:
        return [row.spec.name for row in store.list_runs(99)]


def edited(file: Path, edit: Callable[[list[dict[str, Any]]], object]) -> Path:
    """Change the lines of a file in place."""
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    edit(lines)
    file.write_bytes(gzip.compress(b"".join(json.dumps(x).encode() + b"\n" for x in lines)))
    return file


def test_an_imported_run_is_the_exported_one(source_url: str, store_url: str, file: Path) -> None:
    copied = import_run(store_url, file)
    assert copied == RunCopy(name="first", evaluation_count=COUNT + 1, is_new=True)
    assert everything(source_url) == everything(store_url)


def test_an_imported_run_goes_on(store_url: str, file: Path) -> None:
    import_run(store_url, file)
    with closing(Store(store_url)) as store:
        assert store.reserve_selections(1, 1) == COUNT
        add(store, 1, COUNT)
        assert store.results(1, COUNT)[-1].sequence == COUNT + 2


def test_equal_runs_give_equal_files(store_url: str, file: Path, tmp_path: Path) -> None:
    import_run(store_url, file)
    export_run(store_url, "first", tmp_path / "second.jsonl.gz")
    assert file.read_bytes() == (tmp_path / "second.jsonl.gz").read_bytes()


def test_an_export_leaves_files_beside_it_alone(source_url: str, tmp_path: Path) -> None:
    beside = tmp_path / "empty.gz.part"
    beside.write_text("somebody's")
    export_run(source_url, "empty", tmp_path / "empty.gz")
    assert beside.read_text() == "somebody's"
    assert set(tmp_path.iterdir()) == {beside, tmp_path / "empty.gz"}


def test_importing_again_changes_nothing(source_url: str, file: Path) -> None:
    before = everything(source_url)
    assert not import_run(source_url, file).is_new
    assert before == everything(source_url)


def test_a_run_without_evaluations_is_copied(
    source_url: str, store_url: str, tmp_path: Path
) -> None:
    """Whoever works on it works in the other store: here nobody does."""
    export_run(source_url, "", tmp_path / "newest.jsonl.gz")
    assert import_run(store_url, tmp_path / "newest.jsonl.gz").name == "empty"
    row, *rest = everything(source_url, "empty")
    assert (replace(row, state=RunState.INTERRUPTED), *rest) == everything(store_url, "empty")


def test_another_run_of_that_name_is_kept(
    source_url: str, store_url: str, spec: RunSpec, file: Path
) -> None:
    with closing(Store(store_url)) as store:
        store.insert_run(spec)
        add(store, 1, 0)
    before = everything(store_url)
    with pytest.raises(AlreadyExistsError, match="another name"):
        import_run(store_url, file)
    assert before == everything(store_url)
    assert import_run(store_url, file, name="copy") == RunCopy(
        name="copy", evaluation_count=COUNT + 1, is_new=True
    )
    assert everything(source_url)[1:] == everything(store_url, "copy")[1:]


def test_a_run_that_goes_away_during_the_import_is_named(
    store_url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name was taken when the import looked; then it is renamed, or deleted."""
    import_run(store_url, file)

    class Renamed(WholeRuns):
        def insert(self, *run: Any) -> bool:
            is_new = super().insert(*run)
            with closing(Store(store_url)) as store:
                store.rename_run(1, "other")
            return is_new

    class Deleted(WholeRuns):
        def evaluations(self, run_id: int) -> Iterator[Any]:
            with closing(Store(store_url)) as store:
                store.delete_run(run_id)
            return super().evaluations(run_id)

    for runs, name in ((Renamed, "first"), (Deleted, "other")):
        monkeypatch.setattr(run_file, "WholeRuns", runs)
        with pytest.raises(RunNotFoundError, match="import it again"):
            import_run(store_url, file, name=name)


def test_a_run_that_differs_in_one_verdict_is_another(source_url: str, file: Path) -> None:
    edited(file, lambda lines: lines[COUNT].update(cost_usd=0.5))
    with pytest.raises(AlreadyExistsError):
        import_run(source_url, file)


def set_in(line: int, *path: str | int, to: object) -> Callable[[list[dict[str, Any]]], None]:
    def edit(lines: list[dict[str, Any]]) -> None:
        target: Any = lines[line]
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = to

    return edit


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (set_in(0, "kernel_foundry_run", to=4), "line 1: it has format 4"),
        (set_in(0, "kernel_foundry_run", to=1), "line 1: it has format 1"),
        (set_in(0, "kernel_foundry_run", to="1"), "not a run file"),
        (set_in(0, "evaluation_count", to=COUNT + 2), "cut off"),
        (set_in(0, "evaluation_count", to=COUNT), "more lines"),
        (set_in(0, "evaluation_count", to=-1), "counts"),
        (set_in(0, "spec", "seed", to="x"), "seed"),
        (set_in(3, "evaluation", "fitness", to=-1.5), "line 4: evaluation.fitness is -1.5"),
        (set_in(3, "evaluation", "fitness", to="NaN"), "line 4: evaluation.fitness is nan"),
        (set_in(3, "evaluation", "measures", "memory", to=4), "line 4: .*memory"),
        (set_in(3, "evaluation", "candidate", to="0" * 64), "line 4: the verdict is on candidate"),
        (set_in(3, "candidate", "source", "plan", to="x"), "line 4: the verdict is on candidate"),
        (set_in(3, "candidate", "unknown", to=1), "line 4: .*unknown field"),
        (set_in(3, "request_id", to="request 0"), "request 0 comes twice"),
        (set_in(3, "request_id", to=""), "request_id"),
        (set_in(3, "cost_usd", to=-1.0), "cost_usd"),
        (set_in(3, "archived_unix_s", to="Infinity"), "a time is not"),
        (set_in(0, "created_unix_s", to=1e300), "line 1: a time is not"),
        (set_in(0, "selected_count", to=10**30), "line 1: .*counts"),
        (set_in(3, "archived_unix_s", to=10**400), "line 4: .* a number of"),
        (set_in(3, "selection", to=10**30), "line 4: selection is more"),
        (set_in(3, "island", to="x" * 41), "line 4: island is more"),
        (set_in(3, "island", to="\ud800"), "line 4: island is more"),
        (set_in(3, "candidate", "parents", to=["x" * 65]), "line 4: parent is more"),
        (set_in(3, "candidate", "source", "plan", to="\ud800"), "line 4: .*surrogates"),
        (set_in(3, "evaluation", "workloads", 0, "traffic_bound_ns", to=float("nan")), "line 4: "),
        (set_in(0, "steering", 0, "sequence", to=2), "line 1: steering event 1: .*order"),
        (set_in(0, "steering", 0, "evaluation_count", to=-1), "line 1: steering event 1"),
        (set_in(0, "steering", 0, "steered_unix_s", to=-1.0), "line 1: a time is not"),
        (set_in(0, "steering", 0, "steering", "text", to="x" * 2001), "line 1: .*a hint of 2001"),
        (set_in(0, "steering", 1, "steering", "source", to=None), "line 1: steering event 2"),
        (set_in(0, "steering", to=7), "line 1: "),
        (lambda lines: lines.clear(), "cut off"),
    ],
)
def test_a_file_with_a_wrong_line_is_refused(
    tmp_path: Path, file: Path, edit: Callable[[list[dict[str, Any]]], None], says: str
) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    edited(file, edit)
    with pytest.raises(CorruptArchiveError, match=says):
        import_run(url, file)
    assert names(url) == []


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, file: Path, share: float) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(CorruptArchiveError, match="cut off"):
        import_run(url, file)
    assert names(url) == []


def test_a_flipped_bit_is_found(tmp_path: Path, file: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(CorruptArchiveError):
        import_run(url, file)
    assert names(url) == []


def test_missing_and_foreign_files_are_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    with pytest.raises(InvalidArgumentError, match="cannot read"):
        import_run(url, tmp_path / "missing")
    (tmp_path / "text").write_text("hello\n" * 100)
    with pytest.raises(CorruptArchiveError, match="damaged"):
        import_run(url, tmp_path / "text")
    (tmp_path / "deep.gz").write_bytes(gzip.compress(b"[" * 100_000 + b"\n"))
    with pytest.raises(CorruptArchiveError, match="not JSON"):
        import_run(url, tmp_path / "deep.gz")


def test_a_bad_name_is_refused(tmp_path: Path, file: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="run name"):
        import_run(f"sqlite:///{tmp_path / 'runs.db'}", file, name="../x")


def test_exporting_what_is_not_there_leaves_no_file(source_url: str, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    with pytest.raises(RunNotFoundError):
        export_run(source_url, "unknown", tmp_path / "out.gz")
    with pytest.raises(StoreUnavailableError, match="cannot write"):
        export_run(source_url, "first", tmp_path / "missing" / "out.gz")
    assert before == set(tmp_path.iterdir())


_IMPORT = """
import os, sys
from pathlib import Path
from archive_svc.run.run_file import import_run
from archive_svc.store import whole_run

original = whole_run._History.add
def take(history, numbers):
    if history.evaluation_count == 300:
        print("half", flush=True)
        sys.stdin.read()
    return original(history, numbers)
whole_run._History.add = take
import_run(sys.argv[1], Path(sys.argv[2]))
"""


def test_a_killed_import_leaves_nothing_and_can_be_repeated(store_url: str, file: Path) -> None:
    with closing(Store(store_url)):
        pass
    with subprocess.Popen(
        [sys.executable, "-c", _IMPORT, store_url, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        assert names(store_url) == []  # nobody sees half a run
        os.kill(process.pid, signal.SIGKILL)
    assert names(store_url) == []
    assert import_run(store_url, file).is_new

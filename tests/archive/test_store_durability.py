"""SIGKILL at any moment: what was acknowledged is there, once, and nothing else is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from archive_svc.store.store import Store
from kernel_foundry.domain.archive import RunSpec

KILLS = {"sqlite": 100, "postgresql": 20}  # a new connection to a server takes its time

_KILLER = """
import json, os, random, signal, sys, time
from archive_svc.store.rows import NewEvaluation
from archive_svc.store.store import Store
from tests.archive.conftest import make_candidate, make_evaluation

url, kills = sys.argv[1], int(sys.argv[2])

def tell_on(first, answers):
    store = Store(url)
    for i in range(first, 1_000_000):
        selection = store.reserve_selections(1, 1)
        candidate = make_candidate(str(i))
        evaluation = make_evaluation(candidate, median_ns=500.0)
        new = NewEvaluation(request_id=str(i), candidate=candidate, evaluation=evaluation)
        result, _ = store.add(1, new)
        os.write(answers, f"{i} {result.sequence} {selection}\\n".encode())

acknowledged = []
rng = random.Random(0)
for _ in range(kills):
    answers, theirs = os.pipe()
    # A request that was cut off is sent again, as a client does.
    child = os.fork()
    if child == 0:
        tell_on(len(acknowledged), theirs)
    os.close(theirs)
    with os.fdopen(answers) as lines:
        acknowledged.append([int(word) for word in lines.readline().split()])
        time.sleep(rng.uniform(0.0, 0.005))
        os.kill(child, signal.SIGKILL)
        acknowledged += [[int(word) for word in line.split()] for line in lines]
    os.waitpid(child, 0)
print(json.dumps(acknowledged))
"""


@pytest.mark.slow
def test_a_killed_writer_loses_and_repeats_nothing(store_url: str, spec: RunSpec) -> None:
    kills = KILLS[store_url.partition(":")[0]]
    store = Store(store_url)
    store.insert_run(spec)
    result = subprocess.run(
        [sys.executable, "-c", _KILLER, store_url, str(kills)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    acknowledged = json.loads(result.stdout)
    numbers = store.results(1, 0)
    # The last one may have been stored and its answer cut off.
    assert len(numbers) - len(acknowledged) in (0, 1)
    assert len(acknowledged) >= kills
    assert [(i, i + 1) for i in range(len(acknowledged))] == [(i, n) for i, n, _ in acknowledged]
    archived = store.evaluations(1, 0, len(numbers))
    sources = [t.candidate.source.device_code for t in archived]
    assert [f"// {i}" for i in range(len(numbers))] == sources
    selections = [selection for _, _, selection in acknowledged]
    assert sorted(set(selections)) == selections
    store.close()

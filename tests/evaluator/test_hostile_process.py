"""A process that met a candidate may say anything: it becomes an outcome, and never our failure."""

import contextlib
import json
import math
import os
import struct
from pathlib import Path

import pytest

from evaluator_svc.messages.builder import ReadCandidateReply, ReadCandidateRequest, TranslationUnit
from evaluator_svc.messages.foreign import ForeignKept, KeepRequest
from evaluator_svc.messages.locked import CandidateFailure, WorkloadNames
from evaluator_svc.messages.measurement import KeptOutput, MeasurementSettings
from evaluator_svc.messages.plausible import ImplausibleError, bounded, check_answer
from evaluator_svc.messages.runner import (
    BoundWorkload,
    LoadReply,
    LoadRequest,
    PoolReady,
    PoolRequest,
    RunReply,
    StepTimesRequest,
    TimeReply,
    TimeRequest,
)
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.process import ProcessCommand, ProcessLauncher
from evaluator_svc.sandbox.host_paths import package_root
from kernel_foundry.common.v1 import evaluation_pb2
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.evaluation import (
    ClockBlock,
    Evaluation,
    EvaluationOutcome,
    StopReason,
)
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.wire.message import to_message
from tests.domain_values import CPU

_LIAR = """
import array, os, socket, sys, time
connection = socket.socket(fileno=int(sys.argv[1]))
connection.recv(1)
said = open(os.environ["SAID"], "rb")
data = said.read()
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [said.fileno()] * 8))]
connection.sendmsg([data[:16]], rights if os.environ["RIGHTS"] else [])
try:
    connection.sendall(data[16:])
except OSError:
    pass  # who has heard enough does not listen on
time.sleep(60)
"""

_POOL = PoolRequest(workload="w", wanted_bytes=1, limit_bytes=1)
_RIGHT = PoolReady(set_count=1, pool_bytes=64)


def _frame(body: object, *, kind: str = "PoolReady", blobs: tuple[bytes, ...] = ()) -> bytes:
    text = body if isinstance(body, bytes) else json.dumps({"kind": kind, "body": body}).encode()
    head = struct.pack("<4sIII", b"KFF1", len(text), len(blobs), 0)
    return head + text + b"".join(struct.pack("<Q", len(blob)) + blob for blob in blobs)


def _announced(text_bytes: int, blobs: int = 0, descriptors: int = 0) -> bytes:
    return struct.pack("<4sIII", b"KFF1", text_bytes, blobs, descriptors) + bytes(64)


@pytest.fixture
def say(tmp_path):
    """Ask a process that answers with given bytes; returns what is made of it."""
    (tmp_path / "liar.py").write_text(_LIAR)
    launcher = ProcessLauncher()

    def ask(said: bytes, *, rights: bool = False):
        (tmp_path / "said").write_bytes(said)
        environment = {
            "PYTHONPATH": f"{tmp_path}:{package_root()}",
            "PATH": os.environ["PATH"],
            "SAID": str(tmp_path / "said"),
            "RIGHTS": "1" if rights else "",
        }
        process = launcher.start(
            ProcessCommand(
                module="liar",
                environment=tuple(environment.items()),
                wrapping=None,
                accepts_descriptors=False,
            )
        )
        answer = ask_candidate(process, _POOL, PoolReady, seconds=60.0, doing="lying")
        process.kill()
        return answer

    yield ask
    launcher.close()


def test_an_honest_answer_is_taken(say):
    """What is refused below is refused for what it says."""
    assert say(_frame(to_plain(_RIGHT))) == _RIGHT


_LIES = {
    "no frame": b"HTTP/1.1 200 OK\r\n\r\n" + bytes(64),
    "a text beyond the limit": _announced(5 << 20),
    "blobs beyond the limit": _announced(2, blobs=3),
    "descriptors": _announced(2, descriptors=8),
    "another message": _frame({}, kind="Done"),
    "no such message": _frame({}, kind="x" * 1000),
    "a list": _frame([]),
    "a missing field": _frame({"set_count": 1}),
    "an unknown field": _frame({"set_count": 1, "pool_bytes": 1, "more": 1}),
    "a string for a number": _frame({"set_count": "1", "pool_bytes": 1}),
    "a truth value for a number": _frame({"set_count": True, "pool_bytes": 1}),
    "no sets": _frame({"set_count": 0, "pool_bytes": 1}),
    "a negative count": _frame({"set_count": 1, "pool_bytes": -1}),
    "a count without end": _frame({"set_count": 1, "pool_bytes": 10**40}),
    "more digits than can be read": _frame(b'{"kind":"PoolReady","body":' + b"1" * 9999 + b"}"),
    "not a number": _frame(b'{"kind":"PoolReady","body":{"set_count":NaN,"pool_bytes":1}}'),
    "lists in lists": _frame(b"[" * 100_000),
    "half a character": _frame(b'{"kind":"PoolReady","body":{"\\ud800":1}}'),
    "text that is none": _frame(b"\xff\xfe" * 10),
    "a blob nobody asked for": _frame(to_plain(_RIGHT), blobs=(b"x",)),
    "a passed candidate": _frame({"outcome": "passed", "findings": []}, kind="CandidateFailure"),
}


@pytest.mark.parametrize("lie", _LIES)
def test_a_lie_is_an_outcome(say, lie):
    """For a stated reason, and with the process ended."""
    answer = say(_LIES[lie])
    assert isinstance(answer, CandidateFailure)
    assert answer.outcome is EvaluationOutcome.CRASHED
    assert "sent an impossible answer" in answer.findings[0].message
    assert len(answer.findings[0].message) < 1000


def test_descriptors_beside_an_honest_answer_are_thrown_away(say, tmp_path):
    """They are closed by the system before the supervisor has them."""
    assert say(_frame(to_plain(_RIGHT)), rights=True) == _RIGHT
    assert not _is_open(tmp_path / "said")
    with (tmp_path / "said").open():
        assert _is_open(tmp_path / "said")


def _is_open(path: Path) -> bool:
    """Whether this process has a file open; other threads open and close theirs meanwhile."""
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if descriptor.readlink() == path:
                return True
    return False


_SETTINGS = MeasurementSettings(seconds=1.0, max_samples=4)
_TIME = TimeRequest(workload="w", settings=_SETTINGS, poison=True, keep_count=2)


def _timed(**changed: object) -> TimeReply:
    fields = {
        "samples_ns": (1.0, 2.0),
        "device_ns": (1.0, 2.0),
        "stop_reason": StopReason.CONVERGED,
        "warmup_count": 3,
        "discarded_count": 0,
        "kept": (KeptOutput(seed=2, slot=0), KeptOutput(seed=0, slot=1)),
    }
    return TimeReply(**(fields | changed))


def _clocks(**changed: object) -> tuple[ClockBlock, ...]:
    fields = {
        "sample_count": 1, "compute_mhz_before": 1, "compute_mhz_after": 1, "memory_mhz": 1,
    }  # fmt: skip
    return (ClockBlock(**(fields | changed)),)


@pytest.mark.parametrize(
    "changed",
    [
        {"samples_ns": (1.0,) * 5},
        {"device_ns": (1.0, 2.0, 3.0)},
        {"host_ns": (1.0, float("inf"))},
        {"host_ns": (1.0, -1.0)},
        {"warmup_count": -1},
        {"discarded_count": 1 << 60},
        {"kept": (KeptOutput(seed=0, slot=1),)},
        {"kept": (KeptOutput(seed=0, slot=0), KeptOutput(seed=0, slot=0))},
        {"kept": (KeptOutput(seed=-1, slot=0),)},
        {"kept": tuple(KeptOutput(seed=0, slot=i) for i in range(99))},
        {"clocks": _clocks() * 99},
        {"clocks": _clocks(compute_mhz_before=-1)},
        {"clocks": _clocks(throttle_reasons=("\x1b[2J",))},
        {"clocks": _clocks(throttle_reasons=("hot",) * 99)},
    ],
    ids=str,
)
def test_times_that_cannot_be_an_answer_are_refused(changed):
    """Counts, slots and clocks have to fit the question; whether times are true is judged later."""
    check_answer(_TIME, _timed(), blob_count=0)
    with pytest.raises(ImplausibleError):
        check_answer(_TIME, _timed(**changed), blob_count=0)


@pytest.mark.parametrize(
    "orders", [(), ((0, 1),), ((0, 1), (0, 0), ()), ((0, 1), (0, 2), ()), ((0, 1), (0, 1), (0,))]
)
def test_outputs_have_the_axes_that_were_asked_for(orders):
    """The judge turns them by what is said here."""
    request = KeepRequest(workload="w", ranks=(2, 2, 0))
    check_answer(request, ForeignKept(orders=((0, 1), (1, 0), ())), blob_count=0)
    with pytest.raises(ImplausibleError):
        check_answer(request, ForeignKept(orders=orders), blob_count=0)


@pytest.mark.parametrize("run_ns", [-1.0, math.inf, math.nan])
def test_a_run_takes_a_time(run_ns):
    """It is compared with an incumbent's."""
    request = StepTimesRequest(workload="w", kernels=(), flush_bytes=0)
    check_answer(request, RunReply(run_ns=1.0), blob_count=0)
    with pytest.raises(ImplausibleError):
        check_answer(request, RunReply(run_ns=run_ns), blob_count=0)


_NAMES = tuple(WorkloadNames(workload=name, tensors=(), scalars=()) for name in ("a", "b"))
_SOURCE = KernelSource(language=Language.SYCL, device_code="", plan="")


def _loaded(names: tuple[str, ...], kernel: str = "k", launches: int = 1) -> LoadReply:
    workloads = tuple(
        BoundWorkload(
            workload=name, launch_count=launches, scratch_count=0, scratch_bytes=0,
            group_count=1, group_size=1, kernels=(kernel,), main_kernel=kernel,
        )
        for name in names
    )  # fmt: skip
    return LoadReply(workloads=workloads, load_ms=1.0, bind_ms=1.0)


def test_a_binding_is_of_the_workloads_and_kernels_that_were_asked_for():
    """Else a look-up in them would be our own failure."""
    request = LoadRequest(
        source=_SOURCE,
        configuration=(),
        device=CPU,
        workloads=_NAMES,
        kernels=(("k",),),
        unit_of_workload=(0, 0),
    )
    check_answer(request, _loaded(("a", "b")), blob_count=0)
    for lie in (
        _loaded(("a",)),
        _loaded(("b", "a")),
        _loaded(("a", "b"), kernel="other"),
        _loaded(("a", "b"), launches=-1),
    ):
        with pytest.raises(ImplausibleError):
            check_answer(request, lie, blob_count=0)


def test_a_prepared_candidate_has_the_units_it_speaks_of():
    request = ReadCandidateRequest(source=_SOURCE, configuration=(), device=CPU, workloads=_NAMES)
    unit = TranslationUnit(source="", options=(), kernels=("k",))

    def parsed(
        units: int, of_workload: tuple[int, ...], parse_ms: float = 1.0
    ) -> ReadCandidateReply:
        return ReadCandidateReply(
            configuration=(), units=(unit,) * units, unit_of_workload=of_workload,
            parse_ms=parse_ms, policy_ms=1.0,
        )  # fmt: skip

    check_answer(request, parsed(2, (1, 0)), blob_count=0)
    for lie in (parsed(1, (0,)), parsed(1, (0, 1)), parsed(2, (0, 0)), parsed(0, ())):
        with pytest.raises(ImplausibleError):
            check_answer(request, lie, blob_count=0)
    with pytest.raises(ImplausibleError):
        check_answer(request, parsed(1, (0, 0), float("nan")), blob_count=0)


def test_what_a_process_found_is_cut_to_size():
    """Nobody's findings fill a store or steer a terminal."""
    finding = Finding(
        kind=FindingKind.PLAN,
        severity=Severity.ERROR,
        message="\x1b[2J\x00" + "x" * 100_000,
        evidence=(Figure(name="a", value=1.0),) * 1000,
    )
    kept = bounded((finding,) * 1000)
    assert len(kept) < 100
    assert all(len(f.message) < 5000 and len(f.evidence) < 100 for f in kept)
    assert kept[0].message.startswith(" [2J x")


def test_a_finding_of_any_size_fits_on_the_wire():
    """A verdict with it is sent on: no number is too large for that, and all of it not too long."""
    hostile = Finding(
        kind=FindingKind.MISMATCH,
        severity=Severity.ERROR,
        message="x",
        line=10**30,
        evidence=(Figure(name="n\x1b" * 30_000, value=1.0),) * 64,
    )
    (kept,) = bounded((hostile,))
    assert kept.line is None
    assert kept.evidence[0].name.startswith("n n ")
    evaluation = Evaluation(
        candidate="c", task="t", device="d", outcome=EvaluationOutcome.CRASHED,
        findings=bounded((hostile,) * 1000),
    )  # fmt: skip
    assert to_message(evaluation, evaluation_pb2.Evaluation).ByteSize() < 2 << 20


@pytest.mark.parametrize(
    "said",
    [
        _frame({"outcome": "x" * (3 << 20), "findings": []}, kind="CandidateFailure"),
        _frame({"x" * (3 << 20): 1}),
    ],
    ids=["value", "name"],
)
def test_what_is_told_of_nonsense_is_short(say, said):
    """What was said stands in the finding, and no more of it than of any other."""
    (finding,) = say(said).findings
    assert len(finding.message) < 5000

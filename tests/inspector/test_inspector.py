"""An inspector reads what a compiler made, once, in a process of its own."""

from pathlib import Path

import pytest

from evaluator_svc.cache.object_cache import BuiltUnit, ObjectCache
from evaluator_svc.hardware.device_lock import DeviceLock
from evaluator_svc.inspector import inspect_cubin, inspect_spirv
from evaluator_svc.messages.builder import ReadCandidateReply, TranslationUnit
from evaluator_svc.messages.inspector import InspectReply, InspectRequest
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.pipeline.build.build import BuildResult
from evaluator_svc.pipeline.build.inspect import inspect_units
from evaluator_svc.processes.candidate_inspectors import CandidateInspectors
from evaluator_svc.processes.spare_pool import SparePool
from kernel_foundry.domain.evaluation import CompileReport, EvaluationOutcome
from kernel_foundry.domain.language import Language
from tests.behaviour import nvrtc

MODULES = Path(__file__).parents[1] / "policy" / "kernels"
KERNELS = Path(__file__).parents[1] / "behaviour" / "kernels"
UNITS = tuple(
    TranslationUnit(source=name, options=(), kernels=())
    for name in ("honest_half", "reads_clock", "stale_local_memory")
)


def _module(name: str) -> bytes:
    return (MODULES / f"{name}.spv").read_bytes()


def _built(*codes: bytes, left_out: frozenset[int] = frozenset()) -> BuildResult:
    return BuildResult(
        units=tuple(BuiltUnit(code=c, assembly=b"", log="", build_ns=1.0) for c in codes),
        keys=tuple(f"{index:064x}" for index in range(len(codes))),
        report=CompileReport(log="", compile_ns=1.0, cached=False, object_bytes=1),
        left_out=left_out,
    )


def _prepared(count: int) -> ReadCandidateReply:
    return ReadCandidateReply(
        configuration=(),
        units=UNITS[:count],
        unit_of_workload=tuple(range(count)),
        parse_ms=0.0,
        policy_ms=0.0,
    )


def test_the_process_says_what_reading_gives(inspectors) -> None:
    """Any number of objects, one after the other, damaged ones among them."""
    codes = [*(path.read_bytes() for path in sorted(MODULES.glob("*.spv"))), b"no module"]
    with inspectors.taken() as process:
        for code in codes:
            request = InspectRequest(language=Language.SYCL, kernels=("k",), log="")
            answer = process.ask(request, InspectReply, timeout_seconds=60.0, blobs=(code, b""))
            assert answer.message.report == inspect_spirv(code, ("k",))


@pytest.mark.skipif(bool(nvrtc.absence()), reason=nvrtc.absence() or "NVRTC is there")
def test_a_cubin_comes_with_its_assembly_and_its_log(inspectors) -> None:
    """Rules and measures come from the PTX, what a kernel takes from the cubin and the log."""
    built = nvrtc.build((KERNELS / "matmul_shared_tile.cu").read_text())
    with inspectors.taken() as process:
        request = InspectRequest(language=Language.CUDA, kernels=("k",), log=built.log)
        blobs = (built.cubin, built.ptx)
        answer = process.ask(request, InspectReply, timeout_seconds=60.0, blobs=blobs)
    report = answer.message.report
    assert report == inspect_cubin(built.cubin, built.ptx, ("k",), log=built.log)
    assert report.kernels.stages_local
    assert [taken.shared_bytes > 0 for taken in report.resources] == [True]


def test_what_was_read_once_comes_with_the_object(inspectors, tmp_path) -> None:
    """Reports of every unit; the next candidate with the same objects needs no inspector."""
    built, cache = _built(*(_module(u.source) for u in UNITS)), ObjectCache(tmp_path, lambda: b"k")
    with CandidateInspectors(inspectors, most=2) as own:
        first = inspect_units(own, built, _prepared(3), Language.SYCL, cache)
    assert isinstance(first, BuildResult)
    assert [f.rule for f in first.findings] == ["object.clock", "object.stale_memory"]
    assert [r.numbers.formats for r in first.reports] == [("float16",), (), ()]

    kept = [cache.get(key) for key in built.keys]
    assert tuple(kept) == first.units


def test_a_report_that_is_there_is_not_made_again(inspectors, tmp_path) -> None:
    built, cache = _built(_module("honest_half"), b"never read", left_out=frozenset({1})), None
    cache = ObjectCache(tmp_path, lambda: b"k")
    with CandidateInspectors(inspectors) as own:
        first = inspect_units(own, built, _prepared(2), Language.SYCL, cache)
        assert isinstance(first, BuildResult)
    with CandidateInspectors(inspectors) as unused:
        assert inspect_units(unused, first, _prepared(2), Language.SYCL, cache) == first
        assert unused._idle.empty(), "no inspector was taken"


def test_an_inspector_that_ends_refuses_the_object(inspectors, tmp_path) -> None:
    """What cannot be read cannot be judged."""

    def start_and_end():
        process = inspectors.take()
        process.end("a trial")
        return process

    pool = SparePool(start_and_end, device_lock=DeviceLock(), size=0)
    with CandidateInspectors(pool) as own:
        cache = ObjectCache(tmp_path, lambda: b"k")
        refused = inspect_units(
            own, _built(_module("honest_half")), _prepared(1), Language.SYCL, cache
        )
    pool.close()
    assert isinstance(refused, CandidateFailure)
    assert refused.outcome is EvaluationOutcome.REJECTED
    (finding,) = refused.findings
    assert finding.rule == "object.unreadable"
    assert "it was ended: a trial" in finding.message


def test_one_that_ended_between_two_objects_is_replaced(inspectors) -> None:
    """Its processor time may be used up in a long sweep."""
    with CandidateInspectors(inspectors) as own:
        with own.taken() as first:
            pass
        first.end("a trial")
        with own.taken() as second:
            assert second.is_running
